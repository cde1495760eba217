#!/usr/bin/env python3
"""`tessera bench checkpoint`, whose figures are looked at only for what they must be by themselves.

usage: test_bench_checkpoint.py TOOL"""
import json
import sys

import harness

tool = harness.Tool(sys.argv[1])
FEW = ["-n", 2, "-w", 0, "--begin", "64K", "--shape", "30x20"]
FIELDS = ["bench", "pass", "cache", "engine", "ranks", "mesh", "shape", "dtype", "placements", "tensors", "payload_bytes", "seconds", "bandwidth",
          "plain", "plain_seconds", "of_plain", "copy_seconds", "of_copy", "bytes_read", "wrong"]
PASSES = [("save", None, "write"), ("start", None, "memory copy"), ("load", "cold", "read"), ("load", "warm", "read")]
BYTES = 27 * 30 * 20 * 4  # of as many whole tensors as 64 KiB have room for


def lines(*arguments):
    done = tool.run("bench", "checkpoint", *FEW, *arguments, "--json")
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def ratio_is_right(line, share, seconds):
    if line[seconds] is None:
        return line[share] is None
    return abs(line[share] * line["seconds"]["median"] / line[seconds]["median"] - 1) < 1e-9


def every_layout_has_four_lines(layouts, replicas, ranks, *arguments):
    found = lines(*arguments)
    wrong = harness.different("fields", [list(line) for line in found], [FIELDS] * 4 * len(layouts))
    wrong += harness.different("lines", [(l["placements"], l["pass"], l["cache"], l["plain"]) for l in found], [(p, *of) for p in layouts for of in PASSES])
    wrong += harness.different("sizes", {(l["tensors"], l["payload_bytes"], l["ranks"], l["wrong"]) for l in found}, {(27, BYTES, ranks, 0)})
    wrong += harness.different("read", [l["bytes_read"] for l in found], [None, None, replicas * BYTES, replicas * BYTES] * len(layouts))
    wrong += [f"{l}: ratios" for l in found if not (ratio_is_right(l, "of_plain", "plain_seconds") and ratio_is_right(l, "of_copy", "copy_seconds"))]
    return wrong + harness.different("left behind", [path.name for path in tool.folder.iterdir() if path.name.startswith("tessera-bench")], [])


def people_get_a_table():
    done = tool.run("bench", "checkpoint", *FEW, "--placements", "S(1)", "-c", 0, "--end", "128K")
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    sizes = [BYTES] * 4 + [54 * 30 * 20 * 4] * 4
    return harness.different("rows", [(row[0], "S(1)" in row, str(size) in row, row[-2]) for row, size in zip(rows, sizes)],
                             [(of[0], True, True, "N/A") for of in PASSES * 2])


def lines_can_be_compared():
    path = tool.folder / "lines.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines("--placements", "S(0)")))
    return harness.different("compared", tool.json("bench", "compare", path, path)["compared"], 4)


tool.case("without placements there are three layouts", every_layout_has_four_lines, ["S(0)", "S(1)", "S(1;interleave=8)"], 1, 2)
tool.case("placements are those given", every_layout_has_four_lines, ["S(0),S(1)", "S(1),S(0;sizes=8,22)"], 1, 4, "--mesh", "a=2,b=2", "--placements",
          "S(0),S(1)", "--placements", "S(1),S(0;sizes=8,22)", "--output", tool.folder)
tool.case("replicas read the same", every_layout_has_four_lines, ["R"], 3, 3, "--mesh", 3, "--placements", "R")
tool.case("people get a table", people_get_a_table)
tool.case("bench compare knows the lines", lines_can_be_compared)
tool.refuses(1, ["bench", "checkpoint", *FEW, "--output", "/nowhere"], ["/nowhere: making a folder in it failed"])
tool.refuses(1, ["bench", "checkpoint", "--shape", "0x4"], ["no elements"])
tool.refuses(2, ["bench", "checkpoint", "--placements", "S(0"], ["--placements"])
tool.report.finish()
