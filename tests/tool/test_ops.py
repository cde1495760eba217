#!/usr/bin/env python3
"""`tessera ops`: the list of rows, what it says of a case, and runs whose answers are PyTorch's
(tests/golden/pytorch_ops.jsonl), on one rank and on more."""
import itertools
import json
import os
import pathlib
import re
import sys

import harness

tool = harness.Tool(sys.argv[1])
CUDA = pathlib.Path(__file__).parent.parent.parent / "src" / "device" / "cuda" / "ops"
# Rows that CUDA's gemm computes.
PRODUCTS = ["einsum", *(f"einsum_gradient_{x}" for x in "abcd"), "linear", *(f"linear_gradient_{x}" for x in "xwb"), "matmul", *(f"matmul_gradient_{x}" for x in "ab")]
GOLDEN = pathlib.Path(__file__).parent.parent / "golden" / "pytorch_ops.jsonl"
DESCR = {"f64": "<f8", "i64": "<i8", "bool": "|b1"}
numbers = itertools.count()

# Both sides compute in f64. No case has more than 64 terms to a sum; each rounds by at most 2^-53 of the largest partial sum, functions by a
# few times as much, and gradients are products of three such values: 2^-53 * 64 * 16, with the largest value's size for a scale.
TOLERANCE = 2.0 ** -43


def differ(what, found, wanted):
    """Contradictions between a file and a tensor of the golden answers."""
    descr, shape, values = found
    if list(shape) != wanted["shape"]:
        return [f"{what}: shape {list(shape)} instead of {wanted['shape']}"]
    if descr != DESCR[wanted["dtype"]]:
        return [f"{what}: {descr} instead of {wanted['dtype']}"]
    scale = max([1.0, *(abs(v) for v in wanted["values"])])
    for i, (a, b) in enumerate(zip(values, wanted["values"])):
        if abs(a - b) > TOLERANCE * scale:
            return [f"{what}: element {i} is {a!r} instead of {b!r}"]
    return []


def operand_text(tensor, placements):
    if tensor is None:
        return "none"
    shape = "x".join(map(str, tensor["shape"])) or "scalar"
    return f"{shape}:{tensor['dtype']}:{placements}"


def write(folder, name, tensor):
    path = folder / f"{name}.npy"
    harness.write_npy(path, DESCR[tensor["dtype"]], tensor["shape"], tensor["values"])
    return path


def run(golden, mesh, place):
    """Runs a case; `place` gives the placements of an operand."""
    folder = tool.folder / f"case-{next(numbers)}"
    folder.mkdir()
    words = ["ops", golden["op"], "--mesh", mesh, "--policy", "allow", "--output", folder / "out"]
    for i, tensor in enumerate(golden["operands"]):
        words += ["--operand", operand_text(tensor, place(tensor))]
        words += ["--input", "none" if tensor is None else write(folder, f"x{i}", tensor)]
    for name, value in golden["attributes"].items():
        words += ["--attribute", f"{name}={value}"]
    if golden["dout"]:
        words += ["--gradient", write(folder, "dout", golden["dout"])]
    tool.json(*words)
    wrong = []
    for i, tensor in enumerate(golden["results"]):
        wrong += differ(f"result {i}", harness.read_npy(folder / "out" / f"result-{i}.npy"), tensor)
    for i, tensor in enumerate(golden["gradients"]):
        if tensor:
            wrong += differ(f"gradient {i}", harness.read_npy(folder / "out" / f"gradient-{i}.npy"), tensor)
    return wrong


def replicate(tensor):
    return "R"


def first(tensor):
    """The first dim on the mesh's dim."""
    return "S(0)" if tensor and tensor["shape"] else "R"


def last(tensor):
    return f"S({len(tensor['shape']) - 1})" if tensor and tensor["shape"] else "R"


def both(tensor):
    return f"{first(tensor)},{last(tensor)}"


def golden_case(golden):
    wrong = []
    for mesh, place in (("1", replicate), ("2", replicate), ("3", first), ("2", last), ("2x2", both)):
        wrong += [f"mesh {mesh}, {place.__name__}: {text}" for text in run(golden, mesh, place)]
    return wrong


def listed():
    rows = [json.loads(line) for line in tool.run("ops", "--json").stdout.splitlines()]
    names = [row["op"] for row in rows]
    softmax = next(row for row in rows if row["op"] == "softmax")
    return (harness.different("names", sorted(set(names)), sorted(names))
            + harness.different("devices", sorted(row["op"] for row in rows if row["devices"] == ["host", "cuda"]),
                                sorted(re.findall(r'X\(\w+, "(\w+)"', (CUDA / "work.h").read_text()) + PRODUCTS +
                                       re.findall(r'\] = \{"(\w+_update)"', (CUDA / "updates.c").read_text())))
            + harness.different("attributes", softmax["attributes"], {"dim": {"type": "int", "default": -1}})
            + harness.different("fields", set(softmax), {"op", "rule", "operands", "results", "attributes", "devices", "gradient"})
            + harness.different("one row", json.loads(tool.run("ops", "softmax", "--json").stdout), softmax))


def explained():
    answer = tool.json("ops", "add", "--mesh", "dp=2,tp=2", "--operand", "8x6:f32:S(0),R", "--operand", "6:f32:R,R")
    wanted = {"op": "add", "mesh": {"shape": [2, 2], "names": ["dp", "tp"]},
              "operands": [{"shape": [8, 6], "dtype": "f32", "placements": ["S(0)", "R"]}, {"shape": [6], "dtype": "f32", "placements": ["R", "R"]}],
              "results": [{"shape": [8, 6], "dtype": "f32", "placements": ["S(0)", "R"]}], "moves": [],
              "gradients": [{"operand": "x", "placements": ["S(0)", "R"], "gradient": "R"}, {"operand": "y", "placements": ["P", "R"], "gradient": "P"}],
              "bytes_received": {"max": 0, "total": 0}, "seconds": 0.0}
    return harness.different("answer", {key: answer.get(key) for key in wanted}, wanted)


def moved():
    answer = tool.json("ops", "all_reduce", "--mesh", "2", "--operand", "4x8:f32:P")
    return harness.different("moves", answer["moves"], [{"operand": "x", "from": ["P"], "to": ["R"], "bytes_received": {"max": 128, "total": 256}}])


def shardy():
    answer = tool.json("ops", "matmul", "--mesh", "2", "--operand", "4x6:f32:R", "--operand", "6x8:f32:R")
    return (harness.different("rule", answer["sdy"], "#sdy.op_sharding_rule<([i, j], [j, k])->([i, k]) {i=4, j=6, k=8} reduction={j}, custom>")
            + harness.different("a move", tool.json("ops", "all_reduce", "--mesh", "2", "--operand", "4x8:f32:P")["sdy"], None))


def timed_by_the_profile():
    """An exchange takes the latency of links, or a meeting where there are tables; bytes take no time."""
    words = ["ops", "cross_entropy", "--mesh", "2", "--operand", "4x8:f32:S(1)", "--operand", "4:i64:R", "--json"]
    wrong = []
    for cost, seconds in (("inside=3,1e30 between=3,1e30", 3), ("meeting=2:5 copy@whole=1:1e30", 5), ("inside=3,1e30 between=3,1e30 call=7", 3)):
        done = tool.run(*words, env={**os.environ, "TSR_COST": cost})
        wrong += harness.different(cost, json.loads(done.stdout)["seconds"], seconds)
    return wrong


tool.case("rows are listed", listed)
tool.case("a case is timed by the profile", timed_by_the_profile)
tool.case("the rule is told to compilers", shardy)
tool.case("a case is explained", explained)
tool.case("an op that moves tells its bytes", moved)
for line in GOLDEN.read_text().splitlines():
    golden = json.loads(line)
    attributes = "".join(f" {name}={value}" for name, value in golden["attributes"].items())
    tool.case(f"PyTorch's {golden['op']}{attributes}", golden_case, golden)

ADD = ["ops", "add", "--mesh", "2"]
X = ["--operand", "4x8:f32:S(0)"]
tool.refuses(2, ["ops", "ad"], ["no op is called \"ad\""])
tool.refuses(2, ["ops", "mm"], ["no op is called \"mm\"; use matmul"])
tool.refuses(2, [*ADD[:2], "mul", "--mesh", "2", *X, *X], ["one op"])
tool.refuses(1, [*ADD, *X], ["y is NULL"])
tool.refuses(2, [*ADD, *X, *X, *X], ["add has 2 operands"])
tool.refuses(2, [*ADD, "--operand", "4x8:S(0)", *X], ["SHAPE:DTYPE:PLACEMENTS"])
tool.refuses(1, [*ADD, *X, "--operand", "4x8:f32:S(1)"], ["add", "redistribute y from"])
tool.refuses(1, [*ADD, *X, "--operand", "4x7:f32:S(0)"], ["dim 1 of"])
tool.refuses(1, [*ADD, *X, *X, "--attribute", "dim=1"], ["add has no attribute dim"])
tool.refuses(2, ["ops", "softmax", "--mesh", "2", *X, "--attribute", "dim=one"], ["'one' is not a number"])
tool.refuses(2, [*ADD, *X, *X, "--policy", "maybe"], ["forbid, partials, warn or allow"])
tool.refuses(2, [*ADD, *X, *X, "--input", "x.npy"], ["--output"])
tool.refuses(1, [*ADD, *X, *X, "--input", "missing.npy", "--input", "missing.npy", "--output", tool.folder / "none"], ["missing.npy"])
tool.report.finish()
