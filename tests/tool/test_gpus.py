#!/usr/bin/env python3
"""
The tool on GPUs: the same bytes as on the host. usage: test_gpus.py TOOL LIBRARY real|emulated|standin

LIBRARY is libtessera-cuda, or one like it over the emulated machine of tests/device (two GPUs, rank threads) or over the stand-in for NCCL
of tests/comm (four GPUs, rank threads and NCCL's engine). Nothing here is timed.
"""
import itertools
import os
import pathlib
import random
import shutil
import sys

import harness

tool = harness.Tool(sys.argv[1])
library, machine = pathlib.Path(sys.argv[2]).resolve(), sys.argv[3]
HERE = {**os.environ, "LD_LIBRARY_PATH": str(library.parent)}
numbers = itertools.count()


def find_machine():
    """Returns the number of GPUs, and the engines that run on them."""
    if machine != "real":
        return {"emulated": (2, ["threads"]), "standin": (4, ["threads", "nccl"])}[machine]
    found = tool.json("info", env=HERE)
    cuda, nccl = (next(row for row in found[rows] if row["name"] == name) for rows, name in (("devices", "cuda"), ("engines", "nccl")))
    if cuda["count"] == 0:
        tool.report.skip("the tool on GPUs", cuda["reason"])
        tool.report.finish()
    return cuda["count"], ["threads"] + (["nccl"] if nccl["available"] else [])


GPUS, ENGINES = find_machine()


def on(engine, device="cuda"):
    return ["--engine", engine, "--device", device]


def info():
    found = tool.json("info", env=HERE)
    cuda = {row["name"]: row for row in found["devices"]}["cuda"]
    nccl = {row["name"]: row for row in found["engines"]}["nccl"]
    wrong = harness.different("GPUs", (cuda["count"], len(cuda["gpus"]), cuda["reason"]), (GPUS, GPUS, None))
    if machine != "real":
        wrong += harness.different("reaches", [gpu["reaches"] for gpu in cuda["gpus"]], [list(range(GPUS))] * GPUS)
    wrong += harness.different("nccl", nccl["available"], "nccl" in ENGINES)
    wrong += harness.different("nccl has a reason or a version", (nccl["reason"] is None, nccl["version"] is None), (nccl["available"],) + (not nccl["available"],))
    return wrong + harness.different("a line a GPU", tool.run("info", env=HERE).stdout.count("compute capability"), GPUS)


def fresh(name):
    return tool.folder / f"{name}-{next(numbers)}"


def files(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def redistribute(mesh, shape, source, target, descr, dtype, where, *more):
    """The results equal the host's byte for byte."""
    count = 1
    for size in shape:
        count *= size
    file, wanted, found = fresh("x.npy"), fresh("host"), fresh("device")
    harness.write_npy(file, descr, shape, [random.randrange(0, 100) for _ in range(count)])
    move = ["redistribute", "--mesh", mesh, "--from", source, "--to", target, "--input", file, "--dtype", dtype, *more]
    tool.json(*move, "--output", wanted)
    answer = tool.json(*move, "--output", found, *where, env=HERE)
    wrong = harness.different("seconds", answer["seconds"] > 0, True) + harness.different("files", files(found), files(wanted))
    for path in (wanted, found):
        shutil.rmtree(path)
    return wrong


def fortran_order(where):
    file, wanted, found = fresh("x.npy"), fresh("host"), fresh("device")
    harness.write_npy(file, "<i4", (3, 5), list(range(15)), fortran=True)
    move = ["redistribute", "--mesh", "2", "--from", "S(1)", "--to", "S(0)", "--input", file]
    tool.json(*move, "--output", wanted)
    tool.json(*move, "--output", found, *where, env=HERE)
    return harness.different("files", files(found), files(wanted))


def shards_of_files(where):
    """Each rank's own file goes to its GPU as it is, and terms add up there."""
    terms, found = fresh("terms"), fresh("device")
    terms.mkdir()
    for rank in range(2):
        harness.write_npy(terms / f"rank-{rank}.npy", "<f4", (5,), [rank + 0.5 * i for i in range(5)])
    tool.json("redistribute", "--mesh", "2", "--from", "P", "--to", "R", "--input-shards", terms, "--output", found, *where, env=HERE)
    wanted = ("<f4", (5,), [1.0 + i for i in range(5)])
    return harness.different("sums", [harness.read_npy(found / f"rank-{r}.npy") for r in range(2)], [wanted, wanted])


def whole_file(where, source, target, to_mesh):
    """One file of the whole tensor, after a move that ends on ranks of another mesh, with terms or without."""
    array, found = fresh("x.npy"), tool.folder / "whole.npy"
    harness.write_npy(array, "<i4", (5, 4), range(20))
    answer = tool.json("redistribute", "--mesh", "2", "--to-mesh", to_mesh, "--from", source, "--to", target, "--input", array, "--output", found, *where,
                       env=HERE)
    return harness.different("files", answer["files"], ["whole.npy"]) + harness.different("the tensor", harness.read_npy(found), ("<i4", (5, 4), list(range(20))))


def asking(engine, mode):
    """The option, where the engine has the mode: NCCL's ranks send messages without being asked."""
    return ["--mode", mode] if engine != "nccl" or mode == "message" else []


def direct_is_refused():
    move = ["--mesh", "2", "--from", "S(0)", "--to", "R", "--mode", "direct", *on("nccl")]
    sentence = "tessera: --mode direct: ranks of --engine nccl send messages and do nothing else\n"
    array = tool.folder / "refused.npy"
    harness.write_npy(array, "<f4", (4, 4), range(16))
    wrong = []
    for words in (["bench", "redistribute", "--shape", "4x4", *move], ["redistribute", "--input", array, "--output", tool.folder / "refused", *move]):
        done = tool.run(*words, env=HERE)
        wrong += harness.different("refusal", (done.returncode, done.stdout, done.stderr), (1, "", sentence))
    return wrong + harness.different("nothing is written", (tool.folder / "refused").exists(), False)


def bench_move(engine, mesh, shape, source, target, dtype, mode):
    found = tool.json("bench", "redistribute", "--mesh", mesh, "--shape", shape, "--from", source, "--to", target, "--dtype", dtype, *asking(engine, mode),
                      "--iterations", 2, *on(engine), env=HERE)
    fixed = {"engine": engine, "device": "cuda", "wrong": 0, "peak_copy": "device to device", "mode": "message" if engine == "nccl" else mode}
    wrong = [f"{k}: {found.get(k)!r} instead of {v!r}" for k, v in fixed.items() if found.get(k) != v]
    enqueue = found["enqueue_seconds"]
    wrong += harness.different("enqueuing takes a part of the time", 0 < enqueue["min"] <= enqueue["max"] and enqueue["median"] <= found["seconds"]["max"], True)
    return wrong


def bench_linear(engine, dtype, mesh):
    done = tool.run("bench", "linear", "--mesh", mesh, "--tokens", 8, "--hidden", 12, "--intermediate", 20, "--dtype", dtype, "--iterations", 2,
                    "--json", *on(engine), env=HERE)
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit", (done.returncode, done.stderr), (0, ""))
    wrong += harness.different("passes", [(l["pass"], l["engine"], l["device"], l["dtype"], l["wrong"]) for l in lines],
                               [(p, engine, "cuda", dtype, 0) for p in ("forward", "backward")])
    return wrong + [f"{l['pass']}: {l[k]}" for l in lines for k in ("seconds", "gemm_seconds") if not l[k]["min"] > 0]


def bench_dispatch(engine):
    found = tool.json("bench", "dispatch", "--mesh", "2", "--shape", "16", "--from", "S(0)", "--to", "R", "--calls", 4, *on(engine), env=HERE)
    fixed = {"bench": "dispatch", "engine": engine, "device": "cuda", "calls": 4, "wrong": 0}
    return [f"{k}: {found.get(k)!r} instead of {v!r}" for k, v in fixed.items() if found.get(k) != v] + harness.different("time", found["seconds"]["min"] > 0, True)


def suite(engine):
    """Moves are run in every mode that the engine has, once. Layers fail where the stand-in has no products, and keep nothing else from running."""
    done = tool.run("bench", "suite", "--quick", "-n", 1, "-w", 0, "--json", *on(engine), env=HERE)
    lines = [harness.json.loads(line) for line in done.stdout.splitlines()]
    modes = ["message"] if engine == "nccl" else ["direct", "message"]
    found = [(l["dtype"], l["mode"]) for l in lines if l["bench"] == "redistribute"]
    wrong = harness.different("moves", found, [("f32", mode) for mode in modes for _ in range(5)] + [("bf16", modes[0])] * 5)
    return wrong + harness.different("plans", sum(l["bench"] == "plan" for l in lines), 2)


def moves(engine, most):
    """Between the placements, dtypes and modes that there are, on as many ranks as the engine runs here."""
    where = on(engine)
    for source, target in itertools.product(KINDS, repeat=2):
        tool.case(f"{engine}, {source} -> {target} gives the host's bytes", redistribute, "2", (7, 5), source, target, "<f4", "f32", where)
    for descr, dtype in (("<u2", "bf16"), ("|u1", "f8e4m3"), ("<f8", "f64"), ("|i1", "i8"), ("<i8", "i64"), ("|b1", "bool")):
        op = "P(max)" if dtype == "bool" else "P"
        tool.case(f"{engine}, {dtype} gives the host's bytes", redistribute, "2", (9, 4), op, "S(1)", descr, dtype, where)
    for source, target, mode in GRIDS if most >= 4 else []:
        tool.case(f"{engine}, 2x2 ranks, {source} -> {target}, {mode}", redistribute, "2x2", (6, 8), source, target, "<i4", "i32", where, *asking(engine, mode))
    if most >= 3:
        tool.case(f"{engine}, ranks outside the mesh", redistribute, "2@[2,0]", (4, 4), "S(0)", "S(1)", "<i4", "i32", where)
    tool.case(f"{engine}, a mesh of other ranks", redistribute, "2@[1,0]", (4, 4), "S(0)", "S(1)", "<i4", "i32", where)
    tool.case(f"{engine}, one file of the whole tensor", whole_file, where, "S(0)", "S(1)", "2")
    tool.case(f"{engine}, one file of terms on other ranks", whole_file, where, "S(1)", "P", "2@[1,0]")
    tool.case(f"{engine}, an empty tensor", redistribute, "2", (0, 4), "S(0)", "R", "<i4", "i32", where)
    tool.case(f"{engine}, a tensor in Fortran order", fortran_order, where)
    tool.case(f"{engine}, ranks' own files", shards_of_files, where)
    tool.case(f"{engine}, tensors of the host", redistribute, "2", (7, 5), "S(0)", "S(1)", "<f4", "f32", on(engine, "host"))


def benchmarks(engine):
    for source, target, dtype, mode in (("S(0)", "S(1)", "bf16", "direct"), ("P", "S(0)", "f32", "direct"), ("P", "R", "f32", "message"),
                                        ("S(0)", "R", "i8", "direct")):
        tool.case(f"{engine}, bench of {source} -> {target}, {mode}, is right", bench_move, engine, "2", "16x12", source, target, dtype, mode)
    if engine == "nccl":
        tool.case("nccl, a mode that it does not have is refused", direct_is_refused)
    tool.case(f"{engine}, bench dispatch", bench_dispatch, engine)
    tool.case(f"{engine}, bench suite", suite, engine)


KINDS = ["R", "P", "S(0)", "S(1)", "S(0;balanced)", "S(1;interleave=2)"]
GRIDS = [("S(0),S(1)", "S(1),S(0)", "direct"), ("P,S(0)", "S(1),R", "message"), ("P,P", "R,S(0)", "direct"), ("R,S(0)", "P,S(1)", "message")]
MANY = 64
random.seed(int(os.environ.get("TSR_TEST_SEED", "20261121")))
tool.case("info lists every GPU and whom it reaches", info)
for engine in ENGINES:
    ranks = GPUS if engine == "nccl" else MANY
    tool.case(f"{engine}, one rank", redistribute, "1", (7, 5), "S(0)", "R", "<f4", "f32", on(engine))
    tool.case(f"{engine}, one rank, bench", bench_move, engine, "1", "16x12", "P", "S(0)", "f32", "direct")
    if ranks >= 2:
        moves(engine, ranks)
        benchmarks(engine)
    if machine != "standin":
        for dtype in ("f32", "f64", "bf16", "f16"):
            tool.case(f"{engine}, bench linear in {dtype}", bench_linear, engine, dtype, "2" if ranks >= 2 else "1")
def failing(engine, device):
    """The error names the rank without memory, and the others do not wait for it."""
    huge = f"S(0;sizes=1,{(1 << 50) - 1})"
    tool.refuses(1, ["bench", "redistribute", "--mesh", "2", "--shape", 1 << 50, "--from", huge, "--to", huge, *on(engine, device)],
                 ["rank 1", str(4 * ((1 << 50) - 1))], env=HERE)


for engine in ENGINES if machine != "real" else []:
    failing(engine, "cuda")
    failing(engine, "host")
DISPATCH = ["bench", "dispatch", "--mesh", GPUS + 1, "--shape", "10", "--from", "S(0)", "--to", "R", *on("nccl")]
tool.refuses(1, DISPATCH, [f"{GPUS + 1} ranks", f"sees {GPUS};", "threads"] if "nccl" in ENGINES else ["NCCL"], env=HERE)
tool.report.finish()
