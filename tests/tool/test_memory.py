#!/usr/bin/env python3
"""Every command with memory that runs out at some call, once or for ever: it ends well with all that it says and writes otherwise, or fails
with one line and no file. usage: test_memory.py [--all] PRELOADED TOOL [LLAMA MODEL]"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

import harness

STEP = 1 if "--all" in sys.argv else 13
preloaded, tool_path, *example = [str(pathlib.Path(word).resolve()) for word in sys.argv[1:] if word != "--all"]
tool = harness.Tool(tool_path)
WRITTEN = ("out", "o.svg", "o.plan", "o.cost", "o.npy")
LINE = '{"bench": "plan", "mesh": "2x2", "what": "a text that is longer than sixteen", "seconds": {"median": %s, "min": 1e-6, "max": 0.1234567890123456}}\n'

harness.write_npy(tool.folder / "x.npy", "<f4", (12, 5), range(60))
(tool.folder / "old.json").write_text(LINE % "0.00001234567890123" * 2)
(tool.folder / "new.json").write_text(LINE % "0.00002345678901234" * 2)
subprocess.run([tool_path, "redistribute", "--mesh", "3", "--from", "S(0)", "--to", "S(1)", "--input", "x.npy", "--output", "shards"],
               cwd=tool.folder, check=True, stdout=subprocess.DEVNULL)

PLAN = "plan --mesh 4x2 --shape 64x64 --from S(0),S(1) --to S(1),S(0)"
LAYOUT = "layout --mesh dp=2,tp=2 --shape 6x8 --placements S(0;interleave=2),S(1)"
MOVE = "redistribute --mesh 2x2 --from S(0),S(1) --to P,S(1) --input x.npy --output out"
SIMULATE = "bench simulate --mesh 4x2 --sweep --ranks-per-node 4 --shape 64x64 --from S(0),R --to R,R --from S(0),S(1) --to R,S(1)"
COMMANDS = [
    "info", "info --json", "plan --help", LAYOUT, LAYOUT + " --json", PLAN, PLAN + " --rank 1 --json --svg o.svg --save o.plan",
    "plan --mesh 4 --to-mesh 4@[2,3,0,1] --shape 8x3 --from S(0) --to S(0) --relabel --json", MOVE, MOVE + " --json",
    "redistribute --mesh 2x2 --to-mesh 3 --from S(0),S(1) --to S(0) --input x.npy --output o.npy",
    "redistribute --mesh 3 --from S(1) --to R --input-shards shards --output out --mode message", SIMULATE + " --svg o.svg", SIMULATE + " --json",
    SIMULATE + " --csv", "bench compare old.json new.json --loss 9", "bench compare old.json new.json --loss 9 --json",
    "bench plan --mesh 4x2 --shape 64x64 --from S(0),R --to R,R -n 1 -w 0 --json",
    "bench redistribute --mesh 2 --shape 64 --from S(0) --to R -n 1 -w 0 --calls 1 --json",
]


def run(words, **environment):
    return subprocess.run(words, cwd=tool.folder, capture_output=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": preloaded, "OPENBLAS_NUM_THREADS": "1", "TSR_KERNELS": "fixed", **environment})


def written():
    """Every file of the command, by its name; what it wrote is removed."""
    found = {}
    for name in WRITTEN:
        path = tool.folder / name
        for file in path.rglob("*") if path.is_dir() else [path] if path.exists() else []:
            found[str(file.relative_to(tool.folder))] = file.read_bytes()
        shutil.rmtree(path, ignore_errors=True)
        path.unlink(missing_ok=True)
    found.update({path.name: b"" for path in tool.folder.iterdir() if path.name.startswith(".tessera")})
    return found


def untimed(text):
    """Without what was measured; of benchmarks all numbers are, and which copy is the best one."""
    if text.startswith(b'{"bench": "plan"') or text.startswith(b'{"bench": "redistribute"'):
        return re.sub(rb'"peak_copy": "[^"]*"|[0-9.e+-]+', b"", text)
    return re.sub(rb'in [0-9.]+ s|[0-9.]+ of the multiply-adds|"(seconds|load|prompt|decode|of_machine)": [0-9.e-]+', b"", text)


def judge(done, good, good_files):
    """What is wrong with an end, in a word; None if nothing is."""
    files = written()
    if done.returncode == 0:
        return "other output" if untimed(done.stdout) != good else "other files" if files != good_files else "a line" if done.stderr else None
    if done.returncode != 1:
        return f"exit status {done.returncode}, {done.stderr[-200:]}"
    if not done.stderr.startswith(b"tessera: ") or done.stderr.count(b"\n") != 1:
        return f"standard error: {done.stderr[:300]}"
    return f"files are left: {sorted(files)}" if files else None


def runs_short(words, step, first):
    """The command with each `step`-th call failing."""
    count = tool.folder / "count"
    done = run(words, SHORT_COUNT=str(count))
    calls, good, good_files = int(count.read_text()), untimed(done.stdout), written()
    wrong = harness.different("without any lack", (done.returncode, done.stderr), (0, b""))
    failures = 0
    for ever in ({}, {"SHORT_EVER": "1"}):
        for at in sorted({0, *range(first % step, calls, step)}):
            done = run(words, SHORT_AT=str(at), **ever)
            fault = judge(done, good, good_files)
            failures += done.returncode != 0
            if fault is not None:
                wrong.append(f"SHORT_AT={at} {' '.join(ever)}: {fault}")
    return wrong + ([] if failures > 0 else [f"none of {calls} calls failed"])


for number, command in enumerate(COMMANDS):
    tool.case(f"short of memory: tessera {command}", runs_short, [tool_path, *command.split()], STEP, number)
if example:
    tool.case("short of memory: tessera-llama", runs_short, [*example, "--ranks", "2", "--tokens", "2", "--logits", "o.npy", "--json"], 37 * STEP, 3)
tool.report.finish()
