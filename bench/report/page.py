"""docs/benchmarks.md from the figures of one run, or of several."""
from figures import MOVES, NAMES, PEERS, byte_text, rounded, time_text

INTRODUCTION = """# Benchmarks

Tessera and its peers on one machine: the same moves, sizes and ranks, in turns, one thread a rank for all of them. Only ratios of one
run mean something, and where figures were taken in several the remarks say so; absolute times are this machine's on that day.
`scripts/bench-report` wrote this page from the figures of `scripts/bench-peers`;
[what they say, and where they fall short](benchmarks/remarks.md) is written by hand.

    ./scripts/bench-peers --output figures.json
    ./scripts/bench-report figures.json

The figures of this page are in [benchmarks/peers.json](benchmarks/peers.json).

A figure is the median of {rounds} rounds' medians, {samples} samples a round; every implementation is asked once in each round. A sample
is a loop of calls that takes about 20 ms, or one call that takes longer, on the slowest rank; warm-up is left out. Every peer's result is
held against one reference, element by element, and Tessera's moves against that of `tessera bench redistribute`:
{checked}.
"""

MOVING = """\
Of a square f32 tensor. The limit is the time of the best plain copy of the same run for the bytes that the move must read and write:
those of a copy of the payload (what is written into all destination shards), and half as much again from P to S(0) on two ranks. Up to
some MiB tensors stay in the caches, where a loop of the same call finds them.
"""

LAYERS = """\
A column- and a row-parallel layer without bias, f32; backward gives the gradients of x and of both weights. `of its GEMMs` is the
time of the same local products called directly, by each implementation's own BLAS, over that of the layers.
"""

DECODING = """\
Tokens a second of [`examples/llama/shakespeare`](../examples/llama/README.md), 1.67 M parameters, greedily, after the prompt. Its
3 key/value heads do not divide by 2 ranks; with each of them twice it is the same function of its input, and gives the same text.
"""

ASKED = """## How each one is asked

| implementation | is asked by | ranks are |
| --- | --- | --- |
| Tessera | `tessera bench dispatch` up to 64 MiB, `bench redistribute` beyond, `bench linear`, `tessera-llama`; results go into the same memory again | threads |
| MPI | `MPI_Alltoallw` with subarray types and pack + `MPI_Alltoall`, `MPI_Allgather`, `MPI_Reduce_scatter` and `_block`, `MPI_Allreduce` | processes on cores of their own |
| PyTorch DTensor | `DTensor.redistribute`, `parallelize_module` with `ColwiseParallel` and `RowwiseParallel`, on gloo; each call makes its result | processes |
| JAX | `jax.device_put` and `jax.jit` with `out_shardings`; `psum_scatter` and `psum` in `jax.shard_map` where the source is Partial; each call makes its result | CPU devices of one process |
| transformers | `generate` of a model loaded with `tp_plan="auto"`, on gloo | processes |
| memcpy | the C library's, of the payload, by as many threads as ranks | threads |

Where an implementation has several ways, its fastest counts. The scripts are in [`bench/peers`](../bench/peers).
"""


def table(head, rows, figures_from=1):
    """Columns of figures, which begin at that one, are set to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" if i < figures_from else "--:" for i in range(len(head))) + " |"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def others(figures):
    """How much of the cores was not ours."""
    known = sorted(line["others"] for line in figures.measured if line.get("others") is not None)
    if not known:
        return "not known"
    unknown = len(figures.measured) - len(known)
    most, median = known[-1], known[len(known) // 2]
    return (f"used up to {100 * most:.0f} % of the cores while a figure was measured, {100 * median:.0f} % in the median"
            + (f"; not known for {unknown} of {len(figures.measured)} figures" if unknown else ""))


def machine(figures):
    m = figures.machine
    versions = ", ".join(version if version.startswith(name) else f"{name} {version}" for name, version in m["versions"].items() if version)
    rows = [("date", m["date"]), ("processor", f"{m['processor']}, {m['cores']} cores, {m['memory_gib']} GiB of memory"),
            ("system", f"{m['system']}, {m['libc']}"), ("versions", versions), ("ranks", figures.ranks()),
            ("other processes", others(figures))]
    yield "## The machine\n"
    yield from table(("what", "which"), rows, 2)


def goals(figures):
    yield "## Goals\n"
    yield "How many times a peer's time is Tessera's, on two ranks; against MPI, its faster way.\n"
    rows = [(what, peer, goal, "not measured", "") if measured is None
            else (what, peer, goal, rounded(measured), "met" if measured >= goal else "**not met**")
            for what, peer, goal, measured in figures.goals()]
    yield from table(("move", "peer", "at least", "measured", ""), rows, 2)


def cell(figures, name, move, size):
    line = figures.move(name, move, size)
    return time_text(line["seconds"]["median"]) if line else ""


def moves(figures, drawn):
    captions = {"time": "time of a call against the tensor's size", "share": "share of the limit against the tensor's size",
                "ratio": "ratio to each peer against the tensor's size"}
    names = ["tessera", *PEERS, "memcpy"]
    yield "## Moves\n"
    yield MOVING
    for name in drawn:
        yield f"![{captions[name]}](benchmarks/{name}.svg)\n"
    for move in MOVES:
        rows = [(byte_text(size), *(cell(figures, name, move, size) for name in names)) for size in figures.sizes()
                if figures.move("tessera", move, size)]
        if rows:
            yield f"### {move[0]} to {move[1]}\n"
            yield from table(("tensor", *(NAMES[name] for name in names)), rows)


def layers(figures):
    lines = [line for line in figures.measured if line["kind"] == "linear"]
    if not lines:
        return
    yield "## A tensor-parallel MLP\n"
    yield LAYERS
    rows = []
    for line in lines:
        of_gemm = line["gemm_seconds"]["median"] / line["seconds"]["median"]
        rows.append((f"{line['tokens']} x {line['hidden']} x {line['intermediate']}", line["pass"], NAMES[line["implementation"]],
                     time_text(line["seconds"]["median"]), time_text(line["gemm_seconds"]["median"]), rounded(of_gemm)))
    yield from table(("tokens x hidden x intermediate", "pass", "implementation", "time", "its GEMMs", "of its GEMMs"), rows, 3)


def decoding(figures):
    lines = [line for line in figures.lines if line["kind"] == "decode"]
    if not lines:
        return
    yield "## Decoding\n"
    yield DECODING
    rows = []
    for line in lines:
        speed = f"`{line['refused']}`" if "refused" in line else f"{1 / line['seconds']['median']:,.0f}"
        rows.append((line["kv_heads"], f"{NAMES[line['implementation']]}, {line['ranks']} ranks", speed))
    yield from table(("key/value heads", "implementation", "tokens a second"), rows, 2)


def checked(figures):
    wrong = sum(line.get("wrong") or 0 for line in figures.measured)
    unchecked = sorted({f"{NAMES[line['implementation']]}'s {line['kind']}" for line in figures.measured if line.get("wrong") is None})
    said = f"{wrong} were wrong" if wrong else "none was wrong"
    return said + (f" ({', '.join(unchecked)}: not in this run, but by its own tests)" if unchecked else "")


def write(figures, drawn):
    """The page; `drawn` are the names of the pictures that there are."""
    first = figures.measured[0] if figures.measured else {"rounds": 0, "samples": 0}
    introduction = INTRODUCTION.format(rounds=first["rounds"], samples=first["samples"], checked=checked(figures))
    parts = [introduction, *machine(figures), *goals(figures), *moves(figures, drawn), *layers(figures), *decoding(figures),
             ASKED]
    return "\n".join(parts)
