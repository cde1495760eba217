#!/usr/bin/env python3
"""`tessera bench suite`, and sweeps and CSV of the benchmarks that it runs: dispatch, linear, plan, simulate."""
import contextlib
import csv
import io
import itertools
import json
import math
import os
import pathlib
import subprocess
import sys

import harness

tool = harness.Tool(sys.argv[1])
LAYERS = tool.run("bench", "linear", "--help").returncode == 0
MOVES = [("S(0)", "S(1)"), ("S(1)", "S(0)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")]


def lines(*arguments):
    done = tool.run("bench", *arguments, "--json")
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def the_suite_holds_every_kind():
    found = lines("suite", "--quick")
    kinds = {k: [l for l in found if l["bench"] == k] for k in ("redistribute", "dispatch", "linear", "plan")}
    wrong = harness.different("lines of other kinds", len(found) - sum(map(len, kinds.values())), 0)
    moved = {(l["dtype"], l["mode"], l["from"], l["to"]) for l in kinds["redistribute"]}
    wrong += harness.different("moves", moved, {(d, m, *pair) for d, m in (("f32", "direct"), ("f32", "message"), ("bf16", "direct")) for pair in MOVES})
    wrong += harness.different("small moves", {(l["from"], l["to"]) for l in kinds["dispatch"]}, set(MOVES))
    wrong += harness.different("passes", [l["pass"] for l in kinds["linear"]], ["forward", "backward"] * 2 if LAYERS else [])
    wrong += harness.different("ranks of plans", [l["ranks"] for l in kinds["plan"]], [2 ** 20] * 2)
    wrong += [f"{l} is wrong" for l in found if l["bench"] != "plan" and l["wrong"] != 0]
    return wrong + harness.different("messages of the largest plan", max(l["messages_received"] for l in kinds["plan"]), 1023)


def the_suite_runs_on_other_ranks():
    found = lines("suite", "--quick", "--ranks", 3)
    return harness.different("ranks", {l["ranks"] for l in found if l["bench"] != "plan"}, {3})


def the_suite_passes_options_on():
    """How often to measure, and whether to check; and CSV with the names of each kind of line once."""
    found = lines("suite", "--quick", "-n", 2, "-w", 1, "-c", 0)
    wrong = harness.different("iterations, warm_ups", {(l["iterations"], l["warm_ups"]) for l in found}, {(2, 1)})
    wrong += harness.different("what is wrong", {l["wrong"] for l in found if l["bench"] != "plan"}, {None})
    done = tool.run("bench", "suite", "--quick", "-n", 2, "-w", 1, "-c", 0, "--csv")
    kinds = [row[0] for row in csv.reader(io.StringIO(done.stdout))]
    wanted = [kind for _, group in itertools.groupby(l["bench"] for l in found) for kind in ("bench", *group)]
    return wrong + harness.different("exit", (done.returncode, done.stderr), (0, "")) + harness.different("lines of CSV", kinds, wanted)


def tables(*arguments):
    """[(head, [cells by column])] of what is printed for people: a head begins with "# " and a word, names of columns with "#  "."""
    found, names = [], []
    for line in tool.run("bench", *arguments).stdout.splitlines():
        if not line.startswith("#"):
            found[-1][1].append(dict(zip(names, line.split())))
        elif line[1:3] != "  ":
            found.append((line, []))
        elif "(" not in line:
            names = line[1:].split()
    return found


def dispatch_has_tables():
    """What rows of a table differ in stands in the rows, all else above them."""
    found = tables("dispatch", "--mesh", 2, "--from", "S(0)", "--to", "R", "--from", "P", "--to", "S(1)", "--mode", "direct,message", "--dtype", "f32,u8",
                   "-b", 64, "-e", 128, "-n", 1, "-w", 0, "--calls", 2)
    heads = [f"# dispatch {move} on mesh 2, engine threads, device host, {mode}" for mode in ("direct", "message") for move in ("S(0) -> R", "P -> S(1)")]
    wrong = harness.different("heads", [head for head, _ in found], heads)
    for head, rows in found:
        wrong += harness.different(head, [(r["size"], r["type"], r["#wrong"], r["ratio"], r["noise"]) for r in rows],
                                   [(size, dtype, "0", "1.000", "0.00") for dtype in ("f32", "u8") for size in ("64", "128")])
    return wrong


def plan_has_tables():
    found = tables("plan", "--mesh", 4, "--mesh", 8, "--from", "S(0)", "--to", "S(1)", "--to", "R", "--shape", "8x8,16x4", "--dtype", "f32,u8", "-n", 1)
    wrong = harness.different("heads", [head for head, _ in found], [f"# one rank's plan from S(0) to {to}, direct" for to in ("S(1)", "R")])
    for head, rows in found:
        wrong += harness.different(head, [(r["ranks"], r["mesh"], r["type"], r["shape"]) for r in rows],
                                   [(m, m, d, s) for m in ("4", "8") for d in ("f32", "u8") for s in ("8x8", "16x4")])
    return wrong


def plan_takes_sizes():
    """Of the largest shard: on 2^20 ranks too, and what has no number is refused."""
    shapes = [math.prod(l["shape"]) for l in lines("plan", "--mesh", 1 << 20, "-b", "1K", "-e", "1M", "-f", 1024, "--from", "S(0)", "--to", "S(0;balanced)", "-n", 1)]
    return harness.different("elements", shapes, [1 << 28, 1 << 38])


def a_sweep_ends_with_the_mesh_that_was_given(kind, mesh, smaller, *placements):
    """Its own line is the one that it has without --sweep; the smaller ones have neither names nor ranks of theirs."""
    words = [kind, "--mesh", mesh, "--shape", "96x96", "--from", placements[0], "--to", placements[1]]
    *halved, last = lines(*words, "--sweep")
    alone, = lines(*words)
    measured = {"seconds"} if kind == "plan" else set()
    return (harness.different("smaller meshes", [l["mesh"] for l in halved], smaller) + harness.different("the mesh's", last["mesh"], mesh) +
            harness.different("its line", {n: v for n, v in last.items() if n not in measured}, {n: v for n, v in alone.items() if n not in measured}))


def running_threads(process):
    """The threads of a process, but for its first, that run or want to."""
    found = set()
    for task in pathlib.Path(f"/proc/{process.pid}/task").iterdir():
        with contextlib.suppress(OSError):
            if (task / "stat").read_text().rpartition(")")[2].split()[0] == "R":
                found.add(int(task.name))
    return found - {process.pid}


def nothing_else_runs_while_plans_are_timed():
    """OpenBLAS lets the threads that it starts when it is loaded spin for 2^28 ticks here, which plans of 64 x 64 do not take. When the first
    line has come they sleep: that of the first mesh, after which the second takes long."""
    words = [tool.path, "bench", "plan", "--mesh", "4", "--mesh", "262144", "--shape", "262144x262144", "--from", "S(0)", "--to", "S(1)", "-n", "100", "-w", "0", "--csv"]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env={**os.environ, "OPENBLAS_THREAD_TIMEOUT": "28"}) as running:
        for _ in range(2):
            running.stdout.readline()
        # A thread of a sanitizer wakes up now and then; what spins is seen every time.
        spinning = set.intersection(*(running_threads(running) for _ in range(10)))
        running.kill()
    return harness.different("threads that spin beside the one that plans", len(spinning), 0)


def every_combination(wanted, names, *arguments):
    return harness.different("rows", [tuple(row[name] for name in names) for row in lines(*arguments)], wanted)


def csv_of(*arguments):
    """CSV has the names of JSON's fields, once, and as many rows."""
    found = lines(*arguments)
    done = tool.run("bench", *arguments, "--csv")
    rows = list(csv.DictReader(io.StringIO(done.stdout)))
    wrong = harness.different("exit", (done.returncode, done.stderr), (0, "")) + harness.different("rows", len(rows), len(found))
    wrong += harness.different("names", list(dict.fromkeys(name.split(".")[0] for name in rows[0])), list(found[0]))
    for row, line in zip(rows, found):
        wrong += [f"{n}: {row[n]!r} instead of {v!r}" for n, v in line.items() if isinstance(v, str) and n != "peak_copy" and row[n] != v]
        wrong += [f"{n}: {row[n]!r}" for n in row if None in (n, row[n])]
    return wrong


DISPATCH = ["dispatch", "--mesh", 2, "--mesh", "a=2@1", "--from", "S(0)", "--to", "R", "--to", "S(1)", "--shape", "4x4,16x2", "--calls", 2, "-n", 2, "-w", 0]
PLAN = ["plan", "--mesh", 4, "--mesh", 8, "--shape", "64x64", "--from", "S(0)", "--to", "S(1)", "--to", "R", "--iterations", 2]
LINEAR = ["linear", "--mesh", 1, "--mesh", 2, "--tokens", "4,8", "--hidden", 4, "--intermediate", "4,6", "--dtype", "f32,f64", "--iterations", 1, "--calls", 1]

# The suite measures until times have passed, which a sanitizer on a busy machine makes minutes of.
if sys.argv[2:] == ["measured"]:
    tool.case("the suite holds every kind of line", the_suite_holds_every_kind)
    tool.case("the suite runs on other ranks", the_suite_runs_on_other_ranks)
    tool.report.finish()
tool.case("the suite passes options on", the_suite_passes_options_on)
tool.case("dispatch has tables of what their rows share", dispatch_has_tables)
tool.case("plan has tables of what their rows share", plan_has_tables)
tool.case("plan takes sizes", plan_takes_sizes)
if pathlib.Path("/proc/self/task").exists():
    tool.case("nothing else runs while plans are timed", nothing_else_runs_while_plans_are_timed)
else:
    tool.report.skip("nothing else runs while plans are timed", "without /proc nobody tells what threads do")
for kind in ("plan", "simulate"):
    for mesh, smaller, *placements in [("24@4", [], "S(0)", "S(1)"), ("48@4", ["24"], "S(0)", "S(1)"), ("dp=2,tp=16", ["2x8"], "S(0),R", "R,S(1)"),
                                       ("2x8@[" + ",".join(map(str, range(40, 24, -1))) + "]", [], "S(0),S(1)", "R,S(0)")]:
        tool.case(f"{kind}: a sweep ends with {mesh}", a_sweep_ends_with_the_mesh_that_was_given, kind, mesh, smaller, *placements)
tool.case("dispatch sweeps", every_combination,
          [(m, to, s) for m in ("2", "a=2@1") for to in ("R", "S(1)") for s in ([4, 4], [16, 2])], ("mesh", "to", "shape"), *DISPATCH)
tool.case("dispatch as CSV", csv_of, *DISPATCH)
tool.case("plan sweeps", every_combination, [(to, m) for to in ("S(1)", "R") for m in ("4", "8")], ("to", "mesh"), *PLAN)
tool.case("plan as CSV", csv_of, *PLAN, "--sweep")
tool.case("simulate as CSV", csv_of, "simulate", *PLAN[1:-2])
if LAYERS:
    tool.case("linear sweeps", every_combination,
              [(m, t, i, d, p) for m in ("1", "2") for t in (4, 8) for i in (4, 6) for d in ("f32", "f64") for p in ("forward", "backward")],
              ("mesh", "tokens", "intermediate", "dtype", "pass"), *LINEAR)
    tool.case("linear as CSV", csv_of, *LINEAR)
else:
    tool.report.skip("linear sweeps", "this build has no BLAS")
for status, arguments, mentions in [
        (2, ["suite", "--mesh", "2"], ["--mesh"]), (1, ["suite", "--quick", "--ranks", "0"], ["--ranks"]), (2, ["suite", "--ranks", "x"], ["--ranks"]),
        (2, ["suite", "--quick", "--json", "--csv"], ["--csv"]), (1, ["suite", "-n", "1000001"], ["--iterations is 1000001"]),
        (2, ["suite", "--quick", "--check", "2"], ["--check"]), (1, ["plan", "--mesh", 1 << 20, "-b", "1048576G", "--from", "S(0)", "--to", "S(0)"], ["1048576 parts"]),
        (2, ["plan", "--mesh", "4", "--from", "R", "--to", "R"], ["--shape", "--begin"]), (2, ["suite", "--quick", "--engine", "x"], ["--engine 'x'"]), (1, ["suite", "--ranks", "1000000"], ["rank 999999"]),
        (2, [*DISPATCH, "--json", "--csv"], ["--csv"]), (2, [*PLAN, "--json", "--csv"], ["--csv"]),
        (2, [*DISPATCH, "--dtype", "x"], ["x"]), (2, [*PLAN, "--from", "S(0)", "--from", "R", "--from", "R"], ["4 times", "2 times"])]:
    tool.refuses(status, ["bench", *arguments], mentions)
tool.report.finish()
