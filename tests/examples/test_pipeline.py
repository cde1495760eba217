#!/usr/bin/env python3
"""`tessera-example-pipeline` gives the losses of a single mesh, bit for bit, whatever its stages, micro-batches and ways of moving are; it moves
while stages compute; and no rank hangs where one fails.

usage: test_pipeline.py PROGRAM LAUNCH [LAUNCHER..]"""
import os
import pathlib
import re
import signal
import subprocess
import sys
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import harness  # noqa: E402
import tap  # noqa: E402

program, launch, *launchers = sys.argv[1:]
report = tap.Report()
ALONE = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI_", "PMI", "SLURM_", "TSR_"))}
# 33 rows of 32 floats are more than 4 KiB, which ranks that read each other's memory move in two meetings; and dp cuts them unevenly.
ROWS = ("--rows", 33, "--steps", 4)


def run(*command, **settings):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, env={**ALONE, **settings})


def lines(*command):
    done = run(*command)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def losses(*command):
    matches = [re.fullmatch(r"step \d+: loss (\S+)", line) for line in lines(*command)]
    return [float(match[1]) for match in matches]


def case(fact, attempt, *arguments):
    try:
        report.check(fact, attempt(*arguments))
    except Exception as error:
        report.check(fact, [f"{type(error).__name__}: {error}"])


known = {}


def of_one_mesh(stages, *options):
    """The lines of a run whose stages are all on one set of ranks, which is known to be right by others of its kind."""
    key = (stages, *options)
    if key not in known:
        known[key] = lines(program, *ROWS, "--stages", stages, *options)
    return known[key]


def equals(single, *command):
    """The command, whose options end with those of the single mesh behind "--", prints the lines of the single mesh."""
    at = command.index("--")
    return harness.different("lines", lines(*command[:at], *ROWS, *command[at + 1:]), of_one_mesh(single, *command[at + 1:]))


def learns():
    told = losses(program, "--steps", 200, "--micro-batches", 2)
    return [] if told[-1] < 0.7 * told[0] else [f"losses {told[::50]}"]


def is_near():
    """Ranks of a stage add up terms: other numbers of them give other roundings, and nothing else."""
    whole = losses(program, *ROWS, "--stages", "1")
    wrong = []
    for stages in ("tp=2", "dp=2", "tp=2/dp=3", "dp=2,tp=2/1"):
        told = losses(program, *ROWS, "--stages", stages)
        wrong += [f"{stages}: {a} and {b}" for a, b in zip(told, whole, strict=True) if abs(a - b) > 1e-5 * b]
    return wrong


def travels():
    """Of each pair of neighbours on the last stage, the later one's activation starts before the backward of the earlier one."""
    done = run(program, "--steps", 1, "--micro-batches", 5, "--trace")
    said = [line.removeprefix("rank 1: ") for line in done.stderr.splitlines() if line.startswith("rank 1: ")]
    wrong = [] if done.returncode == 0 else [done.stderr]
    for m in range(4):
        order = [said.index(f"start activation {m + 1} of stage 0"), said.index(f"B{m} of stage 1"),
                 said.index(f"finish activation {m + 1} of stage 0")]
        wrong += [] if order == sorted(order) else [f"{m}: {order}", *said]
    return wrong


def all_make_the_same_calls(*options):
    done = run(program, "--steps", 1, "--stages", "1/tp=2/1", "--micro-batches", 5, "--trace", *options)
    calls = [[line.split(": ")[1] for line in done.stderr.splitlines() if re.match(rf"rank {rank}: (start|finish) ", line)] for rank in range(4)]
    wrong = [] if done.returncode == 0 and len(calls[0]) == 5 * 2 * 2 * 2 else [done.stderr]
    for rank in range(1, 4):
        wrong += harness.different(f"calls of rank {rank}", calls[rank], calls[0])
    return wrong


def takes_turns():
    """After the warm-up a stage runs one forward and one backward in turns, and keeps no more activations than the stages behind it need."""
    wrong = []
    for options, most in ((("--plain",), 5), ((), 9)):
        rows = [line.split("|")[1:4] for line in lines(program, "--schedule", "--stages", "1/1/1", "--micro-batches", 20, *options)[1:]]
        for stage in range(3):
            work = [word for row in rows for word in row[stage].split()]
            open_ones = [sum(word[0] == "F" for word in work[:i]) - sum(word[0] == "B" for word in work[:i]) for i in range(len(work) + 1)]
            wrong += harness.different(f"work of stage {stage}", sorted(work), sorted([f"F{i}" for i in range(20)] + [f"B{i}" for i in range(20)]))
            wrong += [] if max(open_ones) <= most and "FFBB" not in "".join(word[0] for word in work[most:-most]) else [f"stage {stage}: {work}"]
    return wrong


def refuses(status, *arguments, says):
    done = run(program, *arguments)
    wrong = harness.different("exit status", done.returncode, status) + harness.different("standard output", done.stdout, "")
    return wrong + ([] if says in done.stderr and done.stderr.startswith("tessera-example-pipeline: ") else [f"{says!r} is not in: {done.stderr}"])


def diverges(*command):
    """The last stage fails in the midst of a step, with moves on their way, and all ranks end with its sentence."""
    done = run(*command, "--rate", 1000, "--steps", 100, "--rows", 33)
    return [] if done.returncode != 0 and re.search(r"rank \d: --rate 1000: the loss of micro-batch \d of a step is not finite", done.stderr) else [done.stderr]


def lacks_memory():
    """Whichever rank lacks memory, at whatever place, all ranks end."""
    if run("prlimit", f"--as={200 << 20}", program, "--schedule").returncode != 0:
        return []  # a sanitizer takes more address space than any limit here
    wrong = []
    for megabytes in (300, 500, 900):
        done = run("prlimit", f"--as={megabytes << 20}", program, "--rows", 1 << 20, "--steps", 1, "--stages", "1/tp=2", OPENBLAS_NUM_THREADS="1")
        wrong += [] if done.returncode == 1 and "step" not in done.stdout else [f"{megabytes} MiB: {done.returncode} {done.stderr}"]
    return wrong


def processes_of(word):
    found = []
    for folder in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            command = (folder / "cmdline").read_bytes().split(b"\0")
            if command[0] == program.encode() and word.encode() in command:
                found.append(int(folder.name))
        except OSError:
            pass
    return sorted(found)


def ends_with_a_rank(launcher):
    """A job of which one process is killed ends, and does not succeed."""
    seed = str(1 << 40 | os.getpid())
    job = subprocess.Popen([launch, launcher, "3", program, "--stages", "1/tp=2", "--steps", "1000000", "--seed", seed],
                           stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, env=ALONE)
    try:
        job.stdout.readline()
        os.kill(processes_of(seed)[-1], signal.SIGKILL)
        job.communicate(timeout=60)
        left = processes_of(seed)
        for _ in range(100):
            if left:
                time.sleep(0.1)
                left = processes_of(seed)
        return ([] if job.returncode != 0 else ["exit status 0"]) + harness.different("processes left", left, [])
    finally:
        job.kill()


for stages in ("1@0/1@0", "1/1", "1/1/1", "1/1/1/1"):
    for options in ((), ("--plain",), ("--messages",), ("--micro-batches", 3, "--plain", "--messages")):
        case(f"stages {stages} with {options} give the bits of one rank", equals, "1", program, "--stages", stages, "--", *options)
for count in (1, 2):
    case(f"{count} micro-batches in four stages give the bits of one rank", equals, "1", program, "--stages", "1/1/1/1", "--", "--micro-batches", count)
for mesh in ("tp=2", "dp=2", "dp=2,tp=2"):
    case(f"two stages on {mesh} each give the bits of one mesh of this kind", equals, mesh, program, "--stages", f"{mesh}/{mesh}", "--")
for first, second in (("1", "tp=2"), ("tp=2", "1"), ("1", "dp=2"), ("dp=3", "tp=2"), ("tp=3", "dp=2,tp=2")):
    case(f"stages {first} and {second} on other ranks give the bits of those on one set of ranks", equals, f"{first}@0/{second}@0",
         program, "--stages", f"{first}/{second}", "--")
case("stages on ranks in any order, with one left out, give the same bits", equals, "1@0/tp=2@0", program, "--stages", "1@3/tp=2@[2,0]", "--")
case("other numbers of ranks give losses that are off by roundings alone", is_near)
case("the loss falls", learns)
case("an activation travels during the backward of the micro-batch before", travels)
for options in ((), ("--plain",)):
    case(f"all ranks make the same starts and finishes in the same order with {options}", all_make_the_same_calls, *options)
case("stages take turns of one forward and one backward", takes_turns)

for stages in ("1/1", "1/tp=2", "tp=2/tp=2/1"):
    for options in ((), ("--messages",), ("--plain",)):
        case(f"stages {stages} with {options} end where the last one fails", diverges, program, "--stages", stages, *options)

for launcher in launchers:
    case(f"2 processes of {launcher} give the bits of one rank by messages", equals, "1", launch, launcher, 2, program, "--stages", "1/1", "--", "--messages")
    case(f"3 processes of {launcher} give the bits of one set of ranks", equals, "1@0/tp=2@0", launch, launcher, 3, program, "--stages", "1/tp=2", "--")
    case(f"3 processes of {launcher} end where the last stage fails", diverges, launch, launcher, 3, program, "--stages", "1/tp=2")
    case(f"a job of {launcher} ends with one of its processes", ends_with_a_rank, launcher)
for launcher in launchers[-1:]:
    case(f"{launcher} with other ranks than stages need is told",
         lambda: [] if "ask for 3 ranks" in run(launch, launcher, 2, program, "--stages", "1/tp=2").stderr else ["it is not"])

for words, says in ((("--stages", "2"), "called dp and tp"), (("--stages", "tp=2,pp=2"), "called dp and tp"), (("--stages", "1/"), "--stages: mesh"),
                    (("--stages", "/".join("1" * 9)), "more than 8"), (("--stages", "1@5000"), "beyond 4095"), (("--layers", "1"), "2 stages"),
                    (("--stages", f"1@[{'0,' * 90}0]"), "longer than"), (("--micro-batches", "0"), "--micro-batches"), (("--rate", "nan"), "--rate")):
    case(f"options that are refused: {' '.join(words)[:40]}", lambda: refuses(2, *words, says=says))
case("ranks that lack memory end all", lacks_memory)
report.finish()
