#!/usr/bin/env python3
"""How scripts/bench-peers asks and what it makes of answers, with implementations, peers and neighbours that are scripted. TAP.

usage: test_harness.py SOURCE_ROOT
"""
import contextlib
import io
import json
import os
import pathlib
import py_compile
import subprocess
import sys
import tempfile
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

MOVE = {"kind": "move", "from": "S(0)", "to": "S(1)", "shape": [16, 16], "dtype": "f32", "bytes": 1024, "payload_bytes": 1024, "ranks": 2}

# A peer whose case says what happens to it.
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

# A peer that fails where the case says so, and prints what nobody is to read.
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
        self.script, self.count = iter(others), 0

    def watch(self, ask):
        if ask.__module__ == quiet.__name__:
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


def check_quiet(report):
    # Asked, disturbed; two waits; asked again, disturbed; a wait; asked, quiet.
    watched = Watched(60, [0.5, 0.4, 0, 0.3, 0.1, 0.05, 0])
    answer = watched.ask(lambda: {})
    report.check("a disturbed answer is asked for again, after others have passed, until it is quiet",
                 unless([answer[key] for key in ("turn", "others", "asked")] == [3, 0.05, 3], answer))
    # Three waits are all the patience there is.
    watched = Watched(1.2, [0.5, 0, 0.3, 0.2, 0.2, 0.6, 0])
    answer = watched.ask(lambda: {})
    report.check("patience ends, and the least disturbed answer is kept", unless(
        [answer[key] for key in ("turn", "others", "asked")] == [2, 0.3, 3], answer))
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
            ("nothing", "", "it printed nothing"), ("text", "print('hello')", "its output is no figure: 'hello"),
            ("half a line", "print('{\"seconds\": [1')", "is no figure"), ("a number", "print(3)", "is no figure"),
            ("a reason", "import sys; sys.exit('there is no memory\\nfor this')", "there is no memory"),
            ("a reason under a rule", "import sys; sys.exit('-----\\n\\n  there are no slots')", "there are no slots"),
            ("what is no text", "import sys; sys.stdout.buffer.write(b'\\xff')", "is no figure")):
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
    for way, said in (("die", "its processes ended"), ("broken", "no figure: 'oh"), ("refuse", "no")):
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
    # A call takes 4 ms as all are told, so 5 fill a sample, and warming up is 1 of the first calls, 1 alone, and loops up to 0.3 s.
    loops = 1 + 15
    report.check("warm-up lasts its time, then every sample is a loop of as many calls, each with a source of its own", unless(
        times == [0.004] * 3 and calls == [1] + [1] + [5] * (loops - 1) + [5] * 3 and len(given) == sum(calls), calls))
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
    """(whether it failed, the lines)"""
    file = folder / "lines.json"
    with open(file, "w") as output, contextlib.redirect_stderr(io.StringIO()) as told:
        failed = run.measure([MOVE], implementations_, quiet.Quiet(0, list), 1, output)
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
    check_rounds(report)
    check_layers(report)
    check_quiet(report)
    check_programs(report)
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        check_served(report, folder)
        check_peer(report, folder)
        check_run(report, folder)
        check_machine(report, folder)
    report.finish()


main()
