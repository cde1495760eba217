#!/usr/bin/env python3
"""`tessera bench simulate --validate` on two nodes, which one machine pretends to be.
usage: test_simulated_nodes.py LAUNCH LAUNCHER PRETENDED_NODES TOOL"""
import json
import os
import pathlib
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
import harness  # noqa: E402

launch, launcher, library, path = sys.argv[1:]
tool = harness.Tool(pathlib.Path(path).resolve())
RANKS, FIRST = 3, 2


def links_between_nodes_are_measured():
    """Ranks 0 and 1 are a node, and rank 2 is another. S(0) to S(1) brings 2 of 9 boxes into either, and S(0) to R 2 of 3 pieces into the
    second: a move takes at least as long as the links between nodes take for so much."""
    side = 384
    environment = {**os.environ, "LD_PRELOAD": library, "TEST_FIRST_NODE": str(FIRST)}
    done = subprocess.run([launch, launcher, str(RANKS), tool.path, "bench", "simulate", "--engine", "mpi", "--mesh", str(RANKS), "--shape", f"{side}x{side}",
                           "--from", "S(0)", "--to", "S(1)", "--to", "R", "--validate", "--json"],
                          capture_output=True, text=True, timeout=200, env=environment, check=False)
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit", (done.returncode, len(rows)), (0, 2)) + ([done.stderr] if done.returncode else [])
    for row, crossing in zip(rows, (2 / 9, 2 / 3)):
        latency, bandwidth = map(float, row["links"].partition("between=")[2].split(","))
        wrong += harness.different("place", (row["engine"], row["nodes"]), ("mpi", 2))
        wrong += harness.different("measured", [row["links_error"][kind]["max"] > 0 for kind in ("inside", "between")], [True, True])
        wrong += harness.different("other links than the default", bandwidth != 1.25e10, True)
        least = latency + 4 * side * side * crossing / bandwidth
        wrong += [] if row["seconds"] >= least * (1 - 1e-9) else [f"{row}: {least} is what its links between nodes take"]
    return wrong


tool.case("links between nodes are measured, and moves are timed by them", links_between_nodes_are_measured)
tool.report.finish()
