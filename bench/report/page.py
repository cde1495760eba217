"""docs/benchmarks.md from the figures of one run, or of several."""
from figures import ENGINES, MOVES, NAMES, PEERS, byte_text, noise, rounded, time_text

DISTURBED = 0.1  # share of the cores beyond which a figure says so

INTRODUCTION = """# Benchmarks

Tessera and its peers on one machine: the same moves, sizes and ranks, in turns, one thread a rank for all of them. Only ratios of one
run mean something; absolute times are this machine's on that day. `scripts/bench-report` wrote this page from the figures of
`scripts/bench-peers`; [what holds for any run](benchmarks/remarks.md) is written by hand.{more}

    ./scripts/bench-peers --output figures.json
    ./scripts/bench-report figures.json

The figures of this page are in [benchmarks/peers.json](benchmarks/peers.json), with the time at which each was measured.

A figure is the median of its rounds' medians; in a round everybody is asked in turn. Behind it stands its noise (`±4%`), half of what those
medians spread over, relative to the figure; that of a ratio is the sum of both{known}.
`others 23%` stands where other processes used more than a tenth of the cores in a round. Every peer's result is held against one
reference, element by element, and Tessera's against that of `tessera bench`: {checked}.
"""

MOVING = """\
Of a square f32 tensor. The limit is that of [`tessera bench`](tool.md#bench), measured between Tessera's own moves: the time of a move that
reads every term of the source once and writes every result once, at the rate at which the best plain copy reads and writes. Up to some MiB
tensors stay in the caches, where a loop of the same call finds them. Whiskers of times go from the least to the most sample, those of
shares and ratios as far as their noise.
"""

ENGINE = """\
Ranks are processes that an MPI's launcher started, each on a core of its own, and move by Tessera's engine for that MPI; its peer is what
the same MPI does by itself, in its faster way. The best plain copy is the best that anybody made of the payload in this run.
"""

BEHIND = """\
Every figure at which a peer was faster, by their fastest ways: {count} of {compared}.
"""

LAYERS = """\
A column- and a row-parallel layer without bias, f32; backward gives the gradients of x and of both weights. `of its GEMMs` is the
time of the same local products called directly, by each implementation's own BLAS, over that of the layers.
"""

DECODING = """\
Tokens a second of [`examples/llama/shakespeare`](../examples/llama/README.md), 1.67 M parameters, greedily, after the prompt. Its
3 key/value heads do not divide by 2 ranks; with each of them twice it is the same function of its input, and gives the same text.
"""

ASKED = """\
| implementation | is asked by | ranks are |
| --- | --- | --- |
| Tessera | `tessera bench dispatch`, `bench linear`, `tessera-llama`; results go into the same memory again | threads |
| Tessera over MPI | the same moves, under the MPI's launcher with `--engine mpi` | processes on cores of their own |
| MPI | `MPI_Alltoallw` with subarray types and pack + `MPI_Alltoall`, `MPI_Allgather`, `MPI_Reduce_scatter` and `_block`, `MPI_Allreduce` | processes on cores of their own |
| PyTorch DTensor | `DTensor.redistribute`, `parallelize_module` with `ColwiseParallel` and `RowwiseParallel`, on gloo; each call makes its result | processes |
| JAX | `jax.device_put` and `jax.jit` with `out_shardings`; `psum_scatter` and `psum` in `jax.shard_map` where the source is Partial; each call makes its result | CPU devices of one process |
| transformers | `generate` of a model loaded with a `DistributedConfig` of as many devices as ranks, on gloo | processes |
| memcpy | the C library's, of the payload, by as many threads as ranks | threads |

Where an implementation has several ways, its fastest counts. The scripts are in [`bench/peers`](../bench/peers/README.md).
"""

SAMPLED = """\
A sample is a loop of calls of about 20 ms, or one call that takes longer, on the slowest rank; of tokens it is a text. Warm-up is the first
call and loops for 0.3 s, of Tessera's layers three loops, of transformers one text, and of `tessera-llama` the prompt.
"""


def table(head, rows, figures_from=1):
    """Columns of figures, which begin at that one, are set to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" if i < figures_from else "--:" for i in range(len(head))) + " |"
    for row in rows:
        yield "| " + " | ".join(str(cell) for cell in row) + " |"
    yield ""


def spread_text(share):
    """Nothing where it is not known."""
    return "" if share is None else f" ±{100 * share:.0f}%"


def others_text(*lines):
    most = max(line.get("others") or 0 for line in lines)
    return f" (others {100 * most:.0f}%)" if most > DISTURBED else ""


def figure_text(line, key="seconds"):
    return time_text(line[key]["median"]) + spread_text(noise(line, key)) + others_text(line)


def measured_text(measured):
    return rounded(measured.value) + spread_text(measured.noise)


def range_of(values):
    """As "3", or as "1 to 3"."""
    values = sorted(values)
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def others(figures):
    """How much of the cores was not ours."""
    known = sorted(line["others"] for line in figures.measured if line.get("others") is not None)
    if not known:
        return "not known"
    unknown = len(figures.measured) - len(known)
    most, median = known[-1], known[len(known) // 2]
    disturbed = sum(share > DISTURBED for share in known)
    return (f"used up to {100 * most:.0f} % of the cores while a figure was measured, {100 * median:.0f} % in the median, "
            f"more than {100 * DISTURBED:.0f} % for {disturbed} of {len(known)}"
            + (f"; not known for {unknown} of {len(figures.measured)} figures" if unknown else ""))


def measured_when(figures):
    began = [line["began"] for line in figures.measured if "began" in line]
    ended = [line["ended"] for line in figures.measured if "ended" in line]
    return f"{min(began)} to {max(ended)}".replace("T", " ") if began and ended else "not known"


def machine(figures):
    m = figures.machine
    versions = ", ".join(version if version.startswith(name) else f"{name} {version}" for name, version in m["versions"].items()
                         if version)
    per_core = m.get("threads_per_core")
    cores = f"{m['cores']} cores" + (f" ({per_core} threads a core)" if per_core and per_core > 1 else "")
    build = ", ".join(part for part in (m.get("buildtype"), m.get("compiler")) if part)
    rows = [("date", m["date"]), ("measured", measured_when(figures)), ("sources", m.get("commit")), ("build", build),
            ("kernels", m.get("kernels")), ("BLAS", m.get("blas")),
            ("processor", f"{m['processor']}, {cores}, {m['memory_gib']} GiB of memory"),
            ("caches", ", ".join(m.get("caches") or [])), ("system", f"{m['system']}, {m['libc']}"), ("versions", versions),
            ("ranks", figures.ranks()), ("other processes", others(figures))]
    yield "## The machine\n"
    yield from table(("what", "which"), [(what, which or "not known") for what, which in rows], 2)


def judge(measured, goal):
    """A goal is met for sure, or not at all, where the noise does not reach it."""
    least, most = measured.between()
    said = "met" if measured.value >= goal else "**not met**"
    return said if (least >= goal) == (most >= goal) else f"{said}, within its noise"


def goal_table(goals):
    rows = [(what, against, goal, "not measured", "") if measured is None
            else (what, against, goal, measured_text(measured), judge(measured, goal)) for what, against, goal, measured in goals]
    yield from table(("what", "against", "at least", "measured", ""), rows, 2)


def of_ranks(ranks):
    return "Goals and figures are of two ranks." if ranks == 2 else f"The goals are for two ranks, the figures of {ranks}."


def goals(figures):
    yield "## Goals\n"
    yield f"How many times a peer's time is Tessera's; against MPI, its faster way. {of_ranks(figures.ranks())}\n"
    yield from goal_table(figures.goals())
    for ours, peer in ENGINES:
        if figures.has(ours):
            yield f"### {NAMES[ours]}\n"
            yield ENGINE
            yield from goal_table(figures.engine_goals(ours, peer))


def behind(figures):
    compared = sum(1 for _ in figures.compared())
    rows = [(what, NAMES[ours["implementation"]], figure_text(ours), f"{NAMES[theirs['implementation']]} ({theirs['way']})",
             figure_text(theirs), measured_text(ratio)) for what, ours, theirs, ratio in figures.behind()]
    if compared:
        yield "## Where Tessera is behind\n"
        yield BEHIND.format(count=len(rows), compared=f"{compared} comparisons")
    if rows:
        yield from table(("what", "ours", "time", "peer", "its time", "its time over ours"), rows, 2)


def cell(figures, name, move, size):
    line = figures.move(name, move, size)
    return figure_text(line) if line else ""


def limit_cell(figures, move, size):
    share = figures.share("tessera", move, size)
    return measured_text(share) if share else ""


def moves(figures, drawn):
    captions = {"time": "time of a call against the tensor's size", "share": "share of the limit against the tensor's size",
                "ratio": "ratio to each peer against the tensor's size"}
    names = ["tessera", "tessera-mpi", "tessera-mpich", "mpi", "mpich", *PEERS[1:], "memcpy"]
    names = [name for name in names if figures.has(name)]
    yield "## Moves\n"
    yield MOVING
    for name in drawn:
        yield f"![{captions[name]}](benchmarks/{name}.svg)\n"
    for move in MOVES:
        rows = [(byte_text(size), *(cell(figures, name, move, size) for name in names), limit_cell(figures, move, size))
                for size in figures.sizes() if figures.move("tessera", move, size)]
        if rows:
            yield f"### {move[0]} to {move[1]}\n"
            yield from table(("tensor", *(NAMES[name] for name in names), "Tessera's share of the limit"), rows)


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
                     figure_text(line), time_text(line["gemm_seconds"]["median"]) + spread_text(noise(line, "gemm_seconds")),
                     rounded(of_gemm)))
    yield from table(("tokens x hidden x intermediate", "pass", "implementation", "time", "its GEMMs", "of its GEMMs"), rows, 3)


def decoding(figures):
    lines = [line for line in figures.lines if line["kind"] == "decode"]
    if not lines:
        return
    yield "## Decoding\n"
    yield DECODING
    rows = []
    for line in lines:
        speed = (f"`{line['refused']}`" if "refused" in line
                 else f"{1 / line['seconds']['median']:,.0f}{spread_text(noise(line))}{others_text(line)}")
        rows.append((line["kv_heads"], f"{NAMES[line['implementation']]}, {line['ranks']} ranks", speed))
    yield from table(("key/value heads", "implementation", "tokens a second"), rows, 2)


def refused(figures):
    """Of moves and layers; decoding tells its own."""
    lines = [line for line in figures.refused if line["kind"] != "decode"]
    if not lines:
        return
    reasons = {}
    for line in lines:
        reasons.setdefault((line["kind"], line["implementation"], line["way"], line["refused"]), []).append(line)
    yield "## What was refused\n"
    rows = [(kind, NAMES[name], way, len(same), f"`{reason}`") for (kind, name, way, reason), same in reasons.items()]
    yield from table(("what", "implementation", "way", "figures", "why"), rows, 5)


def sampled(figures):
    """What was done, of every implementation and kind of figure."""
    groups = {}
    for line in figures.measured:
        groups.setdefault((NAMES[line["implementation"]], line["kind"]), []).append(line)
    rows = []
    for (name, kind), lines in groups.items():
        again = sum(line.get("asked", 0) > line["rounds"] for line in lines)
        counts = (range_of({line[key] for line in lines}) for key in ("rounds", "samples"))
        rows.append((name, kind, len(lines), *counts, again))
    if rows:
        yield SAMPLED
        yield from table(("implementation", "what", "figures", "rounds", "samples a round", "asked again when disturbed"), rows, 2)


def checked(figures):
    wrong = sum(line.get("wrong") or 0 for line in figures.measured)
    unchecked = sorted({f"{NAMES[line['implementation']]}'s {line['kind']}" for line in figures.measured if line.get("wrong") is None})
    said = f"{wrong} were wrong" if wrong else "none was wrong"
    return said + (f" ({', '.join(unchecked)}: not in this run, but by its own tests)" if unchecked else "")


def known(figures):
    unknown = sum(noise(line) is None for line in figures.measured)
    return f"; not known for the {unknown} of {len(figures.measured)} figures that have one round" if unknown else ""


def write(figures, drawn, more=""):
    """The page; `drawn` are the names of the pictures that there are, `more` is what else to read."""
    introduction = INTRODUCTION.format(checked=checked(figures), known=known(figures), more=more)
    parts = [introduction, *machine(figures), *goals(figures), *behind(figures), *moves(figures, drawn), *layers(figures),
             *decoding(figures), *refused(figures), "## How each one is asked\n", ASKED, *sampled(figures)]
    return "\n".join(parts)
