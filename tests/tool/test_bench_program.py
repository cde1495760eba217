#!/usr/bin/env python3
"""`tessera bench program`, of small sizes: no figure is looked at but for what it must be by itself.

usage: test_bench_program.py TOOL
"""
import json
import os
import sys

import harness

tool = harness.Tool(sys.argv[1])
SMALL = ["--hidden", 64, "--heads", 8, "--kv-heads", 4, "--intermediate", 96, "--tokens", 6, "-n", 2, "-w", 0, "--calls", 1]
FIELDS = ["bench", "program", "ranks", "mesh", "sequences", "tokens", "hidden", "intermediate", "heads", "kv_heads", "dtype", "seconds", "predicted_seconds",
          "kernel_seconds", "of_kernels", "bytes_received", "compile_seconds", "workspace_bytes", "predicted_peak_bytes", "peak_bytes", "wrong", "calls"]
COMPILED = ["bench", "program", "ranks", "mesh", "layers", "sequences", "tokens", "hidden", "intermediate", "heads", "kv_heads", "dtype", "rank", "seconds",
            "steps", "predicted_seconds", "bytes_received", "workspace_bytes", "predicted_peak_bytes"]


def lines(*arguments, sizes=SMALL, env=None):
    done = tool.run("bench", "program", *arguments, *sizes, "--json", **({"env": {**os.environ, **env}} if env else {}))
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


def memory_is_as_predicted(mesh):
    """Within 5 %, of a size at which what the library keeps beside tensors is small."""
    found = lines("--mesh", mesh, sizes=["--hidden", 512, "--heads", 8, "--tokens", 64, "-n", 1, "-w", 0, "--calls", 1])
    shares = [l["peak_bytes"] / l["predicted_peak_bytes"] for l in found]
    # Weights alone: gate, up and down; queries and output, and half as many keys and values.
    wrong = [] if all(l["predicted_peak_bytes"] > 3 * 512 * 2048 * 4 / l["ranks"] for l in found) else [f"too little is predicted: {found}"]
    return wrong + [f"{l['program']}: {share} of what was predicted" for l, share in zip(found, shares) if not 0.95 <= share <= 1.05]


def times_are_predicted_by_the_profile():
    """By this one every kernel takes a second, and all else nothing: an MLP has 4, a block 16 where none are fused."""
    profile = tool.folder / "seconds.cost"
    profile.write_text("inside=0,1e30 between=0,1e30 call=1 pass=1:1e30 multiply@1=1:1e30 attend@1=1:1e30")
    wrong = []
    for found in (lines("--profile", profile), lines(env={"TSR_COST": profile.read_text()})):
        mlp, block = (round(l["predicted_seconds"], 6) for l in found)
        wrong += [] if mlp == 4 and block in range(10, 17) else [f"{mlp} and {block} seconds"]
    return wrong


def a_whole_model_compiles_for_one_rank_of_a_million():
    def compiled(*more):
        return lines("llama", "--mesh", "dp=262144,tp=4", "--rank", 777, *more)[0]

    one, two = compiled("--layers", 1), compiled("--layers", 2)
    wrong = harness.different("fields", list(one), COMPILED)
    wrong += harness.different("line", [one[f] for f in ("ranks", "mesh", "layers", "rank", "tokens")], [1048576, "dp=262144,tp=4", 1, 777, 6])
    # A layer's shard: gate, up and down; queries and output, keys and values; two norms; caches of 6 tokens.
    shard = (3 * 64 * 96 + 2 * 64 * 64 + 2 * 64 * 32) // 4 + 2 * 64 + 2 * 6 * 32 // 4
    wrong += harness.different("bytes of a layer", two["predicted_peak_bytes"] - two["workspace_bytes"] - one["predicted_peak_bytes"] + one["workspace_bytes"],
                               4 * shard)
    return wrong + harness.different("workspace is shared by layers", two["workspace_bytes"], one["workspace_bytes"])


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
tool.case("memory is as predicted, on one rank", memory_is_as_predicted, "1")
tool.case("and on two", memory_is_as_predicted, "2")
tool.case("times are predicted by the profile", times_are_predicted_by_the_profile)
tool.case("a whole model compiles for one rank of a million", a_whole_model_compiles_for_one_rank_of_a_million)
tool.refuses(2, ["bench", "program", "mpl"], ["mlp, llama-block and llama"])
tool.refuses(2, ["bench", "program", "llama"], ["--rank"])
tool.refuses(1, ["bench", "program", "mlp", "--mesh", "2", "--rank", 2], ["--rank is 2", "0 to 1"])
tool.refuses(1, ["bench", "program", "llama", "--rank", 0, "--layers", 0], ["--layers"])
tool.refuses(1, ["bench", "program", "--heads", 3], ["--heads 3"])
tool.refuses(1, ["bench", "program", "--kv-heads", 5], ["--kv-heads 5"])
tool.refuses(1, ["bench", "program", "--tokens", 0], ["--tokens"])
tool.refuses(1, ["bench", "program", "--mesh", "2@1"], ["ranks 0, 1"])
tool.report.finish()
