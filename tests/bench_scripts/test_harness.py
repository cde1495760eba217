#!/usr/bin/env python3
"""How scripts/bench-peers asks for cases and handles answers, with scripted implementations, peers
and other processes. TAP.

usage: test_harness.py SOURCE_ROOT
"""
import contextlib
import functools
import io
import json
import os
import pathlib
import py_compile
import subprocess
import sys
import tempfile
import time
import types

ROOT = pathlib.Path(sys.argv[1])
PEERS = ROOT / "bench" / "peers"
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(PEERS)]
sys.modules.setdefault("numpy", types.ModuleType("numpy"))  # which peer.py's tensors alone need
import cases as measured  # noqa: E402
import implementations  # noqa: E402
import machine  # noqa: E402
import peer  # noqa: E402
import quiet  # noqa: E402
import rounds  # noqa: E402
import run  # noqa: E402
import tap  # noqa: E402

SHAKESPEARE = ROOT / "examples" / "llama" / "shakespeare"
MOVE = {"kind": "move", "from": "S(0)", "to": "S(1)", "shape": [16, 16], "dtype": "f32", "bytes": 1024, "payload_bytes": 1024, "ranks": 2}

# A peer that behaves as its case says.
SCRIPT = """
import json, sys, time
for line in sys.stdin:
    way = json.loads(line)["way"]
    if way == "die":
        sys.exit(1)
    if way == "sleep":
        time.sleep(60)
    print({"answer": '{"seconds": [1.0], "wrong": 0}', "broken": "oh", "refuse": '{"refused": "no"}'}[way], flush=True)
"""

# A peer that fails if the case says so, and prints text that must not reach the harness.
FAILING = """
import sys, types
sys.modules["numpy"] = types.ModuleType("numpy")
import peer
def answer(case):
    print("a library's own words")
    if case["way"] == "fail":
        raise ValueError("3 do not divide by 2\\nand more")
    return {"seconds": [2.0], "wrong": 0}
peer.serve(answer)
"""


class Scripted:
    """An implementation with given answers; it records the order of turns."""

    turns = []

    def __init__(self, name, answers):
        self.name, self.answers = name, iter(answers)

    def ways(self, case):
        return ["a"]

    def ask(self, case, way, samples):
        self.turns.append(self.name)
        return next(self.answers)


class Watched(quiet.Quiet):
    """Other processes are busy as scripted, also while the harness waits; counts the answers."""

    def __init__(self, patience, others):
        super().__init__(patience, list)
        self.script, self.count = iter(others), 0

    def watch(self, ask):
        if getattr(ask, "__module__", None) == quiet.__name__:
            return None, next(self.script)
        self.count += 1
        return {**ask(), "turn": self.count}, next(self.script)


def unless(truth, contradiction):
    return [] if truth else [contradiction]


def check_cases(report):
    every = list(measured.moves(False))
    sizes = [case["bytes"] for case in every]
    report.check("moves are measured from 64 bytes to 256 MiB, each size with four moves", unless(
        min(sizes) == 64 and max(sizes) == 1 << 28 and all(sizes.count(size) == 4 for size in sizes) and 4096 in sizes, sizes))
    report.check("a payload is what all destination shards hold", unless(
        [measured.payload_bytes(case, 2) for case in every[:4]] == [64, 128, 64, 128], every[:4]))
    found = [measured.count_wrong_ids(ids, [1, 2, 3]) for ids in ([1, 2, 3], [1, 9, 3], [1], [], [1, 2, 3, 4])]
    report.check("tokens that are missing or too many are wrong", unless(found == [0, 1, 2, 3, 1], found))
    found = {case["bytes"]: measured.rounds(case, False) for case in every}
    report.check("moves of up to 64 KiB are measured in 9 rounds, all else in 3, and in one where it is to be quick", unless(
        found == {size: 9 if size <= 65536 else 3 for size in sizes} and measured.rounds(every[0], True) == 1
        and measured.rounds({"kind": "linear"}, False) == 3, found))


def check_implementations(report):
    options = types.SimpleNamespace(build=pathlib.Path("b"), directory=pathlib.Path("d"), mpi=[("mpi", "mpirun")], ranks=2)
    every = run.implementations(options)
    names = [one.name for one in every]
    report.check("who makes new results comes after who does not, and who does by hand after its MPI", unless(
        names == ["tessera", "tessera-new", "memcpy", "tessera-mpi", "mpi", "mpi-by-hand", "mpi-by-hand", "tessera-mpi", "mpi-by-hand", "pytorch", "jax",
                  "transformers", "transformers",
                  "pytorch", "pytorch", "pytorch-plain", "pytorch", "pytorch-plain", "pytorch-gloo",
                  "pytorch-plain", "pytorch-plain", "pytorch"],
        names))

    def asked_for(case):
        return [(one.name, way) for one in every for way in one.ways(case)]

    partial = {**MOVE, "from": "P"}
    found = [[way for name, way in asked_for({**partial, "to": to}) if name.startswith("mpi")] for to in ("S(0)", "R")]
    report.check("sums go by MPI's reductions, whose whole result contains the part, and by hand", unless(
        found == [["reduce_scatter", "reduce_scatter_block", "allreduce", "alltoall+add"], ["allreduce", "alltoall+add+allgather"]], found))
    found = asked_for(MOVE)
    report.check("nothing is added by hand where nothing is to be added", unless(
        "mpi-by-hand" not in dict(found) and ("tessera-new", "direct") in found, found))
    layers = {"kind": "linear", "ranks": 2}
    report.check("layers are asked of Tessera's threads and of PyTorch", unless(
        asked_for(layers) == [("tessera", "threads"), ("pytorch", "parallelize_module")], asked_for(layers)))
    found = [(case["ranks"], case["kv_heads"], asked_for(case)) for case in measured.decodes(SHAKESPEARE, SHAKESPEARE, 2)]
    alone, together = [("transformers", "one process")], [("tessera", "threads"), ("transformers", "DistributedConfig")]
    report.check("transformers decode in one process too, with 3 heads and with 6", unless(
        found == [(1, 3, alone), (1, 6, alone), (2, 3, together), (2, 6, together)], found))
    processes = [one.count for one in every if isinstance(one, implementations.Served)]
    report.check("PyTorch and transformers have a process a rank, JAX one", unless(processes == [2, 1, 1, 2, 1, 2, 1, 2, 1, 2, 1, 1, 2], processes))
    check_asked_ops(report, every)
    check_asked_blocks(report, every)
    check_asked_rows(report, every)
    check_asked_trainings(report, every)


def check_asked_ops(report, every):
    found = {(case["op"], case["ranks"]): [(one.name, getattr(one, "count", 0), way) for one in every for way in one.ways(case)]
             for case in measured.ops(True, 2)}
    ours, plain = ("tessera", 0, "threads"), [("pytorch-plain", 1, "out"), ("pytorch-plain", 1, "new")]
    report.check("ops are asked of PyTorch in one process, and of as many of DTensor as ranks", unless(
        found["add", 1] == [ours, ("pytorch", 1, "DTensor"), *plain] and found["add", 2] == [ours, ("pytorch", 2, "DTensor")], found))
    report.check("an op without a form that writes into a result, or without a rule of DTensor, is not asked for it", unless(
        found["rms_norm", 1] == [ours, plain[1]] and found["rms_norm", 2] == [ours], found))
    sizes = {case["op"]: (case["sizes"], case["shapes"], case["passes"]) for case in measured.ops(False, 2)}
    report.check("ops have the shapes of all their operands", unless(
        sizes["layer_norm"] == ("512x16384", [[512, 16384], [16384], [16384]], ["forward"])
        and sizes["attention"] == ("8x4096x64", [[8, 4096, 64]] * 3, ["forward", "backward"])
        and sizes["cross_entropy"] == ("1024x50257", [[1024, 50257], [1024]], ["forward", "backward"]), sizes))
    report.check("a small op is measured in 9 rounds, others in 3", unless(
        [measured.rounds({"kind": "ops", "op": op}, False) for op in ("add 64 bytes", "add")] == [9, 3], "other"))


def check_asked_blocks(report, every):
    found = {(case["tokens"], case["hidden"], case["ranks"]): [(one.name, getattr(one, "count", 0), way) for one in every for way in one.ways(case)]
             for case in measured.programs(False, 2)}
    wanted = {1: [("tessera", 0, "threads"), ("pytorch-plain", 1, "one process")],
              2: [("tessera", 0, "threads"), ("pytorch", 2, "parallelize_module")]}
    report.check("blocks are asked of a plain module on one rank, of tensor parallelism on several", unless(
        found == {(*sizes, ranks): wanted[ranks] for sizes in ((512, 1024), (64, 256), (1, 1024), (1, 256)) for ranks in (1, 2)}, found))
    alone = [(one.name, way) for one in implementations.served(pathlib.Path("d"), 1) for case in measured.programs(True, 1) for way in one.ways(case)]
    report.check("a run on one rank asks a plain module alone", unless(alone == [("pytorch-plain", "one process")] * 2, alone))
    report.check("blocks of one token are measured in 9 rounds, others in 3", unless(
        all(measured.rounds(case, False) == (9 if case["tokens"] == 1 else 3) for case in measured.programs(False, 2)), "other"))


def check_asked_rows(report, every):
    found = {(case["op"], case["ids"], case["ranks"]): [(one.name, way) for one in every for way in one.ways(case)] for case in measured.rows(False, 2)}
    twice = [("mpi-by-hand", "alltoallv"), ("tessera-mpi", "processes")]
    all_ = [("tessera", "threads"), ("tessera-mpi", "processes"), ("mpi-by-hand", "alltoallv"), ("pytorch-gloo", "all_to_all_single")]
    wanted = {(op, 10000, ranks): all_ if ranks == 2 else twice[::-1] for op in ("gather", "add", "assign") for ranks in (2, 4)}
    report.check("rows are asked of threads, processes and PyTorch on all ranks, of processes on twice as many", unless(
        found == {**wanted, ("gather", 8, 2): all_}, found))
    launched = [one.launcher[2] if isinstance(one, implementations.Tessera) else one.command[2] for one in every
                for _ in one.ways({"kind": "rows", "ranks": 4})]
    report.check("as many processes are launched as a case has ranks", unless(launched == [4, 4], launched))
    skews = {case["skew"] for case in measured.rows(True, 2)}
    report.check("ids are uniform and zipf, and few of them are measured in 9 rounds", unless(
        skews == {"uniform", "zipf"} and all(measured.rounds(case, False) == (9 if case["ids"] == 8 else 3) for case in measured.rows(False, 2)), skews))


def check_asked_trainings(report, every):
    models = {name: (f"{name}.json", "tokens") for name in ("shakespeare", "125m")}
    found = {(case["name"], case["ranks"]): [(one.name, getattr(one, "command", [None])[-1], way) for one in every for way in one.ways(case)]
             for case in measured.trainings(False, models, 2)}
    wanted = {1: [("tessera", None, "dp=1"), ("pytorch-plain", "1", "one process")],
              2: [("tessera", None, "dp=2"), ("tessera", None, "tp=2"), ("pytorch-plain", "2", "one process"), ("pytorch", "1", "DistributedDataParallel")]}
    report.check("trainings are asked of data and tensor parallel ranks, of threads in one process, and of DistributedDataParallel on several ranks", unless(
        found == {(name, ranks): wanted[ranks] for name in models for ranks in (1, 2)}, found))
    ranks = [case["ranks"] for case in measured.trainings(False, models, 3)]
    report.check("a batch that the ranks do not divide is left out", unless(ranks == [1, 1], ranks))


def check_commands(report, folder):
    """The arguments and environment of programs, by programs that print them."""
    tool = folder / "tools" / "tessera"
    tool.parent.mkdir()
    tool.write_text("#!/bin/sh\nprintf '{\"seconds\": {}, \"said\": \"%s\", \"omp\": \"%s\"}\\n' \"$*\" \"$OMP_NUM_THREADS\"\n")
    tool.chmod(0o755)
    known = {True: implementations.Tessera(folder, 2, new_results=True), False: implementations.Tessera(folder, 2)}
    answers = {new: one.ask(MOVE, "direct", 3) for new, one in known.items()}
    report.check("the tool is asked for new results where these are timed, and for them alone", unless(
        all(("--new-result" in answer.get("said", "").split()) == new for new, answer in answers.items()), answers))
    report.check("the tool warms up for as many loops as its peers", unless(
        all("--warm-up 3 --iterations 3" in answer.get("said", "") for answer in answers.values()) and peer.WARM_LOOPS == 3 + 1, answers))
    said = known[False].ask(next(measured.programs(True, 2)), "threads", 3).get("said", "")
    report.check("the tool is asked for a block of a size, on a mesh of its ranks, warm as its peers", unless(
        said == "bench program llama-block --mesh 1 --tokens 64 --hidden 256 --heads 4 --kv-heads 2 --intermediate 1024 --warm-up 3 --iterations 3 --json",
        said))
    said = known[False].ask(next(measured.rows(True, 2)), "threads", 3).get("said", "")
    report.check("the tool is asked for rows as its peers are, in loops of several calls", unless(
        said == "bench rows --ranks 2 --op gather --shape 100000x64 --batch 10000 --skew uniform --warm-up 3 --iterations 3 --calls 32 --json", said))
    report.check("programs have one thread a rank", unless(answers[True].get("omp") == "1", answers))


def environment_of(one, *names):
    """The environment of the first serving process."""
    one.command = [sys.executable, "-c", "import json, os; input(); print(json.dumps(dict(os.environ)), flush=True); input()"]
    answer = one.ask(MOVE, "answer", 1)
    one.finish()
    return [answer.get(name) for name in names]


def check_environments(report, folder):
    every = {one.name: one for one in implementations.served(folder, 2)}
    for name, one in every.items():
        found = environment_of(one, "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        report.check(f"{name} has one thread a rank", unless(found == ["1"] * 3, found))
    found = environment_of(every["jax"], "XLA_FLAGS", "JAX_NUM_CPU_DEVICES", "JAX_PLATFORMS")
    report.check("XLA has one thread a device, and as many devices as ranks", unless(
        found == ["--xla_cpu_multi_thread_eigen=false", "2", "cpu"], found))
    found = environment_of(every["pytorch"], "WORLD_SIZE", "RANK")
    report.check("the processes of PyTorch know how many they are", unless(found == ["2", "0"], found))


def check_rounds(report):
    first = Scripted("first", [{"seconds": [1, 2, 9], "wrong": 0, "limit_bandwidth": 7},
                               {"seconds": [3, 3, 4], "wrong": 0, "limit_bandwidth": 5},
                               {"seconds": [8, 5, 6], "wrong": 2, "limit_bandwidth": 6}])
    second = Scripted("second", [{"seconds": {"median": 1, "min": 1, "max": 1}, "samples": 11}, {"refused": "no"}])
    lines = list(rounds.measure(MOVE, [first, second], Watched(0, [0, 0.3, 0, 0, 0.2]), 3, 3))
    report.check("implementations are asked in turns, and no more once they refused", unless(
        Scripted.turns == ["first", "second", "first", "second", "first"], Scripted.turns))
    report.check("a figure is the median of the rounds' medians, with the least and most of all samples", unless(
        lines[0]["seconds"] == {"median": 3, "min": 1, "max": 9, "rounds": [2, 3, 6]}, lines[0]))
    report.check("the limit is the median of the rounds' limits", unless(lines[0]["limit_bandwidth"] == 6, lines[0]))
    report.check("the most wrong elements of any round are told", unless(lines[0]["wrong"] == 2, lines[0]))
    report.check("the largest share of the cores that others used is told", unless(lines[0]["others"] == 0.2, lines[0]))
    report.check("rounds, samples of a round and how often was asked are those that there were", unless(
        [lines[0][key] for key in ("rounds", "samples", "asked")] == [3, 3, 3], lines[0]))
    report.check("when a figure was measured is told", unless(
        lines[0]["began"] <= lines[0]["ended"] and "T" in lines[0]["began"], lines[0]))
    report.check("a refusal has its reason and no figures", unless(lines[1]["refused"] == "no" and "seconds" not in lines[1], lines[1]))
    told = Scripted("told", [{"seconds": {"median": 1, "min": 1, "max": 1}, "samples": 11}])
    line = next(rounds.measure(MOVE, [told], Watched(0, [0]), 1, 3))
    report.check("what tells its spread alone says how many samples that is of", unless(
        (line["samples"], line["wrong"]) == (11, None), line))


def check_layers(report):
    answer = {"seconds": {"forward": [2.0], "backward": [4.0]}, "gemm_seconds": {"forward": [1.0], "backward": [3.0]}, "wrong": 0}
    case = {"kind": "linear", "tokens": 1, "hidden": 2, "intermediate": 3, "ranks": 2}
    lines = list(rounds.measure(case, [Scripted("x", [answer])], Watched(0, [0]), 1, 1))
    found = [(line["pass"], line["seconds"]["median"], line["gemm_seconds"]["median"], line["samples"]) for line in lines]
    report.check("layers have a line for each pass", unless(found == [("forward", 2.0, 1.0, 1), ("backward", 4.0, 3.0, 1)], found))


def check_rows(report):
    answer = {"seconds": {"median": 2.0, "min": 1, "max": 3}, "samples": 3, "of_copy": 0.75, "wrong": 0}
    case = {**next(measured.rows(False, 2)), "ranks": 2}
    line = next(rounds.measure(case, [Scripted("x", [answer])], Watched(0, [0]), 1, 1))
    report.check("a line of rows has its whole case, and the share of a loop by hand", unless(
        {key: line.get(key) for key in case} == case and line["of_copy"] == {"median": 0.75, "rounds": [0.75]}, line))


def check_quiet(report):
    # Asked, disturbed; two waits; asked again, disturbed; a wait; asked, quiet.
    watched = Watched(60, [0.5, 0.4, 0, 0.3, 0.1, 0.05, 0])
    answer = watched.ask(lambda: {})
    report.check("a disturbed answer is asked for again, after others have passed, until it is quiet",
                 unless([answer[key] for key in ("turn", "others", "asked")] == [3, 0.05, 3], answer))
    # The patience suffices for three waits.
    watched = Watched(1.2, [0.5, 0, 0.3, 0.2, 0.2, 0.6, 0])
    answer = watched.ask(lambda: {})
    report.check("patience ends, and the least disturbed answer is kept", unless(
        [answer[key] for key in ("turn", "others", "asked")] == [2, 0.3, 3], answer))
    # Asked, valid and disturbed; a wait; asked, quiet, refused. Then the other way round.
    valid, refused = {"seconds": [1]}, {"refused": "no"}
    for fact, given in (("a refusal does not take the place of a figure that is there", [valid, refused]),
                        ("a figure takes the place of a refusal, though more disturbed", [refused, valid])):
        watched = Watched(0.4, [0.3, 0, 0.1] if given[0] is valid else [0.2, 0, 0.4])
        answer = watched.ask(functools.partial(next, iter(given)))
        report.check(fact, unless("seconds" in answer and answer["asked"] == 2, answer))
    watched = Watched(60, [None])
    answer = watched.ask(lambda: {})
    report.check("what nobody knows to be disturbed is not asked for again", unless([answer["others"], answer["asked"]] == [None, 1], answer))
    check_busy(report)
    check_window(report)


class Clocked(quiet.Quiet):
    """A Quiet whose use by other processes is scripted, as marks (seconds, core seconds)."""

    def __init__(self, marks):
        self.script = iter(marks)
        super().__init__(0, list)

    def mark(self):
        return next(self.script)


def check_window(report):
    cores, short = os.cpu_count(), quiet.SHORTEST
    one = Clocked([(0, 0), (0, 0), (short / 2, 1)])
    _, others = one.watch(dict)
    report.check("what others did is not known of a run that is too short to tell", unless(others is None, others))
    # Others are idle, then have all cores for a long answer; then a short one, whose window begins with the long one's.
    one = Clocked([(0, 0), (5, 0), (5 + 2 * short, 2 * short * cores), (5 + 2 * short, 2 * short * cores), (5 + 2.5 * short, 2 * short * cores)])
    found = [one.watch(dict)[1], one.watch(dict)[1]]
    report.check("what others did is told of the answer, and of a short one with what was just before", unless(
        abs(found[0] - 1) < 1e-9 and abs(found[1] - 0.8) < 1e-9, found))
    report.check("an error of the kernel's books is at most a quarter of a disturbance", unless(
        quiet.UNSURE / (cores * short) <= quiet.DISTURBED / 4 * (1 + 1e-9), short))
    one = Clocked([(0, 0), (1, 5), (2, 4.9)])
    report.check("nobody used less than nothing", unless(one.watch(dict)[1] == 0, one))


def check_busy(report):
    busy = "import sys, time\nwhile time.process_time() < 0.3: pass\nprint(flush=True)\nsys.stdin.read()"
    begin, before = quiet.busy_seconds(time.monotonic()), quiet.own_seconds(list)
    with subprocess.Popen([sys.executable, "-c", busy], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as served:
        served.stdout.readline()
        alive = quiet.own_seconds(lambda: [served.pid]) - before
        served.communicate()
    ended = quiet.own_seconds(list) - before
    everybody = quiet.busy_seconds(time.monotonic()) - begin
    report.check("what our processes use is ours while they run and when they ended", unless(
        min(alive, ended, everybody) > 0.3 - quiet.UNSURE, (alive, ended, everybody)))


def asked(code, patience=implementations.PATIENCE):
    return implementations.run([sys.executable, "-c", code], patience=patience)


def check_programs(report):
    figure = "print('{\"seconds\": [1], \"wrong\": %d}'); sys.exit(%d)"
    found = asked("import sys; " + figure % (0, 0))
    report.check("a program's figures are its lines", unless(found == [{"seconds": [1], "wrong": 0}], found))
    found = asked("import sys; " + figure % (3, 1))
    report.check("a program that fails because elements are wrong has answered", unless(found[0].get("wrong") == 3, found))
    found = asked("import sys; " + figure % (0, 1))
    report.check("a program that fails with nothing wrong has not", unless("exit status 1" in found[0].get("refused", ""), found))
    for what, code, said in (
            ("nothing", "", "it printed nothing"), ("text", "print('hello')", "its output is not a figure: 'hello"),
            ("half a line", "print('{\"seconds\": [1')", "is not a figure"), ("a number", "print(3)", "is not a figure"),
            ("a reason", "import sys; sys.exit('there is no memory\\nfor this')", "there is no memory"),
            ("a reason under a rule", "import sys; sys.exit('-----\\n\\n  there are no slots')", "there are no slots"),
            ("what is not text", "import sys; sys.stdout.buffer.write(b'\\xff')", "is not a figure")):
        found = asked(code)
        report.check(f"a program that prints {what} has refused, and why is told", unless(
            len(found) == 1 and said in found[0].get("refused", ""), found))
    found = asked("import time; time.sleep(60)", 0.5)
    report.check("a program that does not end has refused", unless("no answer within 0.5 seconds" in found[0].get("refused", ""), found))
    found = implementations.run(["/nowhere/at/all"])
    report.check("a program that is not there has refused", unless("No such file" in found[0].get("refused", ""), found))


def served(folder, code, patience=20, count=2):
    return implementations.Served("x", lambda case: ["a"], [sys.executable, "-c", code], count, {"PYTHONPATH": str(PEERS)},
                                  folder / "x.log", patience)


def check_served(report, folder):
    one = served(folder, SCRIPT)
    first, pids = one.ask(MOVE, "answer", 1), [process.pid for process in one.processes]
    again = one.ask(MOVE, "answer", 1)
    report.check("processes that serve are started once, one a rank, and answer again", unless(
        first == again == {"seconds": [1.0], "wrong": 0} and len(pids) == 2 and pids == [process.pid for process in one.processes], again))
    for way, said in (("die", "its processes ended"), ("broken", "not a figure: 'oh"), ("refuse", "no")):
        found, after = one.ask(MOVE, way, 1), one.ask(MOVE, "answer", 1)
        report.check(f"processes that {way} have refused, and serve anew", unless(
            said in found.get("refused", "") and after.get("wrong") == 0, (found, after)))
    one.patience = 0.5
    found, left = one.ask(MOVE, "sleep", 1), one.processes
    report.check("processes that do not answer have refused, and are ended", unless(
        "no answer within" in found.get("refused", "") and not left, (found, left)))
    one.finish()
    one = implementations.Served("x", lambda case: ["a"], [str(folder / "python")], 2, {}, folder / "x.log")
    found = one.ask(MOVE, "answer", 1)
    report.check("processes that cannot be started have refused", unless("No such file" in found.get("refused", ""), found))


def check_peer(report, folder):
    one = served(folder, FAILING, count=1)
    found = [one.ask(MOVE, way, 1) for way in ("answer", "fail", "answer")]
    one.finish()
    report.check("what a library prints is no answer, and what it raises is a refusal in its first line", unless(
        found == [{"seconds": [2.0], "wrong": 0}, {"refused": "ValueError: 3 do not divide by 2"}, {"seconds": [2.0], "wrong": 0}], found))
    silent = FAILING.replace("serve(answer)", "serve(answer, speaks=False)")
    done = subprocess.run([sys.executable, "-c", silent], input='{"way": "answer"}\n{"way": "fail"}\n{"way": "answer"}\n', text=True,
                          capture_output=True, env={**os.environ, "PYTHONPATH": str(PEERS)}, timeout=60)
    report.check("a rank that does not speak ends where it fails", unless(
        done.returncode == 1 and not done.stdout and "3 do not divide" in done.stderr, done))
    given = []
    calls = []

    def sources(count):
        calls.append(count)
        return list(range(count))

    times = peer.measure(given.append, 3, sources, slowest=lambda seconds: 0.004)
    # A call takes 4 ms as all are told, so 5 fill a sample; before come one that may plan, one that is timed, and 4 loops.
    report.check("after two calls and the loops of the warm-up every sample is a loop of as many calls, each with a source of its own", unless(
        times == [0.004] * 3 and calls == [1, 1] + [5] * 4 + [5] * 3 and len(given) == sum(calls), calls))
    found = [peer.calls_in_sample(seconds) for seconds in (0, 1e-6, 0.009, 5)]
    report.check("a sample has one call at least, and not more than fit", unless(found == [peer.MOST_CALLS, peer.MOST_CALLS, 2, 1], found))
    for script in sorted(PEERS.glob("*.py")):
        try:
            py_compile.compile(str(script), cfile=str(folder / "compiled"), doraise=True)
            wrong = []
        except py_compile.PyCompileError as error:
            wrong = [str(error)]
        report.check(f"{script.name} compiles", wrong)


def measure(implementations_, folder):
    """(failed, lines)"""
    file = folder / "lines.json"
    with open(file, "w") as output, contextlib.redirect_stderr(io.StringIO()) as told:
        failed = run.measure([MOVE], implementations_, quiet.Quiet(0, list), True, output)
    return failed, [json.loads(line) for line in file.read_text().splitlines()], told.getvalue()


def check_run(report, folder):
    right, wrong, refused = {"seconds": [1e-6], "wrong": 0}, {"seconds": [1e-6], "wrong": 1}, {"refused": "it may"}
    for fact, answers, wanted in (
            ("a run in which all are right has not failed", {"tessera": right, "mpi": right}, False),
            ("a peer may refuse", {"tessera": right, "mpi": refused}, False),
            ("a peer that is wrong fails the run", {"tessera": right, "mpi": wrong}, True),
            ("Tessera may not refuse", {"tessera": refused, "mpi": right}, True),
            ("nor may its engine over MPI", {"tessera-mpi": refused, "mpi": right}, True)):
        failed, lines, told = measure([Scripted(name, [answer]) for name, answer in answers.items()], folder)
        report.check(fact, unless(failed == wanted and len(lines) == 2 and told.count("\n") == 2, (failed, lines, told)))


def check_output(report, folder):
    kept = folder / "kept.json"
    kept.write_text("a run of before")
    for path in (kept, folder / "new.json"):
        run.main(["--check", "--directory", str(folder), "--build", "b", "--output", str(path)])
    report.check("reading the options neither makes nor changes the output", unless(
        kept.read_text() == "a run of before" and not (folder / "new.json").exists(), list(folder.iterdir())))


def check_machine(report, folder):
    found = machine.describe(folder, folder / "venv", [("mpi", "/nowhere/mpirun")])
    report.check("what nothing tells of the machine is null", unless(
        found["kind"] == "machine" and found["compiler"] is None and found["versions"]["mpi"] is None and found["cores"] > 0, found))
    for name, text in (("meson-info/intro-buildoptions.json", '[{"name": "buildtype", "value": "release"}]'),
                       ("meson-logs/meson-log.txt", "Version: 1\nC compiler for the host machine: cc (gcc 12)\n")):
        (folder / name).parent.mkdir()
        (folder / name).write_text(text)
    report.check("how the library was built is told", unless(
        machine.built(folder) == {"compiler": "cc (gcc 12)", "buildtype": "release"}, machine.built(folder)))
    launcher = folder / "mpirun"
    launcher.write_text("#!/bin/sh\necho 'HYDRA build details:'\necho '    Version:      4.0.2'\n")
    launcher.chmod(0o755)
    report.check("an MPI's version is told", unless(machine.mpi_version(launcher) == "4.0.2", machine.mpi_version(launcher)))


def main():
    report = tap.Report()
    check_cases(report)
    check_implementations(report)
    check_rounds(report)
    check_layers(report)
    check_rows(report)
    check_quiet(report)
    check_programs(report)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_served(report, folder)
        check_peer(report, folder)
        check_run(report, folder)
        check_output(report, folder)
        check_machine(report, folder)
        check_commands(report, folder)
        check_environments(report, folder)
    report.finish()


main()
