#!/usr/bin/env python3
"""`tessera bench redistribute` over many things: sizes, combinations, columns, CSV, and the line that says how far it is."""
import csv
import io
import itertools
import json
import math
import os
import pty
import re
import subprocess
import sys

import harness
import moves

tool = harness.Tool(sys.argv[1])
SIZES = {"f64": 8, "f32": 4, "bf16": 2, "i32": 4, "u8": 1}
COLUMNS = ["size", "count", "type", "redop", "time", "algbw", "busbw", "#wrong", "ratio", "of_peak", "of_limit", "noise"]
BENCH = ["bench", "redistribute", "-n", 1, "-w", 0]


def run(*arguments):
    done = tool.run(*BENCH, *arguments)
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return done.stdout


def rows(*arguments):
    return [json.loads(line) for line in run(*arguments, "--json").splitlines()]


def layouts(row):
    mesh = [int(n) for n in row["mesh"].split("x")]
    return [moves.Layout(mesh, row[side].split(","), row["shape"]) for side in ("from", "to")]


def largest_shard(row):
    return SIZES[row["dtype"]] * max(len(layout.held(rank)) for layout in layouts(row) for rank in layout.ranks)


def sizes_are_exact(mesh, source, target, dtype):
    """Powers of two, cut evenly: every size is the one that was asked for."""
    found = rows("--mesh", mesh, "-b", 64, "-e", "4K", "-f", 4, "--from", source, "--to", target, "--dtype", dtype)
    wrong = harness.different("sizes", [r["size_bytes"] for r in found], [64, 256, 1024, 4096])
    return wrong + harness.different("largest shards", [largest_shard(r) for r in found], [64, 256, 1024, 4096])


def sizes_are_near(mesh, source, target, dtype):
    """Cuts of other numbers: no more than was asked for, and not much less."""
    wrong = []
    for row, asked in zip(rows("--mesh", mesh, "-b", 2000, "-e", 50000, "-f", 5, "--from", source, "--to", target, "--dtype", dtype), (2000, 10000, 50000)):
        wrong += harness.different("size", row["size_bytes"], largest_shard(row))
        wrong += [] if 0.6 * asked <= row["size_bytes"] <= asked else [f"{asked} bytes were asked for: {row['shape']} has {row['size_bytes']}"]
    return wrong


def lists_of_sizes():
    words = ["--mesh", 1, "--from", "R", "--to", "R", "--dtype", "u8"]
    one = [r["size_bytes"] for r in rows(*words, "-b", "1K")]
    doubled = [r["size_bytes"] for r in rows(*words, "--begin", "1k", "--end", 8191)]
    slow = [r["size_bytes"] for r in rows(*words, "-b", 1, "-e", 4, "-f", 1.01)]
    return harness.different("sizes", (one, doubled, slow), ([1024], [1024, 2048, 4096], [1, 2, 3, 4]))


def sizes_are_met_from_the_least_on(mesh, source, target, first, second):
    """Too few bytes for all ranks to hold something come to the least tensor of which they do, once."""
    words = ["--mesh", mesh, "-b", 4, "-e", 4096, "-f", 4, "--from", source, "--to", target, "--dtype", "f32"]
    found = rows(*words)
    sizes = [r["size_bytes"] for r in found]
    wrong = harness.different("sizes", sizes, [first, *(4 ** k for k in range(1, 7) if 4 ** k >= second)])
    wrong += harness.different("largest shards", [largest_shard(r) for r in found], sizes)
    wrong += [f"{r['shape']}: rank {rank} holds nothing" for r in found for layout in layouts(r) for rank in layout.ranks if not layout.held(rank)]
    return wrong + harness.different("lines of the table", len(table(run(*words))[0][1]), len(found))


def the_one_row_of_a_sweep_is_explained():
    text = run("--mesh", 8, "-b", 4, "-e", 16, "-f", 4, "--from", "S(0)", "--to", "S(1)", "--dtype", "f32")
    return harness.different("payload", re.findall(r"^# payload (\d+) bytes", text, re.MULTILINE), ["256"])


def figures_belong_together(mesh, source, target, dtype, shape):
    row, = rows("--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "--dtype", dtype)
    before, after = layouts(row)
    move = moves.Move(before, after, SIZES[dtype])
    seconds = row["seconds"]["median"]
    plan = tool.json("plan", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "--dtype", dtype)
    terms = math.prod(before.mesh[d] for d in before.partial_dims())
    payload = SIZES[dtype] * sum(len(after.held(r)) for r in after.ranks)
    touched = SIZES[dtype] * math.prod(before.shape) * terms + payload
    wanted = {"algbw": largest_shard(row) / seconds, "busbw": plan["bytes_received"]["max"] / seconds, "bandwidth": payload / seconds,
              "limit_bandwidth": row["peak_bandwidth"] * 2 * payload / touched, "of_limit": row["bandwidth"] / row["limit_bandwidth"],
              "of_peak": row["bandwidth"] / row["peak_bandwidth"]}
    wrong = [f"{k}: {row[k]} instead of {v}" for k, v in wanted.items() if not math.isclose(row[k], v, rel_tol=1e-9)]
    least = move.least_total()
    ratio = plan["bytes_received"]["total"] / least if least else 1.0
    redop = next((source.split(",")[d] for d in move.reduced), None)
    redop = "none" if redop is None or not move.reduced else "sum" if redop == "P" else redop[2:-1]
    return (wrong + harness.different("ratio", row["ratio"], ratio) + harness.different("redop", row["redop"], redop) +
            harness.different("wrong", row["wrong"], 0) + harness.different("warm_ups, iterations", (row["warm_ups"], row["iterations"]), (0, 1)))


def table(text):
    """[(comment, [rows as dicts])] of a printed sweep."""
    tables = []
    for line in text.splitlines():
        if " -> " in line:
            tables.append((line, []))
        elif not line.startswith("#"):
            tables[-1][1].append(dict(zip(COLUMNS, line.split())))
    return tables


def every_combination_has_its_row():
    words = ["--mesh", 2, "--mesh", "2@1", "--from", "S(0)", "--to", "R", "--from", "P(max)", "--to", "S(1)", "--dtype", "f32,i32", "--dtype", "u8",
             "--mode", "direct,message", "-b", 64, "-e", 128]
    found = [(r["mode"], r["mesh"], r["from"], r["to"], r["dtype"], r["size_bytes"]) for r in rows(*words)]
    wanted = [(mode, mesh, *pair, dtype, size) for mode in ("direct", "message") for mesh in ("2", "2@1")
              for pair in (("S(0)", "R"), ("P(max)", "S(1)")) for dtype in ("f32", "i32", "u8") for size in (64, 128)]
    wrong = harness.different("rows", found, wanted)
    text = run(*words)
    tables = table(text)
    wrong += harness.different("tables", [len(t[1]) for t in tables], [6] * 8)
    wrong += harness.different("columns", {tuple(l.lstrip("#").split()) for l in text.splitlines() if "algbw" in l}, {tuple(COLUMNS)})
    cells = [(r["type"], int(r["size"]), int(r["count"])) for _, each in tables[:1] for r in each]
    return wrong + harness.different("cells", cells, [(d, s, s // SIZES[d]) for d in ("f32", "i32", "u8") for s in (64, 128)])


def the_table_rounds_what_json_says():
    """Times differ from run to run, but algbw and busbw of a row are its sizes over its time."""
    _, cells = table(run("--mesh", 2, "--shape", "512x512", "--from", "P(max)", "--to", "R"))[0]
    row, = cells
    time = float(row["time"]) * 1e-6
    wrong = harness.different("exact", (row["size"], row["count"], row["type"], row["redop"], row["#wrong"], row["ratio"], row["noise"]),
                              ("1048576", "262144", "f32", "max", "0", "1.000", "0.00"))
    for name, count in (("algbw", 1048576), ("busbw", 1048576)):
        low, high = (count / (time + sign * 0.005e-6) / 1e9 for sign in (1, -1))
        wrong += [] if low - 0.00501 <= float(row[name]) <= high + 0.00501 else [f"{name} is {row[name]}, from {low} to {high}"]
    return wrong


def shapes_are_named_where_there_are_several():
    words = ["--mesh", 2, "--from", "S(0)", "--to", "R"]
    named = [[line for line in run(*words, *more).splitlines() if line.startswith("# shape")]
             for more in (["--shape", "4x16,16x4"], ["--shape", "4x16"], ["-b", 64, "-e", 128])]
    return harness.different("lines", named, [["# shape 4x16", "# shape 16x4"], [], []])


def flattened(row):
    flat = {}
    for name, value in row.items():
        flat.update({f"{name}.{k}": v for k, v in value.items()} if isinstance(value, dict) else {name: value})
    return flat


def csv_has_the_fields_of_json():
    words = ["--mesh", "a=2,b=1", "--shape", "4x4,6x3x2", "--from", "S(0),R", "--to", "R,R"]
    json_rows = [flattened(r) for r in rows(*words)]
    csv_rows = list(csv.DictReader(io.StringIO(run(*words, "--csv"))))
    names = [n for n in json_rows[0] if n != "enqueue_seconds"]
    wrong = harness.different("names", [n for n in csv_rows[0] if not n.startswith("enqueue_seconds")], names)
    fixed = ["bench", "engine", "device", "mode", "mesh", "dtype", "from", "to", "redop"]
    for found, wanted in zip(csv_rows, json_rows):
        wrong += [f"{n}: {found[n]!r} instead of {wanted[n]!r}" for n in fixed if found[n] != wanted[n]]
        wrong += harness.different("shape", found["shape"], "x".join(map(str, wanted["shape"])))
        wrong += harness.different("enqueue_seconds", found["enqueue_seconds.median"], "")
        wrong += [f"{n} is {found[n]!r}" for n in ("seconds.median", "bandwidth", "of_limit", "ratio") if not float(found[n]) > 0]
    scalar, = csv.DictReader(io.StringIO(run("--mesh", 2, "--shape", "scalar", "--from", "P", "--to", "R", "--csv")))
    wrong += harness.different("shape", scalar["shape"], "scalar")
    return wrong + harness.different("rows", len(csv_rows), 2)


def unchecked():
    words = ["--mesh", 2, "--shape", "8x8", "--from", "S(0)", "--to", "R", "-c", 0]
    _, cells = table(run(*words))[0]
    return harness.different("wrong", (rows(*words)[0]["wrong"], cells[0]["#wrong"]), (None, "N/A"))


def on_a_terminal(*arguments):
    """What a run writes to a terminal that is its standard error."""
    master, slave = pty.openpty()
    done = subprocess.Popen([tool.path, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=slave)
    os.close(slave)
    text = b""
    while True:
        try:
            more = os.read(master, 4096)
        except OSError:
            break
        if not more:
            break
        text += more
    os.close(master)
    return done.wait(), text.decode()


def a_long_run_says_how_far_it_is():
    """Runs are made longer until one is long enough for lines, however quick the machine is."""
    count, lines = 100, []
    while len(lines) < 3 and count < 1 << 20:
        count *= 2
        status, text = on_a_terminal("bench", "redistribute", "--mesh", 2, "--shape", "512x512", "--from", "S(0)", "--to", "R", "-n", count)
        lines = text.split("\r\x1b[K")
    wrong = harness.different("exit status", status, 0) + harness.different("lines", len(lines) > 2 and lines[0] == lines[-1] == "", True)
    return wrong + [f"{line!r}" for line in lines[1:-1] if f" of {count + 4}, about " not in line or not line.endswith(" s left")]


def first_line(*arguments):
    """What a long run on a terminal first says of how far it is."""
    master, slave = pty.openpty()
    with subprocess.Popen([tool.path, *map(str, arguments)], stdout=subprocess.DEVNULL, stderr=slave) as running:
        os.close(slave)
        text = b""
        while b" left" not in text:
            text += os.read(master, 4096)
        running.kill()
    os.close(master)
    return re.search(r"(\d+) of (\d+), about \d+ s left", text.decode())


def says_how_far_it_is(steps, *arguments):
    found = first_line("bench", *arguments)
    return harness.different("steps", (int(found[2]), 0 < int(found[1]) < steps), (steps, True))


def a_short_run_says_nothing():
    return harness.different("a terminal", on_a_terminal(*BENCH, "--mesh", 2, "--shape", "8x8", "--from", "S(0)", "--to", "R"), (0, ""))


for mesh, source, target in [("2", "S(0)", "R"), ("2", "P", "R"), ("2", "P", "S(0)"), ("2", "S(0)", "S(1)"), ("2x2", "S(0),S(1)", "R,S(0)")]:
    for dtype in ("f32", "u8") if mesh == "2" else ("bf16",):
        tool.case(f"sizes of {source} -> {target} on {mesh}, {dtype}", sizes_are_exact, mesh, source, target, dtype)
for mesh, source, target in [("3", "S(0)", "S(1)"), ("3", "S(0)", "R"), ("3x2", "S(0),S(1)", "S(2),R"), ("5", "P", "S(2)")]:
    tool.case(f"sizes of {source} -> {target} on {mesh}", sizes_are_near, mesh, source, target, "f32")
for case in [("8", "S(0)", "S(1)", 32, 64), ("4x2", "S(0),S(0)", "R,S(1)", 32, 64),
             ("2x2x2", "S(0),S(1),S(2)", "S(2),S(0),S(1)", 16, 64)]:
    tool.case(f"sizes of {case[1]} -> {case[2]} on {case[0]} from the least on", sizes_are_met_from_the_least_on, *case)
tool.case("the one row that a sweep comes to is explained", the_one_row_of_a_sweep_is_explained)
tool.case("sizes without an end, doubled, and one by one", lists_of_sizes)
for mesh, source, target, dtype, shape in [
        ("2", "S(0)", "S(1)", "f32", "16x16"), ("3", "P", "R", "i32", "9x7"), ("2x3", "P(max),S(0)", "S(1),S(0)", "f64", "12x10"),
        ("2x2", "P,P", "P,R", "bf16", "8x8"), ("4", "R", "P", "f32", "6x6"), ("4", "R", "S(1)", "u8", "7x9"), ("1", "R", "R", "f32", "5x5")]:
    tool.case(f"figures of {source} -> {target} on {mesh}, {shape} {dtype}", figures_belong_together, mesh, source, target, dtype, shape)
tool.case("every combination has its row, in tables of what they share", every_combination_has_its_row)
tool.case("shapes are named where there are several", shapes_are_named_where_there_are_several)
tool.case("a row's figures belong together", the_table_rounds_what_json_says)
tool.case("CSV has the fields of JSON", csv_has_the_fields_of_json)
tool.case("-c 0 checks nothing", unchecked)
tool.case("a long run on a terminal says how far it is", a_long_run_says_how_far_it_is)
MANY = 30000
WARMED, PLAIN = MANY + 2 + 2, MANY + 2  # beside the iterations: warm-up, filling, checking
LAYERS = tool.run("bench", "linear", "--help").returncode == 0
LONG = {"dispatch": (2 * PLAIN, ["--mesh", 2, "--shape", "8,16", "--from", "S(0)", "--to", "R"]),
        "plan": (2 * (MANY * 30 + 1), ["--mesh", 16, "--mesh", 32, "--shape", "64x64", "--from", "S(0)", "--to", "S(1)", "-n", MANY * 30]),
        # The links' moves, and those of the tables, which are not checked: 3 small ones, 4 of what is kept, 4 of sums, 7 of copies. The one
        # call of an op that touches no more bytes.
        "calibrate": (6 * PLAIN + (19 if LAYERS else 18) * (MANY + 1), ["--ranks", 2, "-b", "1K", "-e", "16K", "-f", 4]),
        "redistribute": (2 * WARMED, ["--mesh", 4, "-b", 4, "-e", 64, "-f", 4, "--from", "S(0)", "--to", "S(1)"]),
        "linear": (1 + 2 * (WARMED - 1), ["--mesh", 1, "--tokens", 2, "--hidden", 2, "--intermediate", 2]),
        "suite": (15 * WARMED + 5 * PLAIN + 2 * (MANY + 1) + (2 * (1 + 2 * (WARMED - 1)) if LAYERS else 0), ["--quick"])}
for kind, (steps, words) in LONG.items():
    if kind != "linear" or LAYERS:
        tool.case(f"bench {kind} says on a terminal how far it is", says_how_far_it_is, steps, kind, *words, *([] if "-n" in words else ["-n", MANY]))
tool.case("a short one says nothing", a_short_run_says_nothing)

MOVE = ["bench", "redistribute", "--mesh", "2", "--from", "S(0)", "--to", "R"]
for status, more, mentions in [
        (2, [], ["--shape", "--begin"]), (2, ["-b", "64", "--shape", "8"], ["--shape", "--begin"]), (2, ["-e", "64"], ["--begin"]),
        (2, ["--shape", "8x8", "-f", "2"], ["--begin"]), (2, ["-b"], ["-b", "BYTES"]), (2, ["-b", "64P"], ["64P", "1T"]), (1, ["-b", "1025T"], ["1024T"]), (1, ["-b", "1T", "-e", "1G"], ["1T"]), (2, ["-b", "K"], ["K"]),
        (2, ["-b", "-4"], ["-4"]), (2, ["-b", "1.5K"], ["1.5K"]), (1, ["-b", "0"], ["--begin", "0"]), (1, ["-b", "9999999G"], ["9999999G"]),
        (2, ["-b", "99999999999999999999"], ["99999999999999999999"]), (1, ["-b", "64", "-e", "32"], ["--end", "32"]),
        (1, ["-b", "64", "-f", "1"], ["--factor"]), (2, ["-b", "64", "-f", "x"], ["--factor"]), (2, ["-b", "64", "-c", "yes"], ["--check"]),
        (2, ["-b", "64", "-w", "x"], ["--warm-up"]), (1, ["-b", "64", "-w", "9999999"], ["--warm-up"]), (1, ["-b", "64", "-n", "0"], ["--iterations"]),
        (2, ["-b", "64", "--json", "--csv"], ["--json", "--csv"]), (2, ["-b", "64", "--dtype", "f32,x"], ["x"]), (2, ["-q"], ["-q"]),
        (2, ["-b", "64", "--engine", "threads,x"], ["--engine 'x'"]), (2, ["-b", "64", "--device", "host,x"], ["--device 'x'"]),
        (2, ["-b", "64", "--from", "Q"], ["--from", "Q"]), (1, ["-b", "64", "--from", "S(9)"], ["9"]), (2, ["-b", "64", "--mode", ""], ["--mode"]),
        (2, ["-b", "64", "--from", "R", "--from", "R", "--to", "R"], ["3 times", "2 times"])]:
    words = MOVE[:4] + MOVE[6:] + ["--to", "R"] if "--from" in more and len(more) < 6 else MOVE
    tool.refuses(status, [*words, *more], mentions)
tool.report.finish()
