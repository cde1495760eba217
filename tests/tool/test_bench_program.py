#!/usr/bin/env python3
"""`tessera bench program`, of small sizes: no figure is looked at but for what it must be by itself.

usage: test_bench_program.py TOOL
"""
import json
import sys

import harness

tool = harness.Tool(sys.argv[1])
SMALL = ["--hidden", 64, "--heads", 8, "--kv-heads", 4, "--intermediate", 96, "--tokens", 6, "-n", 2, "-w", 0, "--calls", 1]
FIELDS = ["bench", "program", "ranks", "mesh", "sequences", "tokens", "hidden", "intermediate", "heads", "kv_heads", "dtype", "seconds", "kernel_seconds",
          "of_kernels", "bytes_received", "compile_seconds", "workspace_bytes", "wrong", "calls"]


def lines(*arguments):
    done = tool.run("bench", "program", *arguments, *SMALL, "--json")
    if done.returncode or done.stderr:
        raise AssertionError(f"{harness.shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
    return [json.loads(line) for line in done.stdout.splitlines()]


def both_are_right(mesh, ranks, sequences, reduced):
    """`reduced`: the most that a rank receives when terms of a sequence's 6 x 64 floats are reduced to all."""
    found = lines("--mesh", mesh)
    wrong = harness.different("programs", [l["program"] for l in found], ["mlp", "llama-block"])
    wrong += harness.different("fields", {tuple(l) for l in found}, {tuple(FIELDS)})
    wrong += harness.different("wrong", [l["wrong"] for l in found], [0, 0])
    wrong += harness.different("ranks", {(l["ranks"], l["mesh"], l["sequences"]) for l in found}, {(ranks, mesh, sequences)})
    wrong += harness.different("bytes", [l["bytes_received"] for l in found], [reduced, 2 * reduced])
    return wrong + [f"{l}: times" for l in found if not (l["seconds"]["min"] > 0 and l["kernel_seconds"]["min"] > 0 and l["compile_seconds"] > 0)]


def names_choose():
    return harness.different("programs", [l["program"] for l in lines("llama-block")], ["llama-block"])


def people():
    said = tool.run("bench", "program", "mlp", *SMALL, "-c", 0).stdout
    return [f"{word} is not in {said}" for word in ("of_kernels", " mlp ", " N/A ") if word not in said]


tool.case("on one rank", both_are_right, "1", 1, 1, 0)
tool.case("on two", both_are_right, "2", 2, 1, 6 * 64 * 4)
tool.case("on four, in pairs", both_are_right, "dp=2,tp=2", 4, 2, 6 * 64 * 4)
tool.case("names choose programs", names_choose)
tool.case("people get a table", people)
tool.refuses(2, ["bench", "program", "mpl"], ["mlp and llama-block"])
tool.refuses(1, ["bench", "program", "--heads", 3], ["--heads 3"])
tool.refuses(1, ["bench", "program", "--kv-heads", 5], ["--kv-heads 5"])
tool.refuses(1, ["bench", "program", "--tokens", 0], ["--tokens"])
tool.refuses(1, ["bench", "program", "--mesh", "2@1"], ["ranks 0, 1"])
tool.report.finish()
