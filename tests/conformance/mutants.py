#!/usr/bin/env python3
"""tessera-conformance finds each fault of a device, and names it. TAP.

usage: mutants.py CONFORMANCE MUTANT_OBJECT SOUND_OBJECT
"""
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402

# The fault, the tests that are run and their part of the suite, and what must be said.
FAULTS = [
    ("no count", ["memory"], 'lacks the required entry "count"'),
    ("no event_wait", ["memory"], 'lacks "event_wait"'),
    ("unaligned", ["memory"], "not aligned to 64"),
    ("short copies", ["memory"], "has not brought just these"),
    ("short boxes", ["--tests", "rows_of_every_length*", "copy"], "dims of"),
    ("sums backwards", ["--tests", "operands_may_lie*", "reduce"], "sum of"),
    ("no bias", ["products"], "with a bias"),
    ("out of order", ["streams"], "were not done in their order"),
    ("reads late", ["streams"], "has not read its arguments during the call"),
    ("forgets waits", ["streams"], "before it was written"),
    ("never signals", ["--timeout", "1", "streams"], "calls that have not returned: stream_synchronize"),
]


def wrongly_judged(conformance, mutant, sound, fault, options, said):
    environment = dict(os.environ, TESSERA_MUTANT=fault, TESSERA_MUTANT_OF=sound, TSR_TEST_THIN="1")
    done = subprocess.run([conformance, *options[:-1], mutant, *options[-1:]], capture_output=True, text=True, env=environment)
    if done.returncode != 1 or said not in done.stdout + done.stderr:
        yield f"exit {done.returncode}\n{done.stdout[-2000:]}{done.stderr[-2000:]}"


def main(conformance, mutant, sound):
    report = tap.Report()
    for fault, options, said in FAULTS:
        report.check(f"a device with the fault \"{fault}\" is found out", wrongly_judged(conformance, mutant, sound, fault, options, said))
    none = list(wrongly_judged(conformance, mutant, sound, "none", ["streams"], ""))
    report.check("without a fault the same object passes", [] if none and none[0].startswith("exit 0") else none)
    report.finish()


main(*sys.argv[1:])
