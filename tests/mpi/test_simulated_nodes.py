#!/usr/bin/env python3
"""`tessera bench calibrate` and `bench simulate --validate` on two nodes, which one machine pretends to be.
usage: test_simulated_nodes.py LAUNCH LAUNCHER PRETENDED_NODES TOOL"""
import json
import math
import os
import pathlib
import statistics
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
import harness  # noqa: E402

launch, launcher, library, path = sys.argv[1:]
tool = harness.Tool(pathlib.Path(path).resolve())
RANKS = 3


# Three ranks that spin share two processors, so a time slice may cost more than the bytes: the tool
# then refuses to fit links.
BUSY = "is this machine busy?"
TRIES = 5


def on_two_nodes(first, *words, **variables):
    """Runs the tool with ranks below `first` on one node and the others on another, again where the machine was too busy for a
    measurement. Returns (lines, what went wrong)."""
    environment = {**os.environ, "LD_PRELOAD": library, "TEST_FIRST_NODE": str(first), **variables}
    for _ in range(TRIES):
        done = subprocess.run([launch, launcher, str(RANKS), tool.path, "bench", *words, "--engine", "mpi", "--json"],
                              capture_output=True, text=True, timeout=200, env=environment, check=False)
        if BUSY not in done.stderr:
            break
    return [json.loads(line) for line in done.stdout.splitlines()], [done.stderr] if done.returncode else []


def links_between_nodes_are_measured(first):
    """Of two ranks in a node and a third in another. S(0) to S(1) brings 2 of 9 boxes into either, and S(0) to R 2 of 3 pieces into that of
    one rank: a move takes at least as long as the links between nodes take for so much. By what TSR_COST says every copy would cross for
    itself, in a message from each peer: it does not count. Figures are of the plan that runs, which packs and unpacks boxes (2 of 9 either
    way), and hands copies round in the fuller node."""
    side = 384
    rows, wrong = on_two_nodes(first, "simulate", "--mesh", str(RANKS), "--shape", f"{side}x{side}", "--from", "S(0)", "--to", "S(1)", "--to", "R", "--validate",
                               TSR_COST="inside=1,1e30 between=1,1e30")
    wrong += harness.different("lines", len(rows), 2)
    if wrong:
        return wrong
    wrong += harness.different("workspace", rows[0]["workspace_bytes"], 2 * 4 * side * side * 2 // 9)
    wrong += harness.different("messages", [row["messages_received"]["max"] for row in rows], [2, 3])
    for row, crossing in zip(rows, (2 / 9, 2 / 3)):
        latency, bandwidth = map(float, row["links"].partition("between=")[2].split(","))
        wrong += harness.different("place", (row["engine"], row["nodes"]), ("mpi", 2))
        wrong += harness.different("measured", [row["links_error"][kind]["max"] > 0 for kind in ("inside", "between")], [True, True])
        wrong += harness.different("other links than the default", bandwidth != 1.25e10, True)
        least = latency + 4 * side * side * crossing / bandwidth
        wrong += [] if row["seconds"] >= least * (1 - 1e-9) else [f"{row}: {least} is what its links between nodes take"]
    return wrong


def errors_are_of_the_profile(first):
    """The latency between nodes is not less than that inside. The error that is printed is of the links after this correction."""
    rows, wrong = on_two_nodes(first, "calibrate", "-b", "1K", "-e", "1M", "-f", "32", "-n", "3", "--calls", "20")
    wrong += harness.different("lines", len(rows), 1)
    for row in rows:
        wrong += harness.different("between begins later", row["between"]["latency"] >= row["inside"]["latency"], True)
        for link, name in (("inside", "error"), ("between", "between_error")):
            points = [point for point in row["points"] if point["link"] == link]
            # A rank receives 1 KiB, 32 KiB or 1 MiB in boxes of at most this size, and a node of one rank receives as much.
            wrong += harness.different(f"{link}: bytes", all(0 < point["bytes"] <= 2 ** 20 for point in points), True)
            errors = [abs((row[link]["latency"] + point["bytes"] / row[link]["bandwidth"]) / point["seconds"] - 1) for point in points]
            for what, found in (("median", statistics.median(errors)), ("max", max(errors))):
                wrong += [] if math.isclose(row[name][what], found, rel_tol=1e-9, abs_tol=1e-9) else [f"{row}: {link}, {what} is {found}"]
    return wrong


# Which rank is alone is decided above the MPI, so each MPI has one of the arrangements.
for first in (1,) if "mpich" in launcher else (2,):
    told = "the first rank has a node for itself" if first == 1 else "the last rank has a node for itself"
    tool.case(f"{told}: links between nodes are measured, and moves are timed by them", links_between_nodes_are_measured, first)
    tool.case(f"{told}: errors are of the profile that is told", errors_are_of_the_profile, first)
tool.report.finish()
