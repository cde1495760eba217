#!/usr/bin/env python3
"""
The benchmarks: their fields, that figures belong together, and that results are right. No duration is compared with anything.

What measures until some time has passed, which a sanitizer on a busy machine makes minutes of, runs with the argument "measured" alone.
"""
import csv
import io
import itertools
import math
import os
import re
import resource
import statistics
import sys

import harness

tool = harness.Tool(sys.argv[1])
SIZES = {"bool": 1, "f8e4m3": 1, "f8e5m2": 1}
SPREAD = {"median", "min", "max"}
MOVE_FIELDS = {"bench": "redistribute", "engine": "threads", "device": "host", "mode": "direct"}


def check_spread(name, spread):
    wrong = harness.different(f"fields of {name}", set(spread), SPREAD)
    return wrong + harness.different(f"{name} is in order", 0 < spread["min"] <= spread["median"] <= spread["max"], True)


def close(what, found, wanted):
    return [] if math.isclose(found, wanted, rel_tol=1e-6) else [f"{what}: {found} instead of {wanted}"]


def move(mesh, shape, source, target, dtype="f32", mode="direct", payload=None):
    found = tool.json("bench", "redistribute", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "--dtype", dtype, "--mode",
                      mode, "--iterations", "2")
    wrong = [f"{k}: {found.get(k)!r}" for k, v in {**MOVE_FIELDS, "mode": mode}.items() if found.get(k) != v]
    wrong += harness.different("from, to", (found["from"], found["to"]), (source, target)) + harness.different("dtype", found["dtype"], dtype)
    wrong += check_spread("seconds", found["seconds"]) + harness.different("wrong", found["wrong"], 0)
    wrong += harness.different("iterations", found["iterations"], 2) + harness.different("mesh", found["mesh"], mesh)
    wrong += close("bandwidth", found["bandwidth"], found["payload_bytes"] / found["seconds"]["median"])
    if found["peak_bandwidth"] > 0:
        wrong += close("of_peak", found["of_peak"], found["bandwidth"] / found["peak_bandwidth"])
    if payload is not None:
        wrong += harness.different("payload", found["payload_bytes"], payload)
    return wrong + check_limit(found, mesh, source) + harness.different("the host does not enqueue", found["enqueue_seconds"], None)


def check_limit(found, mesh, source):
    """Every term of the source is read once, every result written once; the peak's copy reads and writes each byte of the payload."""
    element = SIZES.get(found["dtype"]) or int(re.search(r"\d+", found["dtype"])[0]) // 8
    sizes = [int(size) for size in mesh.split("@")[0].split("x")]
    terms = math.prod(size for size, placement in zip(sizes, source.split(",")) if placement.startswith("P"))
    read = element * terms * math.prod(found["shape"])
    written = found["payload_bytes"]
    if found["peak_bandwidth"] == 0 or written == 0:
        return []
    wrong = close("limit_bandwidth", found["limit_bandwidth"], found["peak_bandwidth"] * 2 * written / (read + written))
    return wrong + close("of_limit", found["of_limit"], found["bandwidth"] / found["limit_bandwidth"])


def move_table():
    done = tool.run("bench", "redistribute", "--mesh", "2", "--shape", "64x64", "--from", "S(0)", "--to", "R", "--iterations", "2")
    columns = done.stdout.splitlines()[2].lstrip("#").split()
    values = done.stdout.splitlines()[4].split()
    return (harness.different("columns", columns, ["size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "ratio", "of_peak", "of_limit", "noise"]) +
            harness.different("size, count, type, redop, #wrong, ratio", values[:4] + values[7:9], ["16384", "4096", "f32", "none", "0", "1.000"]))


def linear(mesh, dtype, ranks):
    done = tool.run("bench", "linear", "--mesh", mesh, "--tokens", 8, "--hidden", 12, "--intermediate", 20, "--dtype", dtype, "--iterations", 2,
                    "--warm-up", 1, "--calls", 2, "--json")
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit", (done.returncode, done.stderr), (0, "")) + harness.different("passes", [l["pass"] for l in lines], ["forward", "backward"])
    for line in lines:
        fixed = {"bench": "linear", "engine": "threads", "device": "host", "ranks": ranks, "mesh": mesh, "tokens": 8, "hidden": 12,
                 "intermediate": 20, "dtype": dtype, "wrong": 0, "iterations": 2, "warm_ups": 1, "calls": 2, "gemm_calls": 2}
        wrong += [f"{k}: {line.get(k)!r} instead of {v!r}" for k, v in fixed.items() if line.get(k) != v]
        wrong += check_spread("seconds", line["seconds"]) + check_spread("gemm_seconds", line["gemm_seconds"])
        wrong += close("of_gemm", line["of_gemm"], line["gemm_seconds"]["median"] / line["seconds"]["median"])
    return wrong


def linear_narrow(mesh, weights):
    """What few tokens read is measured in the forward pass, beside the time that reading alone takes."""
    done = tool.run("bench", "linear", "--mesh", mesh, "--tokens", 3, "--hidden", 12, "--intermediate", 20, "--weights", weights, "-n", 2, "-w", 1,
                    "--calls", 2, "--json")
    forward, backward = [harness.json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit", (done.returncode, done.stderr), (0, ""))
    for line in (forward, backward):
        fixed = {"dtype": "f32", "weights": weights, "wrong": 0, "weight_bytes": 2 * 12 * 20 * 2}
        wrong += [f"{k}: {line.get(k)!r} instead of {v!r}" for k, v in fixed.items() if line.get(k) != v]
    wrong += close("weight_bandwidth", forward["weight_bandwidth"], 960 / forward["seconds"]["median"])
    wrong += close("read_bandwidth", forward["read_bandwidth"], 960 / forward["read_seconds"])
    wrong += close("of_read", forward["of_read"], forward["weight_bandwidth"] / forward["read_bandwidth"])
    return wrong + harness.different("backward", [backward[k] for k in ("weight_bandwidth", "read_seconds", "of_read")], [None] * 3)


def linear_of_many_tokens():
    done = tool.run("bench", "linear", "--mesh", 1, "--tokens", 17, "--hidden", 4, "--intermediate", 5, "-n", 1, "-w", 0, "--calls", 1, "--json")
    return harness.different("of_read", [harness.json.loads(line)["of_read"] for line in done.stdout.splitlines()], [None, None])


def linear_checked(mesh, dtype, tokens, hidden, intermediate):
    """Sizes that do not divide, and some of which the inputs have zeros."""
    done = tool.run("bench", "linear", "--mesh", mesh, "--tokens", tokens, "--hidden", hidden, "--intermediate", intermediate, "--dtype", dtype,
                    "-n", 1, "-w", 0, "--calls", 1, "--json")
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    return harness.different("exit", (done.returncode, done.stderr), (0, "")) + harness.different("wrong", [l["wrong"] for l in lines], [0, 0])


LAYER_COLUMNS = ["tokens", "hidden", "intermediate", "type", "pass", "time", "gemm", "of_gemm", "rate", "#wrong", "noise of time", "noise of gemm"]


def layer_rows(text):
    return [dict(zip(LAYER_COLUMNS, line.split())) for line in text.splitlines() if not line.startswith("#")]


def layer_tables():
    """What rows of a table differ in stands in the rows, what they share above them; and how far the times spread."""
    text = tool.run("bench", "linear", "--mesh", 1, "--mesh", 2, "--tokens", "3,4", "--hidden", 4, "--intermediate", 5, "--dtype", "f32,f64", "-n", 1, "-w",
                    0, "--calls", 1).stdout
    heads = [line for line in text.splitlines() if line.startswith("# ") and "mesh" in line]
    wrong = harness.different("tables", [[word in head for word in ("mesh 1,", "mesh 2,", "engine threads", "device host")] for head in heads],
                              [[True, False, True, True], [False, True, True, True]])
    rows = [tuple(row[name] for name in ("tokens", "hidden", "intermediate", "type", "pass", "noise of time")) for row in layer_rows(text)]
    return wrong + harness.different("rows", rows, [(t, "4", "5", d, p, "0.00") for t in "34" for d in ("f32", "f64") for p in ("forward", "backward")] * 2)


def loops_take_long_enough():
    """Without --calls a time is the mean of many short calls."""
    done = tool.run("bench", "linear", "--mesh", 1, "--tokens", 2, "--hidden", 2, "--intermediate", 2, "-n", 1, "--json")
    return [f"{line['pass']}: {line[k]}" for line in map(harness.json.loads, done.stdout.splitlines()) for k in ("calls", "gemm_calls") if line[k] < 2]


def linear_unchecked():
    sizes = ["--mesh", "2", "--tokens", 3, "--hidden", 4, "--intermediate", 5, "-n", 1, "-w", 0, "--calls", 1]
    done = tool.run("bench", "linear", *sizes, "--check", "0", "--json")
    wrong = harness.different("exit", (done.returncode, done.stderr), (0, ""))
    wrong += harness.different("JSON", [harness.json.loads(line)["wrong"] for line in done.stdout.splitlines()], [None, None])
    for check, expected in (("0", "N/A"), ("1", "0")):
        rows = layer_rows(tool.run("bench", "linear", *sizes, "--check", check).stdout)
        wrong += harness.different(f"column with --check {check}", [row["#wrong"] for row in rows], [expected] * 2)
    done = tool.run("bench", "linear", *sizes, "--check", "2")
    return wrong + harness.different("another number", (done.returncode, "--check '2'" in done.stderr), (2, True))


def dispatch(mesh, shape, source, target, mode):
    found = tool.json("bench", "dispatch", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "-n", 3, "-w", 1, "--calls", 5,
                      "--mode", mode)
    fixed = {"bench": "dispatch", "engine": "threads", "mode": mode, "wrong": 0, "iterations": 3, "loops": 3, "warm_ups": 1, "ranks": 2, "mesh": mesh, "shape": [int(n) for n in shape.split("x")], "dtype": "f32",
             "from": source, "to": target, "calls": 5}
    return [f"{k}: {found.get(k)!r} instead of {v!r}" for k, v in fixed.items() if found.get(k) != v] + check_spread("seconds", found["seconds"])


def new_results(mesh, shape, source, target):
    """Another call is timed, and checked alike; that of every other line is said to be none."""
    words = ["bench", "dispatch", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "-n", 3, "-w", 1, "--calls", 5]
    found = tool.json(*words, "--new-result")
    wrong = harness.different("new_result, wrong, calls, iterations", [found[k] for k in ("new_result", "wrong", "calls", "iterations")], [True, 0, 5, 3])
    wrong += harness.different("without it", tool.json(*words)["new_result"], False)
    head = tool.run(*words, "--new-result").stdout.splitlines()[0]
    return wrong + harness.different("head", head.endswith(", direct, new results"), True) + check_spread("seconds", found["seconds"])


def kept_results():
    """20 calls on 2 ranks; but for the first of each rank their results have memory that is kept."""
    words = ["bench", "dispatch", "--mesh", 2, "--shape", "512x512", "--from", "S(0)", "--to", "R", "-n", 3, "-w", 1, "--calls", 5, "--new-result"]
    found, off = tool.json(*words, env={**os.environ, "TSR_KEPT_BYTES": ""}), tool.json(*words, env={**os.environ, "TSR_KEPT_BYTES": "0"})
    return (harness.different("hits", found["kept_hits"] >= 38 and found["kept_misses"] > 0, True)
            + harness.different("nothing kept", [off["kept_hits"], off["kept_misses"]], [0, 0]))


def dispatch_of_itself():
    """Without --calls the ranks agree on a number of them."""
    found = tool.json("bench", "dispatch", "--mesh", "2", "--shape", "16", "--from", "S(0)", "--to", "R")
    return harness.different("calls", found["calls"] > 1, True)


PROFILE = "inside=1e-7,1e9 between=7,2.5e10  # by hand\n"
NUMBER = r"(\d(?:\.\d+)?(?:e-?\d+)?)"


def read_profile(path):
    comment, line, *rows = path.read_text().splitlines()
    names = [word.partition("=")[0] for row in rows for word in row.split()]
    if names and (names[:3] != ["step", "piece", "meeting"] or not {"copy@whole", "keep@whole", "sum@whole"} <= set(names)):
        return names
    match = re.fullmatch(f"inside={NUMBER},{NUMBER} between={NUMBER},{NUMBER}", line)
    return [float(number) for number in match.groups()] if comment.startswith("# ") and match else line


def relative(point):
    return abs(point["model"] / point["seconds"] - 1)


# From calls to megabytes: times grow with the bytes however busy the machine is. ThreadSanitizer, which looks at each byte of a copy,
# takes as long for less.
MOST, FACTOR = (20, 32) if os.environ.get("TSR_TEST_THIN") == "2" else (24, 128)
SMALL = ["-b", "1K", "-e", 1 << MOST, "-f", FACTOR, "-n", 2, "-w", 0, "--calls", 2]


def kernels_are_fitted(found):
    """Calls of ops, the model's figures of those that were fitted, and the error over the others; none in a build without ops."""
    kernels = found["kernels"]
    others = [k for k in kernels if not k["fitted"]]
    if not kernels:
        return harness.different("error without kernels", found["kernel_error"], None)
    wrong = harness.different("ops", sorted({k["op"] for k in kernels}), ["add", "attention", "linear", "silu_mul"])
    for k in kernels:
        wrong += harness.different(f"{k['op']} of {k['size']}: in order", k["seconds_min"] <= k["seconds"] <= k["seconds_max"], True)
    wrong += close("median error of kernels", found["kernel_error"]["median"], statistics.median(map(relative, others)))
    wrong += close("max error of kernels", found["kernel_error"]["max"], max(map(relative, others)))
    return wrong + [f"no {entry} in the profile" for entry in ("call=", "pass=", "multiply@1=", "attend@1=") if "\n" + entry not in found["profile"]]


def calibrate(ranks, mode, iterations, least, most, *options):
    """The points, that the model's figures are the link's, and that the file says what the answer says."""
    given, output = tool.folder / "given.cost", tool.folder / "measured.cost"
    given.write_text(PROFILE)
    found = tool.json("bench", "calibrate", "--ranks", ranks, "--mode", mode, "--profile", given, "--output", output, *options)
    inside, between, points = found["inside"], found["between"], found["points"]
    fixed = {"bench": "calibrate", "engine": "threads", "device": "host", "mode": mode, "ranks": ranks, "dtype": "f32", "iterations": iterations,
             "between": {"latency": 7, "bandwidth": 2.5e10}, "between_error": None}
    wrong = [f"{k}: {found.get(k)!r} instead of {v!r}" for k, v in fixed.items() if found.get(k) != v]
    wrong += harness.different("moves", sorted({p["to"] for p in points}), ["R", "S(1)"])
    sizes = [p["bytes"] for p in points if p["to"] == "R"]
    wrong += harness.different("sizes ascend", sizes, sorted(set(sizes)))
    if not (sizes[0] <= least < most // 2 < sizes[-1] <= most):
        wrong.append(f"sizes go from {sizes[0]} to {sizes[-1]}")
    for p in points:
        wrong += harness.different(f"{p['bytes']}: link, what is wrong", (p["link"], p["wrong"]), ("inside", 0))
        wrong += harness.different(f"{p['bytes']}: in order", p["seconds_min"] <= p["seconds"] <= p["seconds_max"], True)
        wrong += close(f"model of {p['bytes']}", p["model"], inside["latency"] + p["bytes"] / inside["bandwidth"])
    wrong += close("median error", found["error"]["median"], statistics.median(map(relative, points)))
    wrong += close("max error", found["error"]["max"], max(map(relative, points)))
    wrong += harness.different("profile", found["profile"].splitlines(), output.read_text().splitlines()[1:])
    wrong += kernels_are_fitted(found)
    numbers = [inside["latency"], inside["bandwidth"], between["latency"], between["bandwidth"]]
    for name, written, told in zip(("latency", "bandwidth", "latency between", "bandwidth between"), read_profile(output), numbers):
        wrong += close(name + " in the file", written, told)
    return wrong + harness.different("files", sorted(path.name for path in tool.folder.glob("*.cost*")), ["given.cost", "measured.cost"])


def calibrate_sweeps():
    """Sizes are asked for, modes, ranks and dtypes stepped through, and CSV has a line a point."""
    done = tool.run("bench", "calibrate", *SMALL, "--mode", "direct,message", "--ranks", 2, "--ranks", 3, "--dtype", "u8", "--check", 0, "--json")
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    found = [(l["mode"], l["ranks"], l["dtype"], l["iterations"], l["warm_ups"]) for l in lines]
    wrong = harness.different("lines", found, [(m, r, "u8", 2, 0) for m in ("direct", "message") for r in (2, 3)])
    wrong += [f"{l['mode']}, {l['ranks']} ranks: {p}" for l in lines for p in l["points"] if p["wrong"] is not None]
    sizes = [[p["bytes"] for p in l["points"] if p["to"] == "R"] for l in lines if l["ranks"] == 2]
    wrong += harness.different("sizes", sizes, [[1024, 131072, 16777216]] * 2)
    rows = list(csv.DictReader(io.StringIO(tool.run("bench", "calibrate", *SMALL, "--ranks", 2, "--csv").stdout)))
    wrong += harness.different("points of CSV", [(r["link"], r["to"], r["bytes"], r["wrong"]) for r in rows],
                               [("inside", to, str(b), "0") for to in ("S(1)", "R") for b in (1024, 131072, 16777216)])
    return wrong


def calibrate_for_people():
    """A table; and a file behind a link, written for whom the mask says."""
    path, link = tool.folder / "masked.cost", tool.folder / "link.cost"
    path.write_text("old")
    link.symlink_to(path)
    lines = tool.run("bench", "calibrate", *SMALL, "--output", link, umask=0o027).stdout.splitlines()
    wrong = harness.different("columns", lines[2].lstrip("#").split(), ["link", "received", "to", "time", "model", "#wrong", "noise"])
    wrong += harness.different("what is wrong", {line.split()[5] for line in lines if line.startswith("    inside")}, {"0"})
    wrong += harness.different("the profile comes last", lines[-1], path.read_text().splitlines()[-1])
    wrong += harness.different("mode", oct(path.stat().st_mode & 0o777), oct(0o640)) + harness.different("link", link.is_symlink(), True)
    wrong += harness.different("profile", len(read_profile(path)), 4)
    path.unlink()
    link.unlink()
    return wrong


def profile_that_cannot_be_written_stays_as_it_was():
    path = tool.folder / "kept.cost"
    path.write_text("old")
    done = tool.run("bench", "calibrate", *SMALL, "--ranks", 2, "--output", path,
                    preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (10, 10)))
    wrong = harness.different("exit status", done.returncode, 1) + harness.different("standard output", done.stdout, "")
    wrong += harness.different("sentence", done.stderr.startswith(f"tessera: --output {path} cannot be written: "), True)
    wrong += harness.different("file", path.read_text(), "old")
    return wrong + harness.different("left", sorted(p.name for p in tool.folder.glob("kept*")), ["kept.cost"])


if sys.argv[3:] == ["measured"]:
    for ranks, mode in ((2, "direct"), (3, "message")):
        tool.case(f"calibrate, {ranks} ranks, {mode}", calibrate, ranks, mode, 5, 64, 1 << 26)
    tool.case("calibrate sweeps", calibrate_sweeps)
    tool.case("dispatch finds out how many calls fill a loop", dispatch_of_itself)
    if tool.run("bench", "linear", "--help").returncode == 0:
        tool.case("linear makes many short calls for a time", loops_take_long_enough)
    else:
        tool.report.skip("linear makes many short calls for a time", "this build has no BLAS")
    tool.report.finish()


def thinned(cases):
    return harness.thinned(cases, 4)


for source, target in thinned(itertools.product(["R", "P", "S(0)", "S(1)", "S(1;interleave=2)"], repeat=2)):
    tool.case(f"3 ranks, {source} -> {target} is right", move, "3", "31x13", source, target)
PAIRS = [("S(0),S(1)", "S(1),S(0)"), ("P,P", "R,S(0)"), ("P,S(0)", "S(0),P"), ("S(0),S(0)", "P,P"), ("R,S(0)", "R,P"), ("S(1),P", "S(1),R"),
         ("P,R", "P,S(0)"), ("S(0)[1],S(0)[0]", "S(0),S(0)"), ("P(max),P(max)", "R,P(max)"), ("P(avg),P", "R,R"), ("P(min),R", "S(0),P(prod)")]
for source, target in thinned(PAIRS):
    for mode in ("direct", "message"):
        tool.case(f"2x3 ranks, {source} -> {target} is right, {mode}", move, "2x3", "12x10", source, target, "f32", mode)
OPS = {"f64": "sum avg min max prod", "f16": "sum avg min max prod", "bf16": "sum avg min max prod", "f8e4m3": "sum avg min max prod",
       "f8e5m2": "sum avg min max prod", "i64": "sum min max prod", "i8": "sum min max prod", "u8": "sum min max prod", "u16": "sum min max prod",
       "bool": "min max", "c64": "sum avg prod", "c128": "sum avg prod"}
for dtype, ops in thinned(OPS.items()):
    for op in ops.split():
        partial = "P" if op == "sum" else f"P({op})"
        tool.case(f"{dtype}, {partial} -> S(0) is right", move, "3", "7x5", partial, "S(0)", dtype)
        tool.case(f"{dtype}, R -> {partial} is right", move, "3", "7x5", "R", partial, dtype)
tool.case("the payload is what all destinations hold", move, "4", "16x16", "S(0)", "R", "f32", "direct", 4 * 16 * 16 * 4)
tool.case("an empty tensor", move, "2", "0x4", "S(0)", "R", "f32", "direct", 0)
tool.case("a scalar", move, "2", "scalar", "P", "R", "f64", "direct", 16)
tool.case("a mesh of other ranks", move, "2@[2,0]", "8x8", "S(0)", "S(1)")
tool.case("the table has nccl-tests' columns", move_table)
if tool.run("bench", "linear", "--help").returncode == 0:
    for mesh, ranks in (("1", 1), ("2", 2), ("3", 3), ("dp=2,tp=2", 4)):
        for dtype in thinned(("f32", "f64", "f16", "bf16")):
            tool.case(f"linear on {mesh}, {dtype}", linear, mesh, dtype, ranks)
    for weights in ("f16", "bf16"):
        tool.case(f"linear with weights of {weights} beside f32 is right", linear_narrow, "2", weights)
    tool.case("linear of many tokens does not measure reading", linear_of_many_tokens)
    for mesh, sizes in (("1", (5, 1, 7)), ("3", (37, 65, 101)), ("4", (2, 3, 2)), ("2x3", (1, 70, 33)), ("dp=2,tp=2", (40, 97, 64)), ("2@[2,0]", (9, 8, 6))):
        for dtype in thinned(("f32", "f64", "bf16")):
            tool.case(f"linear on {mesh} is right, {dtype}, {'x'.join(map(str, sizes))}", linear_checked, mesh, dtype, *sizes)
    tool.case("linear without a check", linear_unchecked)
    tool.case("linear has tables of what their rows share", layer_tables)
    tool.refuses(2, ["bench", "linear", "--mesh", "2", "--tokens", "8,x", "--hidden", "2", "--intermediate", "2"], ["--tokens", "x"])
    tool.refuses(1, ["bench", "linear", "--mesh", "2", "--tokens", "8", "--hidden", "2,0", "--intermediate", "2"], ["--hidden", "0"])
else:
    tool.report.skip("linear layers", "this build has no BLAS")
for source, target in (("S(0)", "R"), ("P", "R"), ("S(0)", "S(1)")):
    for mode in ("direct", "message"):
        tool.case(f"dispatch of {source} -> {target}, {mode}", dispatch, "2", "16x4", source, target, mode)
for mesh, shape, source, target in (("2", "16x4", "S(0)", "S(1)"), ("2", "16x4", "P", "R"), ("3", "7x5", "S(0)", "R"), ("2@1", "4", "S(0)", "R"), ("2", "0x4", "S(0)", "R")):
    tool.case(f"new results of {source} -> {target} on {mesh}", new_results, mesh, shape, source, target)
tool.case("results of some size have memory that was kept", kept_results)
tool.refuses(1, ["bench", "dispatch", "--mesh", 2, "--shape", 4, "--from", "P", "--to", "R", "--new-result", "--mode", "message"], ["--new-result", "--mode message"])
tool.refuses(2, ["bench", "redistribute", "--mesh", 2, "--shape", 4, "--from", "P", "--to", "R", "--new-result"], ["--new-result"])
for ranks, mode in ((2, "direct"), (3, "message")):
    tool.case(f"calibrate by counts, {ranks} ranks, {mode}", calibrate, ranks, mode, 2, 1 << 10, 1 << MOST, *SMALL)
for status, words, mentions in ((1, ["-b", "64"], ["2 to 32", "make 1"]), (1, ["-b", "64", "-e", "1G", "-f", "1.1"], ["2 to 32"]), (2, ["-e", "64"], ["--begin"]),
                                (1, ["-b", "1", "-e", "16", "--ranks", 2, "--dtype", "c128"], ["all sizes come to 16 bytes", "--begin", "--end"]),
                                (1, ["-b", "8", "-e", "16", "--ranks", 4, "--dtype", "f32"], ["all sizes come to 12 bytes", "--begin", "--end"]),
                                (2, ["-b", "64", "-e", "4K", "--ranks", "2,x"], ["--ranks", "x"]), (2, ["--mode", "direct,message", "--output", "x"], ["--output", "2"]),
                                (2, ["--json", "--csv"], ["--csv"]), (2, ["--device", "x"], ["--device", "x"]), (2, ["-c", "2"], ["--check"])):
    tool.refuses(status, ["bench", "calibrate", *words], mentions)
tool.case("calibrate has a table, and replaces what a link points to, with the usual permissions", calibrate_for_people)
tool.case("calibrate leaves the file as it was where it cannot be written", profile_that_cannot_be_written_stays_as_it_was)
tool.report.finish()
