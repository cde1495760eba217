"""Makes docs/benchmarks.md from figures."""
from figures import MAKERS, MOVES, byte_text, name_of, op_text, ratio_of, rounded, rows_text, share_of_copies, time_text, unit_of
from noise import exactly, interval_of, seconds_of

DISTURBED = 0.1  # share of the cores that other processes used, above which a figure mentions it
EVEN = 0.02  # an interval whose two sides differ by at most this share of the figure is written as one number


class Place:
    """Where a page lies, as prefixes of its links: to the root, to docs/, to docs/benchmarks/ and to
    the folder of its own pictures and figures."""

    def __init__(self, docs, benchmarks, own):
        self.root, self.docs, self.benchmarks, self.own = f"{docs}../", docs, benchmarks, own


IN_DOCS = Place("", "benchmarks/", "benchmarks/")
IN_ITS_FOLDER = Place("../../", "../", "")  # beside its pictures, in a folder of docs/benchmarks/

INTRODUCTION = """# Benchmarks

Tessera and its peers on one machine: the same moves, sizes and ranks, in turns, one thread a rank
for all of them. Only ratios within one run mean something; absolute times are those of this machine
on that day. `scripts/bench-report` wrote this page from the figures of `scripts/bench-peers`;
[what holds for any run]({place.benchmarks}remarks.md) is written by hand.{simulation}

    ./scripts/bench-peers --output figures.json
    ./scripts/bench-report figures.json

The figures of this page are in
[{place.own}peers.json]({place.own}peers.json){times}.

In each round all implementations are measured in turn. A figure is the median of its rounds'
medians. After it comes its noise: an interval between two rounds that contains the median of
endlessly many rounds with a chance of at least three in four. Of 3 rounds it is all that they span;
of 9 rounds it goes from the third to the seventh. It is written as `1.01 us (0.52 to 1.30)`, or as
`±4%` where it goes about as far down as up{known}. The interval of a ratio goes from the
lowest of one figure over the highest of the other to the highest over the lowest. Verdicts go by
these intervals: a goal is met within its noise where the interval also has ratios that miss it, and
not met within its noise where it also has ratios that meet it. `others 23%` says that other
processes used more than a tenth of the cores in a round. The results of every peer are compared
with one reference, element by element, and Tessera's with that of `tessera bench`: {checked}.
"""

SIMULATION = "\n[How far the model of links is off]({place.benchmarks}simulation.md) was measured too."

GOALS = """\
A ratio is a peer's time over Tessera's, which writes into the memory of its last result. PyTorch
and JAX make a new result at each call; `with a new result` is Tessera's ratio when it does so too
(`tsr_redistribute()`), with the same goal. MPI is the fastest of its own collectives. `MPI by hand`
is what a program makes of them where no collective does the move well, an `MPI_Alltoall` of the
terms, a loop that adds them, and, for P to R, an `MPI_Allgather`: it has no goal.
{ranks}
"""

MOVING = """\
Moves of a square f32 tensor. The limit is that of [`tessera bench`]({place.docs}tool.md#bench), measured
between Tessera's own moves: the time of a move that reads every term of the source once and writes
every result once, at the rate at which the best plain copy reads and writes. Up to some MiB tensors
stay in the caches, where a loop of one call finds them. In the pictures whiskers show the noise.
Shares of tensors below 256 KiB are not drawn: the copy that gives the limit is over before ranks
could have met.
"""

ENGINE = """\
Ranks are processes that an MPI's launcher started, each on a core of its own, and move by Tessera's
engine for that MPI; the peer is what that MPI does by itself, by its fastest collective. The best
plain copy is the fastest copy of the payload that any implementation made in this run.
"""

BEHIND = """\
Every figure at which a peer was faster, by their fastest ways: {count} of {compared}.
Tessera with a new result is compared with peers that make one too, Tessera and its engines over MPI
also with what a program of MPI's collectives does by hand.
"""

LAYERS = """\
A column- and a row-parallel layer without bias, f32; backward gives the gradients of x and of both
weights. `of its GEMMs` is the time of the layers' local products called directly, by each
implementation's own BLAS, over the time of the layers: Tessera's products are timed in turns with
its layers, PyTorch's after them. PyTorch's forward records the graph that its backward needs, and
its backward makes new gradients; Tessera's forward records nothing, and its gradients go into the
memory of the last ones.
"""

DECODING = """\
Tokens a second of [`examples/llama/shakespeare`]({place.root}examples/llama/README.md), 1.67 M
parameters, greedily, after the prompt. Its 3 key/value heads do not divide by 2 ranks. A copy of
the model with each of these heads twice is the same function of its input, and gives the same text.
On one rank transformers runs as a plain script, without its tensor parallelism.
"""

OPERATIONS = """\
Single calls of ops of f32. Tessera's are [`tessera bench ops`]({place.docs}tool.md#bench): results
go into the same memory again, gradients are new at each call. PyTorch on one rank is a plain
script, with a new result at each call or with `out=`, where the op has such a form: the faster of
the two counts. PyTorch DTensor makes a new result at each call. On several ranks rows and heads are cut, and the classes of a loss, which PyTorch calls
`loss_parallel`. The backward alone is timed: PyTorch's reads what its forward kept, Tessera's
computes it again, as it keeps nothing. `of plain copies` is the rate at which the op's bytes are
read and written once, over that of the best plain copy in turns with it.

The goals: a repeated add of 64 bytes into a result that exists takes at most 300 ns; `add`,
`silu_mul`, `rms_norm`, `layer_norm` and `softmax` reach 0.9 of plain copies; `gelu` and `tanh` are
no slower than PyTorch's, and attention no slower than its `scaled_dot_product_attention`; a loss
whose classes two ranks share takes at most 0.6 of the time of one rank. Each is written as a ratio
that is to be at least so large.
"""

BLOCKS = """\
A block of a Llama of f32 without a cache of keys: attention with grouped queries and an MLP with a
gate, each behind a norm. Tessera's is one program, cut between heads ([`tessera bench
program`]({place.docs}tool.md#bench)). PyTorch's is divided by `parallelize_module` on several
ranks; on one rank it is a plain module, for which there is no goal. A block of one token reads each
weight for a single product: 61 MB at hidden 1,024, so that the time is that of reading them.
"""

ROWS = """\
Gathers and updates of [rows by id]({place.docs}rows.md) of a table of f32, {tables}, that is cut by
rows. Each rank brings random ids, other ones in each call. Tessera's are [`tessera bench
rows`]({place.docs}tool.md#bench): rank threads read one another's memory, and so do processes of
one node. PyTorch sorts ids by owner and exchanges counts, ids and rows by `all_to_all_single` on
gloo; MPI by hand does so in C by `MPI_Alltoall` and two `MPI_Alltoallv`. Tables, ids and rows are
the same for all.

The goals are those of uniform ids on threads: a gather reaches 0.8 and an add 0.6 of a loop by hand
that reads peers' memory on the same threads, in turns with the calls; gathers and updates are 20
times as fast as PyTorch's; a gather of 8 ids takes at most 3 us.
"""

OTHERS = """\
Measured likewise, each on a day of its own. Their pages have the same tables.
"""

ASKED = """\
| implementation | is asked by | ranks are |
| --- | --- | --- |
| Tessera | `tessera bench dispatch`, `bench linear`, `bench ops`, `bench program`, `bench rows`, `tessera-llama`; results go into the same memory again | threads |
| Tessera, new result | `tessera bench dispatch --new-result`: each call makes its result, and frees it | threads |
| Tessera over MPI | the same moves as Tessera's, under the MPI's launcher with `--engine mpi` | processes on cores of their own |
| MPI | `MPI_Alltoallw` with subarray types and pack + `MPI_Alltoall`, `MPI_Allgather`, `MPI_Reduce_scatter` and `_block`, `MPI_Allreduce` | processes on cores of their own |
| MPI by hand | `MPI_Alltoall` of the terms and a loop that adds them, with `MPI_Allgather` after it for P to R; of rows `MPI_Alltoall` of counts, `MPI_Alltoallv` of ids and of rows | processes on cores of their own |
| PyTorch DTensor | `DTensor.redistribute`, `parallelize_module` with `ColwiseParallel` and `RowwiseParallel`, on gloo; each call makes its result | processes |
| JAX | `jax.device_put` and `jax.jit` with `out_shardings`; `psum_scatter` and `psum` in `jax.shard_map` where the source is Partial; each call makes its result | CPU devices of one process |
| PyTorch | `torch` and `torch.nn.functional` with one thread, with `out=` and without; `torch.autograd.grad` of a graph that is kept for the backward; an `nn.Module` of a block | one process |
| PyTorch on gloo | `all_to_all_single` of counts, ids and rows, `index_select`, `index_add_`, `index_copy_`; each call makes its result | processes |
| transformers | `generate` of a model loaded with a `DistributedConfig` of as many devices as ranks, on gloo; on one rank of a model loaded plainly | processes |
| memcpy | the C library's, of the payload, by as many threads as ranks | threads |

Where an implementation has several ways, its fastest counts. The scripts are in
[`bench/peers`]({place.root}bench/peers/README.md).
"""

SAMPLED = """\
A sample is a loop of calls of about 20 ms on the slowest rank, or one call that takes longer; for
tokens it is a text. Warm-up is a call or two and four such loops, three loops for Tessera's layers,
one text for transformers, and the prompt for `tessera-llama`. Before each loop of Tessera's moves,
also in the warm-up, the tool times plain copies into the same destination, for some 60 ms; between
loops of a block it times the same kernels called one by one.
"""


def table(head, rows, figures_from=1):
    """Lines of a Markdown table; columns from `figures_from` on are aligned to the right."""
    yield "| " + " | ".join(head) + " |"
    yield "| " + " | ".join("---" if i < figures_from else "--:" for i in range(len(head))) + " |"
    for row in rows:
        yield "| " + " | ".join(" ".join(str(cell).replace("|", "\\|").split()) for cell in row) + " |"
    yield ""


def noise_text(measured, scale=1):
    """The noise in words; "" if unknown. `scale` converts the number to the unit of the figure."""
    if measured.interval is None:
        return ""
    least, most = measured.interval
    down, up = 1 - least / measured.value, most / measured.value - 1
    if abs(up - down) <= EVEN:
        return f" ±{100 * max(down, up):.0f}%"
    return f" ({rounded(least * scale)} to {rounded(most * scale)})"


def others_text(measured):
    return f" (others {100 * measured.others:.0f}%)" if measured.others > DISTURBED else ""


def seconds_text(measured):
    return time_text(measured.value) + noise_text(measured, unit_of(measured.value)[1]) + others_text(measured)


def figure_text(line):
    return seconds_text(seconds_of(line))


def measured_text(measured):
    return rounded(measured.value) + noise_text(measured) + others_text(measured)


def range_of(values):
    """"3", or "1 to 3"."""
    values = sorted(values)
    return f"{values[0]}" if values[0] == values[-1] else f"{values[0]} to {values[-1]}"


def others(figures):
    """A sentence about the share of the cores that other processes used."""
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


def listed(*facts):
    """The known facts, separated by commas."""
    return ", ".join(str(fact) for fact in facts if fact)


def machine(figures):
    m = figures.machine
    versions = ", ".join(version if version.startswith(name) else f"{name} {version}"
                         for name, version in (m.get("versions") or {}).items() if version)
    per_core = m.get("threads_per_core")
    cores = m.get("cores") and f"{m['cores']} cores" + (f" ({per_core} threads a core)" if per_core and per_core > 1 else "")
    memory = m.get("memory_gib") and f"{m['memory_gib']} GiB of memory"
    rows = [("date", m.get("date")), ("measured", measured_when(figures)), ("sources", m.get("commit")),
            ("build", listed(m.get("buildtype"), m.get("compiler"))),
            ("kernels", m.get("kernels")), ("BLAS", m.get("blas")),
            ("processor", listed(m.get("processor"), cores, memory)), ("caches", listed(*(m.get("caches") or []))),
            ("system", listed(m.get("system"), m.get("libc"))), ("versions", versions), ("ranks", figures.ranks),
            ("other processes", others(figures))]
    yield "## The machine\n"
    yield from table(("what", "which"), [(what, which or "not known") for what, which in rows], 2)


def judge(measured, goal):
    """The verdict on a goal, "within its noise" if a ratio of the interval would give the other
    verdict."""
    if measured is None or goal is None:
        return ""
    met = measured.value >= goal
    said = "met" if met else "**not met**"
    if measured.interval is None:
        return f"{said}, noise not known"
    least, most = measured.interval
    return said if (least >= goal if met else most < goal) else f"{said}, within its noise"


def goal_cells(measured, goal):
    return ("not measured" if measured is None else measured_text(measured)), judge(measured, goal)


def goal_table(goals, makers):
    """A table of goals; for peers in `makers` it has columns for Tessera with a new result."""
    head = ("what", "against", "at least", "measured", "", *(("with a new result", "") if makers else ()))
    rows = []
    for goal in goals:
        new = goal_cells(goal.new, goal.least) if goal.against in makers else ("", "")
        rows.append((goal.what, goal.against, "no goal" if goal.least is None else goal.least, *goal_cells(goal.ratio, goal.least),
                     *(new if makers else ())))
    yield from table(head, rows, 2)


def of_ranks(ranks):
    return "Goals and figures are of two ranks." if ranks == 2 else f"The goals are for two ranks, the figures of {ranks}."


def goals(figures):
    yield "## Goals\n"
    yield GOALS.format(ranks=of_ranks(figures.ranks))
    yield from goal_table(figures.goals(), [name_of(peer) for peer in MAKERS])
    for ours, mpi in figures.engines():
        if figures.has(ours):
            yield f"### {name_of(ours)}\n"
            yield ENGINE
            yield from goal_table(figures.engine_goals(ours, mpi), [])


def who(figures, line):
    """The name of an implementation, with its ranks if they are not those of the report."""
    return name_of(line["implementation"]) + ("" if line["ranks"] == figures.ranks else f", {ranks_text(line['ranks'])}")


def ranks_text(ranks):
    return "1 rank" if ranks == 1 else f"{ranks} ranks"


def behind(figures):
    compared = sum(1 for _ in figures.compared())
    rows = [(what, who(figures, ours), figure_text(ours), f"{who(figures, theirs)} ({theirs['way']})",
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


def compared_names(figures):
    """The implementations of moves, in the order of the columns."""
    engines = [engine for engine, _ in figures.engines()]
    return ["tessera", "tessera-new", *engines, *figures.mpis, *(f"{mpi}-by-hand" for mpi in figures.mpis), *MAKERS, "memcpy"]


def moves_table(figures, move):
    """The table of a move, with the implementations and sizes that have a figure."""
    sizes = [size for size in figures.sizes() if any(figures.move(name, move, size) for name in compared_names(figures))]
    names = [name for name in compared_names(figures) if any(figures.move(name, move, size) for size in sizes)]
    rows = [(byte_text(size), *(cell(figures, name, move, size) for name in names), limit_cell(figures, move, size)) for size in sizes]
    if rows:
        yield f"### {move[0]} to {move[1]}\n"
        yield from table(("tensor", *map(name_of, names), "Tessera's share of the limit"), rows)


def moves(figures, drawn, place):
    """The section of moves. `drawn`: the captions of the existing pictures, by name."""
    if not figures.sizes():
        return
    yield "## Moves\n"
    yield MOVING.format(place=place)
    for name, caption in drawn.items():
        yield f"![{caption}]({place.own}{name}.svg)\n"
    for move in MOVES:
        yield from moves_table(figures, move)


def layers(figures):
    lines = [line for line in figures.measured if line["kind"] == "linear"]
    if not lines:
        return
    yield "## A tensor-parallel MLP\n"
    yield LAYERS
    rows = []
    for line in lines:
        products = seconds_of(line, "gemm_seconds")
        rows.append((f"{line['tokens']} x {line['hidden']} x {line['intermediate']}", line["pass"], name_of(line["implementation"]),
                     figure_text(line), seconds_text(products), measured_text(products.over(seconds_of(line)))))
    yield from table(("tokens x hidden x intermediate", "pass", "implementation", "time", "its GEMMs", "of its GEMMs"), rows, 3)


def speed_text(measured):
    """A rate of tokens a second in words."""
    return f"{measured.value:,.0f}{noise_text(measured)}{others_text(measured)}"


def decoding(figures, place):
    lines = [line for line in figures.lines if line["kind"] == "decode"]
    if not lines:
        return
    yield "## Decoding\n"
    yield DECODING.format(place=place)
    rows = []
    for line in lines:
        rows.append((line["kv_heads"], f"{name_of(line['implementation'])}, {ranks_text(line['ranks'])}",
                     f"`{line['refused']}`" if "refused" in line else speed_text(exactly(1).over(seconds_of(line)))))
    yield from table(("key/value heads", "implementation", "tokens a second"), rows, 2)


def operation_row(figures, case):
    ours = figures.op("tessera", case)
    peers = [figures.op(name, case) for name in ("pytorch-plain", "pytorch")]
    share = share_of_copies(ours)
    yield op_text(case)
    yield figure_text(ours) if ours else ""
    yield measured_text(share) if share else ""
    for peer in peers:
        ratio = ratio_of(peer, ours)
        yield figure_text(peer) if peer else ""
        yield measured_text(ratio) if ratio else ""


def operations(figures, place):
    cases = figures.op_cases()
    if not cases:
        return
    yield "## Operations\n"
    yield OPERATIONS.format(place=place)
    yield from goal_table(figures.op_goals(), [])
    plain, dtensor = name_of("pytorch-plain"), name_of("pytorch")
    yield from table(("op", "Tessera", "of plain copies", plain, "its time over ours", dtensor, "its time over ours"),
                     [tuple(operation_row(figures, case)) for case in cases])


def block_row(ours, theirs, goal):
    ratio, verdict = goal_cells(goal.ratio, goal.least)
    return (goal.what, figure_text(ours) if ours else "", goal.against, figure_text(theirs) if theirs else "", ratio,
            "no goal" if goal.least is None else goal.least, verdict)


def blocks(figures, place):
    rows = [block_row(*one) for one in figures.blocks()]
    if not rows:
        return
    yield "## A block of a Llama\n"
    yield BLOCKS.format(place=place)
    yield from table(("block", "Tessera", "peer", "its time", "its time over ours", "at least", ""), rows)


def rows(figures, place):
    cases = figures.rows_cases()
    if not cases:
        return
    tables = " and ".join(dict.fromkeys(f"{case[1]} x {case[2]}" for case in cases))
    yield "## Rows by id\n"
    yield ROWS.format(place=place, tables=tables)
    yield from goal_table(figures.rows_goals(), [])
    names = list(dict.fromkeys(line["implementation"] for line in figures.measured if line["kind"] == "rows"))
    found = [[figures.rows(name, case) for name in names] for case in cases]
    yield from table(("rows", *map(name_of, names)),
                     [(rows_text(case), *(figure_text(line) if line else "" for line in lines)) for case, lines in zip(cases, found)])


def refused(figures):
    """The section of refused moves and layers; refused decoding is in its own section."""
    lines = [line for line in figures.refused if line["kind"] != "decode"]
    if not lines:
        return
    reasons = {}
    for line in lines:
        reasons.setdefault((line["kind"], line["implementation"], line["way"], line["refused"]), []).append(line)
    yield "## What was refused\n"
    rows = [(kind, name_of(name), way, len(same), f"`{reason}`") for (kind, name, way, reason), same in reasons.items()]
    yield from table(("what", "implementation", "way", "figures", "why"), rows, 5)


def sampled(figures):
    """The section about samples, of every implementation and kind of figure."""
    groups = {}
    for line in figures.measured:
        groups.setdefault((name_of(line["implementation"]), line["kind"]), []).append(line)
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
    unchecked = sorted({f"{name_of(line['implementation'])}'s {line['kind']}" for line in figures.measured if line.get("wrong") is None})
    said = f"{wrong} were wrong" if wrong else "none was wrong"
    return said + (f" ({', '.join(unchecked)}: not in this run, but by its own tests)" if unchecked else "")


def known(figures):
    unknown = sum(interval_of(line["seconds"].get("rounds", [])) is None for line in figures.measured)
    return (f"; it is not known for {unknown} of {len(figures.measured)} figures, which are of fewer than three rounds or do not tell them"
            if unknown else "")


def times(figures):
    return ", with the time at which each was measured" if all("began" in line for line in figures.measured) else ""


def met(goals):
    """As "18 of 20": those that are met, of those that were measured."""
    known = [(ratio, least) for ratio, least in goals if ratio is not None and least is not None]
    return f"{sum(ratio.value >= least for ratio, least in known)} of {len(known)}" if known else "none was measured"


def other_processors(others):
    """`others` are (figures, the address of their page)."""
    if not others:
        return
    yield "## Other processors\n"
    yield OTHERS
    rows = []
    for there, address in others:
        goals = list(there.goals())
        rows.append((f"[{listed(there.machine.get('processor')) or 'not known'}]({address})", there.machine.get("date") or "not known",
                     met((goal.ratio, goal.least) for goal in goals),
                     met((goal.new, goal.least) for goal in goals if goal.against in map(name_of, MAKERS))))
    yield from table(("processor", "measured", "goals that are met", "with a new result"), rows, 2)


def write(figures, drawn, place=IN_DOCS, simulation=False, others=()):
    """The page. `drawn`: the captions of the existing pictures, by name; `simulation`: the page of
    the model of links exists; `others`: the figures and addresses of other processors' pages."""
    more = SIMULATION.format(place=place) if simulation else ""
    introduction = INTRODUCTION.format(checked=checked(figures), known=known(figures), times=times(figures), simulation=more, place=place)
    parts = [introduction, *machine(figures), *goals(figures), *other_processors(others), *behind(figures), *moves(figures, drawn, place),
             *layers(figures), *decoding(figures, place), *operations(figures, place), *blocks(figures, place), *rows(figures, place),
             *refused(figures),
             "## How each one is asked\n", ASKED.format(place=place), *sampled(figures)]
    return "\n".join(parts)
