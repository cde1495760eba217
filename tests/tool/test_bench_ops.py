#!/usr/bin/env python3
"""`tessera bench ops`, of small shapes: no figure is looked at but for what it must be by itself.

usage: test_bench_ops.py TOOL [WRONG_RESULTS]
"""
import json
import os
import sys

import harness

tool = harness.Tool(sys.argv[1])
FEW = ["-n", 2, "-w", 0, "--calls", 1]
FIELDS = ["bench", "op", "case", "ranks", "shapes", "dtype", "pass", "seconds", "bytes", "bandwidth", "of_peak", "flops", "wrong", "calls"]
MATRICES = ["add", "silu_mul", "gelu", "gelu tanh", "tanh", "rms_norm", "layer_norm", "softmax", "cross_entropy", "cross_entropy"]
UPDATES = ["sgd_update", "momentum_update", "adamw_update", "lion_update"]


def lines(*arguments, **options):
    done = tool.run("bench", "ops", *arguments, *FEW, "--json", **options)
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def every_case_that_a_shape_fits_is_right(mesh, ranks):
    found = lines("--shape", "6x10", "--mesh", mesh)
    wrong = harness.different("cases", [l["case"] for l in found], MATRICES + UPDATES)
    wrong += harness.different("fields", {tuple(l) for l in found}, {tuple(FIELDS)})
    wrong += harness.different("wrong", [l["wrong"] for l in found], [0] * len(found))
    wrong += harness.different("ranks", {l["ranks"] for l in found}, {ranks})
    wrong += harness.different("passes", [l["pass"] for l in found], ["forward"] * 9 + ["backward"] + ["forward"] * 4)
    wrong += harness.different("shapes", [l["shapes"] for l in found[5:7]], [[[6, 10], [10]], [[6, 10], [10], [10]]])
    wrong += harness.different("shapes of the loss", found[9]["shapes"], [[6, 10], [6]])
    wrong += harness.different("shapes of AdamW", found[12]["shapes"], [[6, 10]] * 4 + [[]] * 3)
    return wrong + [f"{l}: rates" for l in found if not (l["bandwidth"] > 0 and l["seconds"]["min"] > 0 and l["of_peak"] is None)]


def both_passes_of_attention_are_right(mesh, shape):
    found = lines("attention", "--shape", shape, "--mesh", mesh)
    heads, tokens, dim = map(int, shape.split("x"))
    wrong = harness.different("passes, wrong", [(l["pass"], l["wrong"]) for l in found], [("forward", 0), ("backward", 0)])
    return wrong + harness.different("flops", [l["flops"] for l in found], [products * heads * tokens * tokens * dim for products in (2, 5)])


def bytes_are_those_of_operands_and_results():
    found = lines("softmax", "cross_entropy", "--shape", "6x10", "--mesh", 2)
    # The targets and losses of the loss are on both ranks.
    wrong = harness.different("bytes", [l["bytes"] for l in found], [2 * 240, 240 + 2 * 6 * (4 + 8), 2 * 240 + 2 * 6 * (4 + 8)])
    # An update reads four tensors and three numbers, and writes three.
    return wrong + harness.different("bytes of AdamW", lines("adamw_update", "--shape", "6x10")[0]["bytes"], 7 * 240 + 3 * 4)


def names_are_of_ops_and_of_cases():
    wrong = harness.different("gelu", [l["case"] for l in lines("gelu", "--shape", "4x4")], ["gelu", "gelu tanh"])
    wrong += harness.different("gelu tanh", [l["case"] for l in lines("gelu tanh", "--shape", "4x4")], ["gelu tanh"])
    found = lines("add 64 bytes", "decode attention")
    return wrong + harness.different("of fixed shapes", [(l["case"], l["shapes"][0], l["wrong"]) for l in found],
                                     [("add 64 bytes", [16], 0), ("decode attention", [8, 1, 64], 0)])


def large_ops_are_held_against_plain_copies():
    found = lines("add", "--shape", "512x1024")
    return [] if found[0]["of_peak"] > 0 else [str(found)]


def people_get_a_table():
    done = tool.run("bench", "ops", "add", "cross_entropy", "--shape", "4x8", *FEW)
    heads = [line for line in done.stdout.splitlines() if line.startswith("#")]
    rows = [line.split() for line in done.stdout.splitlines() if not line.startswith("#")]
    return (harness.different("heads", len(heads), 2) + harness.different("rows", [row[:3] for row in rows], [
        ["add", "forward", "1"], ["cross_entropy", "forward", "1"], ["cross_entropy", "backward", "1"]])
        + harness.different("of_peak, wrong", [(row[6], row[8]) for row in rows], [("N/A", "0")] * 3))


def results_may_go_unchecked():
    return harness.different("wrong", [l["wrong"] for l in lines("cross_entropy", "--shape", "4x8", "-c", 0)], [None, None])


def lines_can_be_compared():
    path = tool.folder / "ops.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines("gelu", "cross_entropy", "--shape", "6x10")))
    found = tool.json("bench", "compare", path, path)
    keys = {row["key"] for row in found["rows"]}
    return harness.different("compared, slower, other lines", (len(keys), found["compared"], found["slower"], found["only_old"]), (4, 4, 0, []))


def wrong_elements_are_counted(library, which, passes):
    environment = {**os.environ, "LD_PRELOAD": library, "TEST_WRONG_OPS": which}
    done = tool.run("bench", "ops", "cross_entropy", "--shape", "8x100", *FEW, "--json", env=environment)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("wrong", [(l["pass"], l["wrong"] > 0) for l in found], passes)
    return wrong + harness.different("exit, sentence", (done.returncode, f"cross_entropy, {which}: " in done.stderr), (1, True))


for mesh, ranks in (("1", 1), ("2", 2), ("2x2", 4), ("8", 8)):  # 8 ranks: some have no rows
    tool.case(f"every case that a shape of two sizes fits is right on {mesh}", every_case_that_a_shape_fits_is_right, mesh, ranks)
for mesh, shape in (("1", "2x40x8"), ("3", "4x12x4"), ("4", "2x5x3")):
    tool.case(f"attention and its gradients are right on {mesh}", both_passes_of_attention_are_right, mesh, shape)
tool.case("bytes are those of operands and results", bytes_are_those_of_operands_and_results)
tool.case("names are of ops and of cases", names_are_of_ops_and_of_cases)
tool.case("large ops are held against plain copies", large_ops_are_held_against_plain_copies)
tool.case("people get a table", people_get_a_table)
tool.case("results may go unchecked", results_may_go_unchecked)
tool.case("lines can be compared", lines_can_be_compared)
if len(sys.argv) > 2:
    tool.case("wrong results are counted", wrong_elements_are_counted, sys.argv[2], "forward", [("forward", True)])
    tool.case("wrong gradients are counted", wrong_elements_are_counted, sys.argv[2], "backward", [("forward", False), ("backward", True)])
tool.refuses(2, ["bench", "ops", "dance"], ["dance", "without names"])
tool.refuses(2, ["bench", "ops", "add", "dance", *FEW], ["dance"])
tool.refuses(2, ["bench", "ops", "attention", "--shape", "4x4"], ["--shape 4x4", "attention"])
tool.refuses(2, ["bench", "ops", "add 64 bytes", "--shape", "4x4"], ["--shape 4x4", "add 64 bytes"])
tool.refuses(2, ["bench", "ops", "--shape", "4x0"], ["--shape 4x0", "no elements"])
tool.refuses(2, ["bench", "ops", "--shape", "scalar"], ["--shape"])
tool.refuses(1, ["bench", "ops", "--mesh", "0"], ["--mesh"])
tool.report.finish()
