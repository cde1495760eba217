#!/usr/bin/env python3
"""`tessera-example-runtime` plans in one process, executes in another, and says what it refuses. README.md's own lines are run by tests/docs.

usage: test_runtime_program.py PROGRAM DEVICE"""
import pathlib
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import tap  # noqa: E402

program, device = sys.argv[1:]
report = tap.Report()
place = tempfile.TemporaryDirectory()
plans = pathlib.Path(place.name) / "program.plans"


def check(fact, status, said, *arguments):
    done = subprocess.run([program, *map(str, arguments)], capture_output=True, text=True, timeout=120)
    wrong = [] if done.returncode == status and said in done.stdout + done.stderr else [f"exit {done.returncode}: {done.stdout}{done.stderr}"]
    wrong += [done.stdout] if "not given back" in done.stdout else []
    report.check(fact, wrong)


check("plans are made", 0, "", "plan", plans)
check("plans are executed", 0, "every element is right", "run", plans)
check("one at a time", 0, "7 executions of 3 moves on 4 ranks, 1 at once", "run", plans, "--flights", 1, "--threads", 4)
check("on a device", 0, "every element is right", "run", plans, "--device", device, "--flights", 3)
check("a rank that fails is named on a device too", 0, "rank 0: peer: rank 2 failed: src has local shape", "run", plans, "--device", device, "--fail", 2)
check("a rank that aborts ends the run on a device too", 1, "rank 3: peer: rank 1 has aborted", "run", plans, "--device", device, "--abort", 1)
check("a rank that is not there cannot fail", 1, "rank 4 cannot fail: the plans have ranks 0 to 3", "run", plans, "--fail", 4)
check("a file that is not there is named", 1, "nothing.plans: No such file", "run", plans.with_name("nothing.plans"))
check("a device that is not there is named", 1, "nothing.so", "run", plans, "--device", "./nothing.so")
check("numbers are checked", 2, "is not a number from 1 to 1000", "run", plans, "--threads", "x")
check("without a command the usage is shown", 2, "usage: runtime plan FILE", plans)
report.finish()
