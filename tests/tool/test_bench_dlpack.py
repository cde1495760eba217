#!/usr/bin/env python3
"""`tessera bench dlpack`, whose times are looked at only for what they must be by themselves.

usage: test_bench_dlpack.py TOOL"""
import json
import sys

import harness

tool = harness.Tool(sys.argv[1])
FEW = ["-n", 3, "-w", 0, "--calls", 5]
FIELDS = ["bench", "form", "tensors", "shape", "dtype", "seconds", "iterations", "warm_ups", "calls", "wrong"]


def lines(*arguments):
    done = tool.run("bench", "dlpack", *FEW, *arguments, "--json")
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def every_tensor_has_two_lines():
    found = lines("--shape", "scalar,5x0", "--shape", "2x3x4x5x6x7x8x9", "--dtype", "f8e4m3,c128")
    wanted = [(shape, dtype, form) for dtype in ("f8e4m3", "c128") for shape in ([], [5, 0], [2, 3, 4, 5, 6, 7, 8, 9]) for form in ("versioned", "unversioned")]
    wrong = harness.different("fields", [list(line) for line in found], [FIELDS] * len(wanted))
    wrong += harness.different("lines", [(line["shape"], line["dtype"], line["form"]) for line in found], wanted)
    wrong += harness.different("counts", {(line["tensors"], line["iterations"], line["warm_ups"], line["calls"], line["wrong"]) for line in found}, {(3, 3, 0, 5, 0)})
    return wrong + [f"{line}: times" for line in found if not 0 < line["seconds"]["min"] <= line["seconds"]["median"] <= line["seconds"]["max"]]


def people_get_a_table():
    done = tool.run("bench", "dlpack", "-n", 2, "-c", 0)
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    return harness.different("rows", [(row[0], row[1], row[2], row[-1]) for row in rows], [(form, "64x64", "f32", "N/A") for form in ("versioned", "unversioned")])


def lines_can_be_compared():
    path = tool.folder / "lines.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines()))
    return harness.different("compared", tool.json("bench", "compare", path, path)["compared"], 2)


tool.case("every tensor has two lines", every_tensor_has_two_lines)
tool.case("people get a table", people_get_a_table)
tool.case("bench compare knows the lines", lines_can_be_compared)
tool.refuses(2, ["bench", "dlpack", "--shape", "5x-1"], ["--shape"])
tool.report.finish()
