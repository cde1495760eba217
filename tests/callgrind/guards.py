#!/usr/bin/env python3
"""Instructions of the library's hot paths against budgets.txt, counted by callgrind. TAP.

usage: guards.py GUARDED BUDGETS SOURCE VALGRIND COMPILER BUILD CPU [--measure]

--measure prints what budgets.txt should say instead of comparing. What the C library does (memcpy, malloc) is not counted: it chooses its
code by the processor. Spinning is off and kernels are the portable ones, so that counts depend neither on the time nor on the machine.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402

#: How far a count may be from its budget, either way: beyond it the path grew, or the budget is stale.
MARGIN = 0.05
#: guarded's exit status for a case that needs ops, in a build without them.
NOT_BUILT = 77
ENVIRONMENT = {"TSR_SPIN": "0", "TSR_KERNELS": "portable", "TSR_PLAN_CACHE": "64", "TSR_LOG": "silent", "PATH": os.environ["PATH"]}


def read_budgets(path):
    """({"compiler": .., "cpu": ..}, {case: instructions}); what follows a # says why."""
    facts, budgets = {}, {}
    for line in path.read_text().splitlines():
        words = line.split("#")[0].split(maxsplit=1)
        if words and words[0] in ("compiler", "cpu"):
            facts[words[0]] = words[1].strip()
        elif words:
            budgets[words[0]] = int(words[1])
    return facts, budgets


def own_instructions(profile):
    """Instructions in the program and in libtessera of a callgrind profile, what they call elsewhere left out."""
    names, ours, total, call = {}, False, 0, False
    for line in profile.splitlines():
        found = re.match(r"ob=\((\d+)\)(?: (.*))?$|cob=\((\d+)\)(?: (.*))?$", line)
        if found:
            number, name = (found.group(1) or found.group(3)), (found.group(2) or found.group(4))
            if name is not None:
                names[number] = pathlib.Path(name).name
            if found.group(1):
                ours = names[number] == "guarded" or names[number].startswith("libtessera")
        elif line.startswith("calls="):
            call = True
        elif re.match(r"[+*\d-]", line):
            total += int(line.split()[-1]) if ours and not call else 0
            call = False
    return total


def count(valgrind, guarded, case, runs):
    """Instructions of one run of a case."""
    with tempfile.TemporaryDirectory() as place:
        out = pathlib.Path(place) / "callgrind.out"
        command = [valgrind, "--tool=callgrind", "--quiet", "--toggle-collect=guarded_path", f"--callgrind-out-file={out}", guarded, case]
        done = subprocess.run(command, capture_output=True, text=True, env=ENVIRONMENT, timeout=120)
        if done.returncode or not out.exists():
            raise RuntimeError(f"{' '.join(command)}: exit status {done.returncode}\n{done.stderr}")
        return own_instructions(out.read_text()) / runs


def judge(case, found, budget):
    if abs(found - budget) <= MARGIN * budget:
        return
    yield f"{found:.0f} instructions, {found / budget:.2f} of the budget of {budget}"
    yield "mend what grew; or, if it had to, write the new count and why into tests/callgrind/budgets.txt" if found > budget else \
        "the budget is stale: write the new count into tests/callgrind/budgets.txt"


def reason_to_skip(valgrind, facts, compiler, build, cpu):
    if valgrind == "none" or not os.access(valgrind, os.X_OK):
        return "there is no valgrind"
    if build != "release":
        return f"this build is {build}; budgets are of release"
    if cpu != facts["cpu"]:
        return f"this is {cpu}; budgets are of {facts['cpu']}"
    if compiler.split(".")[0] != facts["compiler"]:
        return f"this is {compiler}; budgets are of {facts['compiler']}"
    return None


def is_built(guarded, case):
    return subprocess.run([guarded, case], capture_output=True, env=ENVIRONMENT, timeout=120).returncode != NOT_BUILT


def main(guarded, budgets, source, valgrind, compiler, build, cpu, *options):
    facts, wanted = read_budgets(pathlib.Path(budgets))
    runs = int(re.search(r"^#define RUNS (\d+)$", pathlib.Path(source).read_text(), re.M).group(1))
    known = subprocess.run([guarded], capture_output=True, text=True).stderr.split()[3:]
    if "--measure" in options:
        print(f"compiler {compiler.split('.')[0]}\ncpu {cpu}")
        for case in filter(lambda case: is_built(guarded, case), known):
            print(f"{case:40}{count(valgrind, guarded, case, runs):.0f}", flush=True)
        return
    report = tap.Report()
    report.check("every path that is counted has a budget", sorted(set(known) ^ set(wanted)))
    reason = reason_to_skip(valgrind, facts, compiler, build, cpu)
    for case, budget in wanted.items():
        fact = f"{case}: {budget} instructions, give or take {MARGIN:.0%}"
        if reason or not is_built(guarded, case):
            report.skip(fact, reason or "this build has no ops")
        else:
            report.check(fact, judge(case, count(valgrind, guarded, case, runs), budget))
    report.finish()


main(*sys.argv[1:])
