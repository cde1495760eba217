#!/usr/bin/env python3
"""The harness of scripts/bench-peers without its peers in Python: cases, rounds, what is written, and the peers in C. TAP.

usage: test_peers.py SOURCE_ROOT TOOLS CC
"""
import pathlib
import shutil
import subprocess
import sys
import tempfile

ROOT, TOOLS = pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2])
CC = sys.argv[3].split()
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(ROOT / "bench" / "peers")]
import cases as measured  # noqa: E402
import implementations  # noqa: E402
import quiet  # noqa: E402
import rounds  # noqa: E402
import tap  # noqa: E402

MOVE = {"kind": "move", "from": "S(0)", "to": "S(1)", "shape": [16, 16], "dtype": "f32", "bytes": 1024, "payload_bytes": 1024, "ranks": 2}


class Scripted:
    """An implementation whose answers are known; it notes whose turn it was."""

    turns = []

    def __init__(self, name, answers):
        self.name, self.answers = name, iter(answers)

    def ways(self, case):
        return ["a"]

    def ask(self, case, way, samples):
        self.turns.append(self.name)
        return next(self.answers)


class Watched(quiet.Quiet):
    """Somebody else is busy as scripted, while we wait too; the answers are counted."""

    def __init__(self, patience, others):
        super().__init__(patience, list)
        self.script, self.asked = iter(others), 0

    def watch(self, ask):
        if ask.__module__ == quiet.__name__:
            return None, next(self.script)
        self.asked += 1
        return {**ask(), "turn": self.asked}, next(self.script)


def unless(truth, contradiction):
    return [] if truth else [contradiction]


def check_cases(report):
    every = list(measured.moves(False))
    sizes = [case["bytes"] for case in every]
    report.check("moves are measured from 64 bytes to 256 MiB, each size with four moves", unless(
        min(sizes) == 64 and max(sizes) == 1 << 28 and all(sizes.count(size) == 4 for size in sizes) and 4096 in sizes, sizes))
    report.check("a payload is what all destination shards hold", unless(
        [measured.payload_bytes(case, 2) for case in every[:4]] == [64, 128, 64, 128], every[:4]))


def check_rounds(report):
    first = Scripted("first", [{"seconds": [1, 2, 9], "wrong": 0}, {"seconds": [3, 3, 4], "wrong": 0}, {"seconds": [8, 5, 6], "wrong": 2}])
    second = Scripted("second", [{"seconds": {"median": 1, "min": 1, "max": 1}}, {"refused": "no"}])
    lines = list(rounds.measure(MOVE, [first, second], Watched(0, [0, 0.3, 0, 0, 0.2]), 3, 3))
    report.check("implementations are asked in turns, and no more once they refused", unless(
        Scripted.turns == ["first", "second", "first", "second", "first"], Scripted.turns))
    report.check("a figure is the median of the rounds' medians, with the least and most of all samples", unless(
        lines[0]["seconds"] == {"median": 3, "min": 1, "max": 9}, lines[0]))
    report.check("the most wrong elements of any round are told", unless(lines[0]["wrong"] == 2, lines[0]))
    report.check("the largest share of the cores that others used is told", unless(lines[0]["others"] == 0.2, lines[0]))
    report.check("a refusal has its reason and no figures", unless(lines[1]["refused"] == "no" and "seconds" not in lines[1], lines[1]))


def check_layers(report):
    answer = {"seconds": {"forward": [2.0], "backward": [4.0]}, "gemm_seconds": {"forward": [1.0], "backward": [3.0]}, "wrong": 0}
    case = {"kind": "linear", "tokens": 1, "hidden": 2, "intermediate": 3, "ranks": 2}
    lines = list(rounds.measure(case, [Scripted("x", [answer])], Watched(0, [0]), 1, 1))
    found = [(line["pass"], line["seconds"]["median"], line["gemm_seconds"]["median"]) for line in lines]
    report.check("layers have a line for each pass", unless(found == [("forward", 2.0, 1.0), ("backward", 4.0, 3.0)], found))


def check_quiet(report):
    # Asked, disturbed; two waits; asked again, disturbed; a wait; asked, quiet.
    watched = Watched(60, [0.5, 0.4, 0, 0.3, 0.1, 0.05, 0])
    answer = watched.ask(lambda: {})
    report.check("a disturbed answer is asked for again, after others have passed, until it is quiet",
                 unless(answer == {"turn": 3, "others": 0.05}, answer))
    # Three waits are all the patience there is.
    watched = Watched(1.2, [0.5, 0, 0.3, 0.2, 0.2, 0.6, 0])
    answer = watched.ask(lambda: {})
    report.check("patience ends, and the least disturbed answer is kept", unless(
        answer == {"turn": 2, "others": 0.3} and watched.asked == 3, answer))
    busy = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nsys.stdin.read()"
    begin, before = quiet.busy_seconds(), quiet.own_seconds(list)
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as served:
        served.stdout.readline()
        alive = quiet.own_seconds(lambda: [served.pid]) - before
        served.communicate()
    ended = quiet.own_seconds(list) - before
    everybody = quiet.busy_seconds() - begin
    report.check("what our processes use is ours while they run and when they ended", unless(
        min(alive, ended, everybody) > 0.3 - quiet.UNSURE, (alive, ended, everybody)))


def check_tool(report):
    if not (TOOLS / "tools" / "tessera").exists():
        report.skip("the tool answers a move", "this build has no tool")
        return
    answer = implementations.Tessera(TOOLS, 2).ask(MOVE, "direct", 1)
    report.check("the tool answers a move with a spread and no wrong element", unless(
        answer.get("wrong") == 0 and set(answer["seconds"]) == {"median", "min", "max"}, answer))
    answer = implementations.Tessera(TOOLS, 2).ask({**MOVE, "to": "S(2)"}, "direct", 1)
    report.check("what the tool refuses is told in its sentence", unless("shard dim 2" in answer.get("refused", ""), answer))


def check_tool_layers(report):
    fact = "the tool answers layers with both passes and no wrong element"
    tool = TOOLS / "tools" / "tessera"
    if not tool.exists() or subprocess.run([tool, "bench", "linear", "--help"], capture_output=True).returncode != 0:
        report.skip(fact, "this build has no tool, or no BLAS")
        return
    answer = implementations.Tessera(TOOLS, 2).ask({"kind": "linear", "tokens": 4, "hidden": 6, "intermediate": 10, "dtype": "f32"}, "threads", 1)
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
    # Where several MPIs are installed, compiler and launcher belong together by name.
    mpicc, mpirun = (shutil.which(name + ".openmpi") or shutil.which(name) for name in ("mpicc", "mpirun"))
    if not mpicc or not mpirun:
        report.skip("every way of MPI moves right", "there is no mpicc or no mpirun")
        return
    program, broken = build([mpicc], ROOT / "bench" / "peers" / "mpi_moves.c", folder)
    report.check("the peer MPI compiles without a warning", broken)
    if broken:
        return
    mpi = implementations.Mpi(program, mpirun, 2)
    for (source, target), ways in mpi.WAYS.items():
        for way in ways:
            answer = mpi.ask({**MOVE, "from": source, "to": target}, way, 1)
            report.check(f"{way} moves {source} to {target} right", unless(
                answer.get("wrong") == 0 and len(answer["seconds"]) == 1, answer))
    answer = mpi.ask({**MOVE, "shape": [3, 16]}, "alltoallw", 1)
    report.check("sizes that do not divide are refused", unless("usage" in answer.get("refused", ""), answer))


def check_usage(report):
    for given in (["--nonsense"], ["--output"]):
        done = subprocess.run([ROOT / "scripts" / "bench-peers", *given], capture_output=True, text=True)
        report.check(f"scripts/bench-peers {given[0]} alone exits with 2, having done nothing", unless(
            done.returncode == 2 and "==" not in done.stdout and (done.stdout + done.stderr).strip(), f"{done.returncode}: {done.stdout}"))


def main():
    report = tap.Report()
    check_cases(report)
    check_rounds(report)
    check_layers(report)
    check_quiet(report)
    check_tool(report)
    check_tool_layers(report)
    check_usage(report)
    with tempfile.TemporaryDirectory() as name:
        check_memcpy(report, pathlib.Path(name))
        check_mpi(report, pathlib.Path(name))
    report.finish()


main()
