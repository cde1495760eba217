#!/usr/bin/env python3
"""`tessera-example-rows` prints the same lines on any number of ranks, threads or processes, goes on from checkpoints of other ranks, and says
what it refuses.

usage: test_rows.py PROGRAM LAUNCH [LAUNCHER..]"""
import json
import os
import pathlib
import re
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import harness  # noqa: E402
import tap  # noqa: E402

program, launch, *launchers = sys.argv[1:]
report = tap.Report()
place = tempfile.TemporaryDirectory()
folder = pathlib.Path(place.name)
ALONE = {key: value for key, value in os.environ.items() if not key.startswith(("OMPI_", "PMI", "SLURM_", "TSR_"))}
NODES, EPOCHS, WIDTH = 3000, 4, 32
SMALL = ("--nodes", NODES, "--communities", 7, "--degree", 6, "--rate", "0.1")


def run(*command):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=120, env=ALONE)


def lines(*command):
    done = run(*command)
    if done.returncode != 0:
        raise AssertionError(f"exit status {done.returncode}: {done.stderr.strip()}")
    return done.stdout.splitlines()


def case(fact, attempt, *arguments):
    try:
        report.check(fact, attempt(*arguments))
    except Exception as error:
        report.check(fact, [f"{type(error).__name__}: {error}"])


whole = lines(program, *SMALL, "--epochs", EPOCHS, "--ranks", 1)


def learns():
    wrong = harness.different("number of lines", len(whole), 1 + EPOCHS)
    first = re.fullmatch(r"(\d+) of 3000 nodes have labels; a vote of the neighbours drawn finds (0\.\d{6}) of the others", whole[0])
    epochs = [re.fullmatch(rf"epoch {i}: loss (\d\.\d{{9}}), accuracy (0\.\d{{6}}) of nodes without labels", line) for i, line in enumerate(whole[1:], 1)]
    if not first or not all(epochs):
        return wrong + whole
    losses, right = [float(e[1]) for e in epochs], [float(e[2]) for e in epochs]
    wrong += [] if 1300 < int(first[1]) < 1700 else [whole[0]]
    wrong += [] if losses[-1] < losses[0] / 4 else [f"losses {losses}"]
    # Without having learned, one of 7 would be right.
    return wrong + ([] if right[-1] > 0.6 and right[-1] > right[0] else [f"accuracies {right}"])


def ranks_do_not_matter(*command):
    return harness.different("lines", lines(*command, *SMALL, "--epochs", EPOCHS), whole)


def goes_on():
    wrong = []
    made = {}
    for ranks in (1, 2, 3):
        path = folder / f"from-{ranks}"
        begun = lines(program, *SMALL, "--epochs", 2, "--ranks", ranks, "--save", path)
        wrong += harness.different("lines before", begun, whole[:3])
        made[ranks] = path.read_bytes()
    wrong += [f"the checkpoint of {ranks} ranks has other bytes than that of one" for ranks in (2, 3) if made[ranks] != made[1]]
    for writers, readers in ((2, 3), (3, 1), (1, 4)):
        ended = lines(program, *SMALL, "--epochs", EPOCHS, "--ranks", readers, "--load", folder / f"from-{writers}")
        wrong += harness.different(f"lines from {writers} to {readers} ranks", ended, whole[:1] + whole[3:])
    return wrong


def is_safetensors():
    data = (folder / "from-2").read_bytes()
    length, = struct.unpack("<Q", data[:8])
    header = json.loads(data[8:8 + length])
    wrong = harness.different("metadata", header.pop("__metadata__")["epoch"], "2")
    wrong += harness.different("shapes", {name: tensor["shape"] for name, tensor in header.items()},
                               {"table": [NODES, WIDTH], "table.sum": [NODES, WIDTH], "layer.0": [32, 64], "layer.0.sum": [32, 64],
                                "layer.1": [7, 64], "layer.1.sum": [7, 64]})
    begin, end = header["table.sum"]["data_offsets"]
    sums = struct.unpack(f"<{(end - begin) // 4}f", data[8 + length + begin:8 + length + end])
    # A row that no batch names has no sum, and every sum is of squares.
    return wrong + ([] if min(sums) >= 0 and max(sums) > 0 else ["sums of squares are negative, or all 0"])


def refuses(status, *arguments, says):
    done = run(program, *arguments)
    wrong = harness.different("exit status", done.returncode, status) + harness.different("standard output", done.stdout, "")
    return wrong + ([] if says in done.stderr and done.stderr.startswith("tessera-example-rows: ") else [f"{says!r} is not in: {done.stderr}"])


def refuses_to_save():
    done = run(program, *SMALL, "--epochs", 0, "--ranks", 2, "--save", "/nonexistent/rows")
    return harness.different("exit status", done.returncode, 1) + ([] if "/nonexistent/rows" in done.stderr else [done.stderr])


case("accuracy grows beyond chance", learns)
for ranks in (2, 3, 4, 13):
    case(f"{ranks} rank threads print what one does", ranks_do_not_matter, program, "--ranks", ranks)
for launcher in launchers:
    for ranks in (2, 3):
        case(f"{ranks} processes of {launcher} print what one thread does", ranks_do_not_matter, launch, launcher, ranks, program)
case("training goes on from a checkpoint on other ranks, with the same digits", goes_on)
case("a checkpoint is a safetensors file with the table, the weights and their sums", is_safetensors)

short = folder / "short"
short.write_bytes((folder / "from-1").read_bytes()[:-1])
foreign = folder / "foreign"
foreign.write_bytes(struct.pack("<Q", 2) + b"{}")
for ranks in (1, 3):
    common = (*SMALL, "--ranks", ranks)
    case(f"{ranks} ranks refuse a checkpoint that is not there", lambda: refuses(1, *common, "--load", folder / "none", says="cannot open it"))
    case(f"{ranks} ranks refuse a checkpoint that is cut short", lambda: refuses(1, *common, "--load", short, says="bytes of tensors"))
    case(f"{ranks} ranks refuse a file of another program", lambda: refuses(1, *common, "--load", foreign, says="not a checkpoint"))
    case(f"{ranks} ranks refuse a checkpoint of another graph",
         lambda: refuses(1, *common, "--seed", 2, "--load", folder / "from-1", says="another graph"))
for words in (("--ranks", "0"), ("--noise", "1.5"), ("--nodes", "5", "--communities", "6"), ("--epochs", "x"), ("--rate", "nan")):
    case(f"options that are refused: {' '.join(words)}", lambda: refuses(2, *words, says=words[-2]))
case("a graph without nodes to test by is refused", lambda: refuses(1, "--nodes", 1, "--communities", 1, "--ranks", 2, says="both kinds"))
case("a checkpoint that cannot be written is told", refuses_to_save)


report.finish()
