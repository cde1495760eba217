#!/usr/bin/env python3
"""What scripts/bench-peers measures without a network: the tool, and the peers in C. TAP.

usage: test_peers.py SOURCE_ROOT TOOLS CC
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT, TOOLS = pathlib.Path(sys.argv[1]).resolve(), pathlib.Path(sys.argv[2])
CC = sys.argv[3].split()
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(ROOT / "bench" / "peers")]
import cases  # noqa: E402
import implementations  # noqa: E402
import tap  # noqa: E402

MOVE = {"kind": "move", "from": "S(0)", "to": "S(1)", "shape": [16, 16], "dtype": "f32", "bytes": 1024, "payload_bytes": 1024, "ranks": 2}
SOME_ROWS = {"kind": "rows", "op": "gather", "rows": 1001, "columns": 3, "ids": 50, "skew": "uniform", "ranks": 2}


def unless(truth, contradiction):
    return [] if truth else [contradiction]


def share_of_limit(answer):
    """The greatest share of a plain copy's rate that a move may reach: S(0) to R on 2 ranks reads
    each byte once and writes it twice."""
    return answer.get("limit_bandwidth", 0) / answer.get("peak_bandwidth", 1)


def check_tool(report):
    if not (TOOLS / "tools" / "tessera").exists():
        report.skip("the tool answers a move", "this build has no tool")
        return
    tessera = implementations.Tessera(TOOLS, 2)
    answer = tessera.ask({**MOVE, "to": "R"}, "direct", 2)
    report.check("the tool answers a move with a spread of as many loops as are asked for, and no wrong element", unless(
        answer.get("wrong") == 0 and set(answer["seconds"]) == {"median", "min", "max"} and answer["loops"] == answer["samples"] == 2
        and answer["calls"] > 1, answer))
    report.check("the limit is told, and that of S(0) to R is a third above the peak", unless(
        abs(share_of_limit(answer) - 4 / 3) < 1e-9, answer))
    answer = implementations.Tessera(TOOLS, 2, "tessera-new", new_results=True).ask({**MOVE, "from": "P"}, "direct", 2)
    report.check("the tool answers a move whose result is new at each call, and no element of it is wrong", unless(
        answer.get("wrong") == 0 and answer.get("new_result") is True and answer["seconds"]["min"] > 0, answer))
    answer = tessera.ask({**MOVE, "to": "S(2)"}, "direct", 1)
    report.check("what the tool refuses is told in its sentence", unless("shard dim 2" in answer.get("refused", ""), answer))


def has_bench(report, fact, name):
    """True if the tool has this benchmark; else the fact is skipped."""
    tool = TOOLS / "tools" / "tessera"
    found = tool.exists() and subprocess.run([tool, "bench", name, "--help"], capture_output=True).returncode == 0
    if not found:
        report.skip(fact, "this build has no tool, or no BLAS")
    return found


def check_tool_ops(report):
    fact = "the tool answers ops with their passes, and of large ones the share of plain copies"
    if not has_bench(report, fact, "ops"):
        return
    tessera = implementations.Tessera(TOOLS, 2)
    asked = [case for case in cases.ops(True, 2) if case["op"] in ("add", "cross_entropy", "add 64 bytes")]
    answers = [(case, tessera.ask(case, "threads", 2)) for case in asked]
    report.check(fact, [str(one) for one in answers if not (
        one[1].get("wrong") == 0 and list(one[1]["seconds"]) == one[0]["passes"] and ("forward" in one[1]["of_peak"]) == (one[0]["op"] != "add 64 bytes"))])


def check_tool_programs(report):
    fact = "the tool answers blocks on one rank and on several, with as many samples as are asked for"
    if not has_bench(report, fact, "program"):
        return
    tessera = implementations.Tessera(TOOLS, 2)
    asked = [{**case, "tokens": 3, "hidden": 64, "intermediate": 96} for case in cases.programs(True, 2)]
    answers = [(case, tessera.ask(case, "threads", 2)) for case in asked]
    report.check(fact, [str(one) for one in answers if not (
        one[1].get("wrong") == 0 and one[1]["ranks"] == one[0]["ranks"] and one[1]["samples"] == 2 and one[1]["seconds"]["median"] > 0)])


def check_tool_rows(report):
    fact = "the tool answers gathers and updates with as many samples as are asked for, and the share of loops by hand"
    if not has_bench(report, fact, "rows"):
        return
    tessera = implementations.Tessera(TOOLS, 2)
    answers = [tessera.ask({**SOME_ROWS, "op": op}, "threads", 2) for op in cases.ROWS_OPS]
    report.check(fact, [str(one) for one in answers if not (
        one.get("wrong") == 0 and one["samples"] == 2 and one["seconds"]["median"] > 0 and one["of_copy"] > 0)])


def check_rows_by_mpi(report, folder, mpicc, mpirun):
    program, broken = build([mpicc], ROOT / "bench" / "peers" / "mpi_rows.c", folder, "-lm")
    report.check("rows by MPI compile without a warning", broken)
    if broken:
        return
    for ranks, op, skew in ((1, "add", "zipf"), (2, "gather", "zipf"), (2, "add", "uniform"), (3, "gather", "uniform"), (3, "add", "zipf"), (3, "assign", "zipf")):
        mpi = implementations.MpiRows("mpi-by-hand", program, implementations.launcher_of(mpirun, ranks), ranks)
        answer = mpi.ask({**SOME_ROWS, "op": op, "skew": skew}, "alltoallv", 1)
        report.check(f"{op} of {skew} ids by MPI on {ranks} ranks is right", unless(answer.get("wrong") == 0 and len(answer["seconds"]) == 1, answer))
    answer = mpi.ask({**SOME_ROWS, "op": "mean"}, "alltoallv", 1)
    report.check("an op that rows by MPI lack is refused", unless("usage" in answer.get("refused", ""), answer))


def check_tool_by_mpi(report, launcher):
    fact = "the tool answers a move by its MPI engine"
    tessera = implementations.Tessera(TOOLS, 2, "tessera-mpi", launcher)
    if not list((TOOLS / "src").glob("libtessera-mpi-*.so")):
        report.skip(fact, "this build has no libtessera-mpi")
        return
    answer = tessera.ask(MOVE, "direct", 1)
    report.check(fact, unless(answer.get("engine") == "mpi" and answer.get("wrong") == 0 and share_of_limit(answer) == 1, answer))


def check_decode(report):
    fact = "the tool decodes, and what it decodes is checked"
    tessera, model = implementations.Tessera(TOOLS, 2), ROOT / "examples" / "llama" / "shakespeare"
    if not tessera.llama.exists() or not (model / "model.safetensors").exists():
        report.skip(fact, "this build has no tessera-llama")
        return
    case = next(case for case in cases.decodes(model, model, 2) if case["ranks"] == 2)
    right = tessera.ask(case, "threads", 1)
    wrong = tessera.ask({**case, "ids": [*case["ids"][:-1], case["ids"][-1] + 1]}, "threads", 1)
    report.check(fact, unless(right.get("wrong") == 0 and wrong.get("wrong") == 1 and len(right["seconds"]) == 1, (right, wrong)))


def check_tool_layers(report):
    fact = "the tool answers layers with both passes and no wrong element"
    tool = TOOLS / "tools" / "tessera"
    if not tool.exists() or subprocess.run([tool, "bench", "linear", "--help"], capture_output=True).returncode != 0:
        report.skip(fact, "this build has no tool, or no BLAS")
        return
    case = {"kind": "linear", "tokens": 4, "hidden": 6, "intermediate": 10, "dtype": "f32"}
    answer = implementations.Tessera(TOOLS, 2).ask(case, "threads", 1)
    report.check(fact, unless(answer.get("wrong") == 0 and set(answer["seconds"]) == {"forward", "backward"}, answer))


def build(compiler, source, folder, *options):
    program = folder / source.stem
    done = subprocess.run([*compiler, "-O2", "-std=gnu17", "-Wall", "-Wextra", "-Werror", "-o", program, source, *options],
                          capture_output=True, text=True)
    return program, unless(done.returncode == 0, done.stderr)


def check_memcpy(report, folder):
    program, broken = build(CC, ROOT / "bench" / "peers" / "memcpy_moves.c", folder, "-pthread")
    report.check("the peer memcpy compiles without a warning", broken)
    if broken:
        return
    for size in (64, 1 << 20):
        answer = implementations.Memcpy(program, 2).ask({"payload_bytes": size}, "memcpy", 3)
        report.check(f"memcpy copies {size} bytes and tells three times", unless(
            answer.get("wrong") == 0 and len(answer["seconds"]) == 3 and min(answer["seconds"]) > 0, answer))


def check_mpi(report, folder):
    # With several MPIs installed, the suffix of a compiler and a launcher names their MPI.
    mpicc, mpirun = (shutil.which(name + ".openmpi") or shutil.which(name) for name in ("mpicc", "mpirun"))
    if not mpicc or not mpirun:
        report.skip("every way of MPI moves right", "there is no mpicc or no mpirun")
        return
    program, broken = build([mpicc], ROOT / "bench" / "peers" / "mpi_moves.c", folder)
    report.check("the peer MPI compiles without a warning", broken)
    if broken:
        return
    launcher = implementations.launcher_of(mpirun, 2)
    mpi = implementations.Mpi("mpi", program, launcher)
    every = [(*move, way) for ways in (mpi.WAYS, mpi.BY_HAND) for move in ways for way in ways[move]]
    for source, target, way in every:
        answer = mpi.ask({**MOVE, "from": source, "to": target}, way, 1)
        report.check(f"{way} moves {source} to {target} right", unless(
            answer.get("wrong") == 0 and len(answer["seconds"]) == 1, answer))
    for ranks in (1, 3):
        alone = implementations.Mpi("mpi", program, implementations.launcher_of(mpirun, ranks))
        answer = alone.ask({**MOVE, "shape": [12, 12]}, "alltoall+add+allgather", 1)
        report.check(f"terms of {ranks} ranks are added by hand right", unless(answer.get("wrong") == 0, answer))
    answer = mpi.ask({**MOVE, "shape": [3, 16]}, "alltoallw", 1)
    report.check("sizes that do not divide are refused with a sentence", unless("divide by the ranks" in answer.get("refused", ""), answer))
    check_tool_by_mpi(report, launcher)
    check_rows_by_mpi(report, folder, mpicc, mpirun)


def check_usage(report):
    for given, said in ((["--nonsense"], "--nonsense is not an option"), (["--output"], "needs a value"), (["--sides", "32,x"], "not a list of whole numbers"),
                        (["--ranks", "0"], "not a list of whole numbers"), (["--only", "moves"], "invalid choice"),
                        (["--output", "absent/x.json"], "No such file or directory"), (["--output", "."], "Is a directory")):
        with tempfile.TemporaryDirectory() as folder:
            done = subprocess.run([ROOT / "scripts" / "bench-peers", "--directory", "made", *given], capture_output=True, text=True, cwd=folder)
            left = [path.name for path in pathlib.Path(folder).iterdir()]
        report.check(f"scripts/bench-peers {' '.join(given)} takes names from where one stands, and leaves no file", unless(
            left in ([], ["made"]), left))
        report.check(f"scripts/bench-peers {' '.join(given)} exits with 2 and says why, having done nothing", unless(
            done.returncode == 2 and "==" not in done.stdout and said in done.stdout + done.stderr, f"{done.returncode}: {done}"))


def main():
    report = tap.Report()
    check_tool(report)
    check_tool_layers(report)
    check_tool_ops(report)
    check_tool_programs(report)
    check_tool_rows(report)
    check_decode(report)
    check_usage(report)
    with tempfile.TemporaryDirectory() as name:
        check_memcpy(report, pathlib.Path(name))
        check_mpi(report, pathlib.Path(name))
    report.finish()


main()
