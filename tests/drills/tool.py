#!/usr/bin/env python3
"""The tool with one call that fails, or all from there on: usage tool.py TESSERA FAULTS.so [--seed N --first N --count N --seconds N]"""
import os
import pathlib
import subprocess
import sys
import tempfile

import commands
from drill import Drill

KINDS = ("malloc", "mmap", "thread", "write")


def run(words, directory, **environment):
    # What is measured differs from run to run.
    return subprocess.run(words, cwd=directory, env={**os.environ, "TSR_KERNELS": "fixed", **environment}, capture_output=True, timeout=commands.SECONDS, check=False)


def count_calls(words, directory, faults):
    """Returns (calls by kind, output, files) of a run without failures."""
    commands.clean(directory)
    done = run(words, directory, LD_PRELOAD=faults, FAULTS_REPORT="report")
    if done.returncode:
        sys.exit(f"{words}: {done.stderr!r}")
    counts = dict(zip(KINDS, map(int, (directory / "report").read_text().split())))
    return counts, commands.without_clock(done.stdout), commands.files(directory)


def trials(tool, directory, faults):
    """Returns every call of every command: (name, words, kind, number, sticky, output, files)."""
    for name, arguments in commands.COMMANDS.items():
        words = [tool, *arguments]
        counts, output, files = count_calls(words, directory, faults)
        for kind in KINDS:
            for number in range(counts[kind]):
                for sticky in (False, True):
                    yield name, words, kind, number, sticky, output, files


def wrong(done, directory, output, files):
    """Returns what is wrong with a run, or None."""
    left = commands.files(directory)
    if done.returncode:
        return commands.told_in_a_line(done, 1, 2) or (f"exit status {done.returncode}, but it leaves {list(left)[:3]}" if left else None)
    if commands.without_clock(done.stdout) != output:
        return f"exit status 0, but it prints something else: {done.stdout[-200:]!r}"
    if left != files:
        return "exit status 0, but it writes something else"
    return f"exit status 0, but it says {done.stderr[:200]!r}" if done.stderr else None


def main():
    drill = Drill("tool", "where a call of the tool fails it ends with a line and status 1, or as if nothing had failed; nothing half-written stays",
                  sys.maxsize, "tool", "faults")
    tool, faults = str(pathlib.Path(drill.options.tool).resolve()), str(pathlib.Path(drill.options.faults).resolve())
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        commands.prepare(tool, directory)
        known = list(trials(tool, directory, faults))
        for _ in drill.cases(len(known)):
            name, words, kind, number, sticky, output, files = known[drill.spread(len(known))]
            told = f"{name}, {kind} {number}{' and all later' if sticky else ''}"
            commands.clean(directory)
            try:
                sticks = {"FAULTS_STICKY": "1"} if sticky else {}
                done = run(words, directory, LD_PRELOAD=faults, FAULTS_KIND=kind, FAULTS_AT=str(number), **sticks)
            except subprocess.TimeoutExpired:
                drill.fail(f"{told}: it hangs")
                continue
            problem = wrong(done, directory, output, files)
            if problem:
                drill.fail(f"{told}: {problem}")
    drill.end()


main()
