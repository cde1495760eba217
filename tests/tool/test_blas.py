#!/usr/bin/env python3
"""
The BLAS libraries in `tessera info` and `tessera bench product`: usage test_blas.py TOOL STANDIN, a library of the tests that multiplies. No
duration is compared with anything.
"""
import json
import os
import sys

import harness

tool = harness.Tool(sys.argv[1])
STANDIN = sys.argv[2]
LEVELS = ["portable", "avx2", "avx512"]


def with_variables(**variables):
    plain = {name: value for name, value in os.environ.items() if name not in ("TSR_BLAS", "TSR_KERNELS", "TSR_LOG", "OPENBLAS_CORETYPE")}
    return {**plain, **variables}


def info(**variables):
    return tool.json("info", env=with_variables(**variables))


def linked_one():
    found = info()
    wrong = harness.different("one provider", [row["source"] for row in found["providers"]], ["linked"])
    row = found["providers"][0]
    wrong += harness.different("fields", sorted(row), sorted(["name", "source", "version", "core", "kernels", "of_machine", "warning"]))
    wrong += harness.different("in words", row["core"] in found["blas"] and row["version"] in found["blas"], True)
    text = tool.run("info", env=with_variables()).stdout
    return wrong + harness.different("the table names it", row["version"] in text, True)


def named_ones():
    found = info(TSR_BLAS=STANDIN)
    wrong = harness.different("sources", [row["source"] for row in found["providers"]], [STANDIN, "linked"])
    wrong += harness.different("name", found["providers"][0]["name"], "standin")
    return wrong + harness.different("nobody knows its kernels", found["providers"][0]["kernels"], None)


def unknown_one():
    found = info(TSR_BLAS="lapack")
    wrong = harness.different("providers", found["providers"], [])
    return wrong + harness.different("said why", 'blas is "lapack"' in found["blas"], True)


def check_warning(**variables):
    found = info(**variables)
    row, best = found["providers"][0], found["devices"][0]["kernels"]
    fits = row["kernels"] is None or LEVELS.index(row["kernels"]) >= LEVELS.index(best) or row["core"] == "Zen"
    return row, harness.different(f"a warning of {row['core']} on {best}", row["warning"] is None, fits)


def warnings():
    wrong = check_warning()[1]
    row, more = check_warning(OPENBLAS_CORETYPE="Haswell")
    if row["warning"]:
        text = tool.run("info", env=with_variables(OPENBLAS_CORETYPE="Haswell")).stdout
        more += harness.different("the table says it", row["warning"] in text, True)
        done = tool.run("bench", "linear", "--mesh", 2, "--tokens", 4, "--hidden", 4, "--intermediate", 4, "-n", 1, "-w", 0, "--calls", 1,
                        env=with_variables(OPENBLAS_CORETYPE="Haswell", TSR_LOG="warn"))
        more += harness.different("the log says it once", done.stderr.count(row["warning"]), 1)
    return wrong + more


def products(*arguments, status=0, **variables):
    done = tool.run("bench", "product", *arguments, "-n", 2, "-w", 0, "--calls", 1, "--json", env=with_variables(**variables))
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    return rows, harness.different(f"exit status, {done.stderr}", done.returncode, status)


def product_fields():
    rows, wrong = products("--shape", "33x17x29,8x8x8", "--ranks", "1,2", TSR_BLAS=STANDIN)
    fields = "bench provider source version core ranks m n k dtype seconds flops of_peak of_best chosen iterations wrong warm_ups calls"
    wrong += harness.different("rows", len(rows), 8)
    wrong += harness.different("sizes", [rows[0][name] for name in "mnk"], [33, 17, 29])
    wrong += harness.different("ranks", [row["ranks"] for row in rows], [1] * 4 + [2] * 4)
    wrong += harness.different("chosen", [row["chosen"] for row in rows], [True, False] * 4)
    for row in rows:
        wrong += harness.different("fields", sorted(row), sorted(fields.split()))
        wrong += harness.different("wrong", row["wrong"], 0)
        wrong += harness.different("shares", 0 < row["of_best"] <= 1, True)
    return wrong + harness.different("the best is one of each pair", [max(rows[i:i + 2], key=lambda row: row["of_best"])["of_best"] for i in (0, 2, 4, 6)], [1] * 4)


def product_dtypes():
    rows, wrong = products("--shape", "8x8x8", "--dtype", "f64", TSR_BLAS=STANDIN)
    wrong += harness.different("only what multiplies f64", [row["source"] for row in rows], ["linked"])
    return wrong + harness.different("wrong", rows[0]["wrong"], 0)


def product_formats():
    done = tool.run("bench", "product", "--shape", "8x8x8", "-n", 1, "-w", 0, "--csv", env=with_variables(TSR_BLAS=STANDIN))
    lines = done.stdout.splitlines()
    wrong = harness.different("lines of CSV", len(lines), 3) + harness.different("names", lines[0].startswith("bench,provider,"), True)
    text = tool.run("bench", "product", "--shape", "8x8x8,9x9x9", "-n", 1, "-w", 0, "-c", 0, env=with_variables(TSR_BLAS=STANDIN)).stdout
    wrong += harness.different("one table", text.count("of_best"), 1)
    return wrong + harness.different("unchecked", text.count("N/A"), 4)


tool.case("info names the BLAS that is linked", linked_one)
tool.case("info names those of TSR_BLAS first", named_ones)
tool.case("info says why one cannot be opened", unknown_one)
if tool.run("bench", "product", "--help").returncode == 0:
    tool.case("kernels for another processor are warned of, in the log once", warnings)
    tool.case("products have all their fields, a row a provider", product_fields)
    tool.case("a provider that lacks a dtype has no row", product_dtypes)
    tool.case("products as CSV and for people", product_formats)
    tool.refuses(2, ["bench", "product", "--shape", "8x8"], ["8x8", "three sizes"])
    tool.refuses(1, ["bench", "product", "--shape", "8x8x0"], ["from 1 to"])
    tool.refuses(1, ["bench", "product", "--shape", "8x8x8", "--dtype", "i32"], ["i32"])
    tool.refuses(1, ["bench", "product", "--shape", "8x8x8"], ['blas is "nothing"'], env=with_variables(TSR_BLAS="nothing"))
tool.report.finish()
