#!/usr/bin/env python3
"""Benchmarks of moves with wrong results, which --check has to report. usage: test_bench_wrong.py
WRONG_RESULTS TOOL"""
import csv
import io
import json
import os
import sys

import harness

library, path = sys.argv[1:]
tool = harness.Tool(path)
MOVE = ["--mesh", "2", "--shape", "64x64", "--from", "S(0)", "--to", "R"]


def where_wrong(dtype):
    return {**os.environ, "LD_PRELOAD": library, "TEST_WRONG_DTYPE": dtype}


def counted(name, more, dtype, wrong, status):
    done = tool.run("bench", name, *MOVE, *more, "--dtype", "bf16", "--json", env=where_wrong(dtype))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return harness.different("wrong", [row["wrong"] for row in rows], [wrong]) + harness.different("exit", done.returncode, status)


def a_suite_names_columns_where_the_first_of_a_kind_fails():
    """Moves of f32 fail before their first row; the next benchmark, of bf16, does not."""
    done = tool.run("bench", "suite", "--quick", "-n", "1", "-w", "0", "--csv", env={**os.environ, "LD_PRELOAD": library, "TEST_REFUSED_DTYPE": "f32"})
    rows = list(csv.reader(io.StringIO(done.stdout)))
    names = rows[0]
    moved = [dict(zip(names, row)) for row in rows if row[0] == "redistribute"]
    wrong = harness.different("exit, sentence", (done.returncode, "TEST_REFUSED_DTYPE is f32" in done.stderr), (1, True))
    wrong += harness.different("the first name", names[0], "bench") + harness.different("dtypes", [row.get("dtype") for row in moved], ["bf16"] * 5)
    firsts = [before[0] for before, row in zip(rows, rows[1:]) if row[0] not in ("bench", before[0])]
    return wrong + harness.different("what is before the first row of a kind", set(firsts), {"bench"})


QUICK = ["-n", "2", "-w", "0", "--calls", "1"]
for name, more in (("redistribute", QUICK), ("dispatch", QUICK)):
    tool.case(f"{name} counts them, and its exit status is 1", counted, name, more, "bf16", 2, 1)
    tool.case(f"{name} finds none where none are", counted, name, more, "f64", 0, 0)
tool.refuses(1, ["bench", "calibrate", "--ranks", "2", "-b", "1K", "-e", "16K", "-f", "16", *QUICK, "--dtype", "bf16"],
             # Four moves of 2 ranks.
             ["8 elements are not what the moves must give"], env=where_wrong("bf16"))
# Links are calibrated in f32.
tool.refuses(1, ["bench", "simulate", *MOVE, "--dtype", "bf16", "--validate"], ["2 elements are not what the moves must give"],
             env=where_wrong("bf16"))
tool.case("the suite's CSV has names where the first benchmark of a kind fails", a_suite_names_columns_where_the_first_of_a_kind_fails)
tool.report.finish()
