#!/usr/bin/env python3
"""Hostile .npy files as the tool's inputs: usage inputs.py TESSERA [--seed N --first N --count N --seconds N]"""
import pathlib
import resource
import struct
import subprocess
import tempfile

import commands
import mutate
from drill import Drill

MEMORY = 4 << 30
WHOLE = commands.npy((12, 5), struct.pack("<60f", *range(60)))


def with_length(text, data, draws):
    """A header whose length is its own, or any."""
    length = len(text) if draws.random() < 0.7 else draws.choice((0, 1, 65535, len(text) - 1, len(text) + 1))
    return WHOLE[:8] + struct.pack("<H", length & 65535) + text + data


def hostile(draws):
    """A file, and whether it is certainly not the one that was spoiled."""
    text, data = WHOLE[10:128], WHOLE[128:]
    kind = draws.randrange(5)
    if kind == 0:
        return mutate.damage(draws, WHOLE)
    if kind == 1:
        return with_length(mutate.replace_number(draws, text), data, draws)
    if kind == 2:
        return with_length(mutate.damage(draws, text), data, draws)
    if kind == 3:
        descr = draws.choice(("<f8", ">f4", "|O", "<f3", "|V8", "<U9", "<c8", "<i8", "|b1", "", "f" * 300))
        return commands.npy(draws.choice(((12, 5), (60,), (), (0, 5), (-12, 5), (1 << 40, 1 << 40), (1,) * 40)), data, descr)
    return WHOLE[:6] + struct.pack("<BBI", draws.choice((0, 2, 3, 255)), 0, mutate.number(draws) & 0xffffffff) + text + data


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))


def main():
    drill = Drill("inputs", "a .npy file that is damaged or lies is refused with a line and status 1 or 2, or is moved: no crash, bounded time and memory",
                  2000, "tool")
    tool = str(pathlib.Path(drill.options.tool).resolve())
    with tempfile.TemporaryDirectory() as name:
        directory = pathlib.Path(name)
        commands.prepare(tool, directory)
        for _ in drill.cases():
            draws = drill.draws()
            commands.clean(directory)
            data = hostile(draws)
            sharded = draws.random() < 0.3
            (directory / ("shards/rank-1.npy" if sharded else "x.npy")).write_bytes(data)
            if not sharded:
                (directory / "shards/rank-1.npy").write_bytes(commands.npy((12, 2), bytes(96)))
            arguments = commands.COMMANDS["redistribute shards" if sharded else "redistribute"]
            try:
                done = subprocess.run([tool, *arguments], cwd=directory, capture_output=True, timeout=commands.SECONDS, check=False,
                                      preexec_fn=limit_memory)
            except subprocess.TimeoutExpired:
                drill.fail(f"it hangs with {data[:200]!r}")
                continue
            problem = done.returncode and commands.told_in_a_line(done, 1, 2)
            if not problem and done.returncode and commands.files(directory):
                problem = "it is refused, but files stay"
            if problem:
                drill.fail(f"{problem}; the file begins {data[:200]!r}")
    drill.end()


main()
