"""The figures in files of scripts/bench-peers, as the report needs them."""
import collections

from noise import Measured, bandwidth_of, exactly, greatest, interval_of, seconds_of
from reading import Unreadable, read

MOVES = [("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")]
#: Other implementations are MPIs, Tessera over an MPI ("tessera-NAME"), or moves by hand with an
#: MPI's collectives ("NAME-by-hand").
NAMES = {"tessera": "Tessera", "tessera-new": "Tessera, new result", "mpi": "MPI", "mpich": "MPICH", "jax": "JAX",
         "pytorch": "PyTorch DTensor", "pytorch-plain": "PyTorch", "pytorch-gloo": "PyTorch on gloo", "transformers": "transformers", "memcpy": "memcpy"}
NO_MPI = NAMES.keys() - {"mpi", "mpich"}
#: Implementations that make a new result at each call.
MAKERS = ["jax", "pytorch"]

# Goals for the ratio of a peer's time to ours: (bytes, peer), then the least ratio for each of
# MOVES.
GOALS = [((1 << 28, "pytorch"), (20, 20, 20, 8)), ((1 << 28, "jax"), (5, 5, 5, 5)), ((1 << 28, "mpi"), (1.5, 1.25, 4, 4)),
         ((1 << 12, "pytorch"), (500,) * 4), ((1 << 12, "jax"), (75,) * 4)]
DECODE_GOAL = 100
# Goals of Tessera over an MPI: the least ratio to the MPI's own ways, by bytes, and the least share
# of the best copy.
ENGINE_GOALS = [(1 << 28, (1.5, 1.25, 4, 4)), (1 << 12, (1,) * 4)]
# Goals of ops on one rank: the most seconds of an add of 64 bytes, the least share of plain copies,
# and the least ratio of PyTorch's time to ours, which is also that of each pass of attention.
DISPATCH_GOAL = 300e-9
SHARE_GOAL, SHARE_OPS = 0.9, ("add", "silu_mul", "rms_norm", "layer_norm", "softmax")
RATIO_GOAL, RATIO_OPS = 1, ("gelu", "gelu tanh", "tanh", "attention")
# The least ratio of the loss's time on one rank to that on all, whose classes are cut.
CUT_LOSS_GOAL = 1 / 0.6
# Goals of blocks on all ranks: the least ratio of PyTorch's tensor parallelism to ours, by tokens and hidden size.
BLOCK_GOALS = {(512, 1024): 1.2, (64, 256): 3, (1, 1024): 20, (1, 256): 20}
# Goals of rows by uniform ids, on threads: the most seconds of a gather of 8 ids, the least share of a loop by hand by op, and the least ratio
# of PyTorch's time to ours.
FEW_IDS, FEW_IDS_GOAL = 8, 3e-6
LOOP_GOALS, ROWS_GOAL = {"gather": 0.8, "add": 0.6}, 20
COPY_GOAL, COPY_GOAL_BYTES, COPY_GOAL_MOVES = 0.8, 1 << 28, MOVES[:2]
# The sizes and moves for which the report shows moves by hand, without a goal.
BY_HAND_BYTES, BY_HAND_MOVES = (1 << 28, 1 << 12), MOVES[2:]

#: The fields that identify a case, and those that identify a figure.
BLOCK = ("program", "tokens", "hidden", "heads", "kv_heads", "intermediate")
ROWS = ("op", "rows", "columns", "ids", "skew")
CASE = ("kind", "from", "to", "bytes", *BLOCK, *ROWS, "sizes", "pass")
KEY = (*CASE, "implementation", "way", "ranks")
#: The kinds of which any report may have figures on one rank, and those that are compared on the
#: same number of ranks alone.
ON_ONE_RANK, ON_SAME_RANKS = ("decode", "ops", "program"), ("ops", "program", "rows")

#: A `ratio` whose goal is `least` (None: no goal). `new` is the ratio of Tessera with a new result,
#: with the same goal.
Goal = collections.namedtuple("Goal", "what against least ratio new", defaults=(None,))


def name_of(implementation):
    if implementation in NAMES:
        return NAMES[implementation]
    if implementation.startswith("tessera-"):
        return f"Tessera over {name_of(implementation.removeprefix('tessera-'))}"
    if implementation.endswith("-by-hand"):
        return f"{name_of(implementation.removesuffix('-by-hand'))} by hand"
    return implementation


def rank_counts(lines):
    """The numbers of ranks of the figures, without those on one rank that any report may have, and
    of rows by MPIs, which are on twice as many ranks, too."""
    return {line["ranks"] for line in lines if (line["kind"] not in ON_ONE_RANK or line["ranks"] > 1)
            and (line["kind"] != "rows" or line["implementation"] in NAMES)}


def agree(paths, files):
    """The number of ranks of a report. Files must be of one machine, one commit and one number of
    ranks."""
    first, counts = files[0][0], {}
    for path, (machine, *lines) in zip(paths, files):
        other = sorted(key for key in {**machine, **first} if machine.get(key) != first.get(key))
        if other:
            raise Unreadable(f"{path}: it is of another {other[0]} than {paths[0]}")
        for count in sorted(rank_counts(lines)):
            counts.setdefault(count, path)
    if len(counts) > 1:
        told = " and ".join(f"{count} ({path})" for count, path in counts.items())
        raise Unreadable(f"{paths[0]}: figures are of several numbers of ranks, {told}; a report is of one")
    return next(iter(counts), 1)


class Figures:
    def __init__(self, *paths):
        """Reads the files; a figure in a later file replaces the same figure in an earlier one."""
        files = [read(path) for path in paths]
        self.ranks = agree(paths, files)
        self.machine = files[0][0]
        self.lines = list({tuple(line.get(key) for key in KEY): line for lines in files for line in lines[1:]}.values())
        self.measured = [line for line in self.lines if "refused" not in line]
        self.refused = [line for line in self.lines if "refused" in line]
        if not self.measured:
            raise Unreadable(f"{paths[0]}: no figure is in it, so there is nothing to report")
        every = dict.fromkeys(line["implementation"] for line in self.lines if line["implementation"] not in NO_MPI)
        self.mpis = list(dict.fromkeys(name.removeprefix("tessera-").removesuffix("-by-hand") for name in every))

    def sizes(self):
        return sorted({line["bytes"] for line in self.measured if line["kind"] == "move"})

    def engines(self):
        """Pairs (Tessera over an MPI, that MPI)."""
        return [(f"tessera-{mpi}", mpi) for mpi in self.mpis]

    def has(self, implementation, kind="move"):
        return any(line["implementation"] == implementation and line["kind"] == kind for line in self.measured)

    def best(self, kind, implementation, **fields):
        """The line of an implementation's fastest way; None if it was not measured."""
        found = [line for line in self.measured if line["kind"] == kind and line["implementation"] == implementation
                 and all(line.get(key) == value for key, value in fields.items())]
        return min(found, key=lambda line: line["seconds"]["median"], default=None)

    def move(self, implementation, move, size):
        return self.best("move", implementation, **{"from": move[0], "to": move[1], "bytes": size})

    def seconds(self, implementation, move, size):
        line = self.move(implementation, move, size)
        return line and seconds_of(line)

    def ratio(self, peer, move, size, ours="tessera"):
        """The peer's time over ours; None if either was not measured."""
        return ratio_of(self.move(peer, move, size), self.move(ours, move, size))

    def share(self, implementation, move, size):
        """The share of the limit that the tool measured in the same rounds."""
        line, tool = self.move(implementation, move, size), self.move("tessera", move, size)
        limit = tool and bandwidth_of(tool, "limit")
        return rate_of(line).over(limit) if line and limit else None

    def share_of_copy(self, implementation, move, size):
        """The share of the best plain copy of the payload in the run, by memcpy or the tool."""
        line, copied = self.move(implementation, move, size), self.move("memcpy", move, size)
        here = [one for one in self.measured if one["kind"] == "move" and (one["from"], one["to"], one["bytes"]) == (*move, size)]
        rates = [rate for rate in (copied and rate_of(copied), *(bandwidth_of(one, "peak") for one in here)) if rate]
        return rate_of(line).over(greatest(rates)) if line and rates else None

    def decode_ratio(self, ranks):
        """The time of transformers on `ranks` ranks over ours on all, with the model that both can
        run."""
        return ratio_of(self.best("decode", "transformers", kv_heads=6, ranks=ranks),
                        self.best("decode", "tessera", kv_heads=6, ranks=self.ranks))

    def goals(self):
        """The goals in the order of the report."""
        for (size, peer), least in GOALS:
            for move, goal in zip(MOVES, least):
                new = [self.ratio(peer, move, size, "tessera-new")] if peer in MAKERS else []
                yield Goal(moved_text(move, size), name_of(peer), goal, self.ratio(peer, move, size), *new)
        yield Goal("decoding, a token", name_of("transformers"), DECODE_GOAL, self.decode_ratio(self.ranks))
        alone = self.decode_ratio(1)
        if alone and self.ranks > 1:
            yield Goal("decoding, a token", f"{name_of('transformers')}, 1 rank", None, alone)
        yield from self.by_hand("tessera", self.mpis)

    def engine_goals(self, ours, mpi):
        """The goals of Tessera over an MPI."""
        for move in COPY_GOAL_MOVES:
            yield Goal(moved_text(move, COPY_GOAL_BYTES), "the best plain copy", COPY_GOAL, self.share_of_copy(ours, move, COPY_GOAL_BYTES))
        for size, least in ENGINE_GOALS:
            for move, goal in zip(MOVES, least):
                yield Goal(moved_text(move, size), name_of(mpi), goal, self.ratio(mpi, move, size, ours))
        yield from self.by_hand(ours, [mpi])

    def op_cases(self):
        """(op, sizes, pass, ranks) of the ops that were measured."""
        return list(dict.fromkeys((line["op"], line["sizes"], line["pass"], line["ranks"]) for line in self.measured if line["kind"] == "ops"))

    def op(self, implementation, case):
        return self.best("ops", implementation, **dict(zip(("op", "sizes", "pass", "ranks"), case)))

    def op_goals(self):
        """The goals of ops, of those that were measured."""
        for case in self.op_cases():
            op, _, one, ranks = case
            line = self.op("tessera", case)
            if op == "add 64 bytes" and ranks == 1 and line:
                yield Goal(op, time_text(DISPATCH_GOAL), 1, exactly(DISPATCH_GOAL).over(seconds_of(line)))
            if op in SHARE_OPS and ranks == 1:
                yield Goal(op_text(case), "plain copies", SHARE_GOAL, share_of_copies(line))
            if op in RATIO_OPS and ranks == 1:
                yield Goal(op_text(case), name_of("pytorch-plain"), RATIO_GOAL, ratio_of(self.op("pytorch-plain", case), line))
            if op == "cross_entropy" and ranks > 1:
                alone = self.op("tessera", (*case[:3], 1))
                yield Goal(op_text(case), "1 rank", round(CUT_LOSS_GOAL, 2), ratio_of(alone, line))

    def block_cases(self):
        """The fields of BLOCK and the ranks of the blocks that were measured."""
        return list(dict.fromkeys(tuple(line[key] for key in (*BLOCK, "ranks")) for line in self.measured if line["kind"] == "program"))

    def block(self, implementation, case):
        return self.best("program", implementation, **dict(zip((*BLOCK, "ranks"), case)))

    def blocks(self):
        """(our line, the peer's line, goal) of each block: against PyTorch's tensor parallelism on
        several ranks, against a plain module, without a goal, on one."""
        for case in self.block_cases():
            peer, least = ("pytorch", BLOCK_GOALS.get(case[1:3])) if case[-1] > 1 else ("pytorch-plain", None)
            ours, theirs = self.block("tessera", case), self.block(peer, case)
            yield ours, theirs, Goal(block_text(case), name_of(peer), least, ratio_of(theirs, ours))

    def rows_cases(self):
        """The fields of ROWS and the ranks of the gathers and updates that were measured."""
        return list(dict.fromkeys(tuple(line[key] for key in (*ROWS, "ranks")) for line in self.measured if line["kind"] == "rows"))

    def rows(self, implementation, case):
        return self.best("rows", implementation, **dict(zip((*ROWS, "ranks"), case)))

    def rows_goals(self):
        """The goals of rows by id, of those that were measured: those of threads, and then without
        a goal Tessera over each MPI beside that MPI by hand."""
        for case in self.rows_cases():
            op, _, _, ids, skew, _ = case
            ours, uniform = self.rows("tessera", case), skew == "uniform"
            if ours and ids == FEW_IDS:
                yield Goal(rows_text(case), time_text(FEW_IDS_GOAL), 1, exactly(FEW_IDS_GOAL).over(seconds_of(ours)))
            if ours and "of_copy" in ours:
                least = LOOP_GOALS.get(op) if uniform and ids > FEW_IDS else None
                yield Goal(rows_text(case), "a loop by hand", least, share_of(ours, "of_copy"))
            for peer in ("pytorch-gloo", *(f"{mpi}-by-hand" for mpi in self.mpis)):
                ratio = ratio_of(self.rows(peer, case), ours)
                if ratio:
                    yield Goal(rows_text(case), name_of(peer), ROWS_GOAL if peer == "pytorch-gloo" and uniform else None, ratio)
            for engine, mpi in self.engines():
                ratio = ratio_of(self.rows(f"{mpi}-by-hand", case), self.rows(engine, case))
                if ratio:
                    yield Goal(f"{rows_text(case)}, {name_of(engine)}", name_of(f"{mpi}-by-hand"), None, ratio)

    def by_hand(self, ours, mpis):
        """The ratios to moves by hand that were measured, without goals."""
        for size in BY_HAND_BYTES:
            for move in BY_HAND_MOVES:
                for peer in (f"{mpi}-by-hand" for mpi in mpis):
                    ratio = self.ratio(peer, move, size, ours)
                    if ratio:
                        yield Goal(moved_text(move, size), name_of(peer), None, ratio)

    def rivals(self):
        """Pairs (ours, peer) that are compared."""
        for peer in (*MAKERS, "transformers", "pytorch-plain", "pytorch-gloo"):
            yield "tessera", peer
        for peer in MAKERS:
            yield "tessera-new", peer
        for engine, mpi in self.engines():
            for peer in (mpi, f"{mpi}-by-hand"):
                yield "tessera", peer
                yield engine, peer

    def compared(self):
        """(what, our line, the peer's line) of each case that both measured, by their fastest ways,
        on any number of ranks; ops, blocks and rows on the same number."""
        wanted = [{key: line.get(key) for key in (*CASE, *(["ranks"] if line["kind"] in ON_SAME_RANKS else []))} for line in self.measured]
        for fields in {tuple(one.items()): one for one in wanted}.values():
            for ours, peer in self.rivals():
                pair = self.best(implementation=ours, **fields), self.best(implementation=peer, **fields)
                if all(pair):
                    yield subject(pair[0]), *pair

    def behind(self):
        """(what, our line, the peer's line, ratio) of each case in which a peer is faster."""
        for what, ours, theirs in self.compared():
            ratio = ratio_of(theirs, ours)
            if ratio.value < 1:
                yield what, ours, theirs, ratio


def ratio_of(theirs, ours):
    return seconds_of(theirs).over(seconds_of(ours)) if theirs and ours else None


def rate_of(line):
    """Bytes of the payload a second."""
    return exactly(line["payload_bytes"]).over(seconds_of(line))


def share_of_copies(line):
    """The share of plain copies that the tool measured in turns with an op; None if it did not."""
    return share_of(line, "of_peak") if line and "of_peak" in line else None


def share_of(line, field):
    """A share that the tool measured."""
    return Measured(line[field]["median"], interval_of(line[field].get("rounds", [])), line.get("others") or 0)


def op_text(case):
    """An op in words: "attention, 8x1024x64, backward"."""
    op, sizes, one, ranks = case
    return ", ".join([op, *([] if op == "add 64 bytes" else [sizes]), *(["backward"] if one == "backward" else []),
                      *([f"{ranks} ranks"] if ranks > 1 else [])])


def block_text(case):
    """A block in words: "llama-block, 1 token, hidden 256, 2 ranks"."""
    program, tokens, hidden, *_, ranks = case
    return ", ".join([program, "1 token" if tokens == 1 else f"{tokens} tokens", f"hidden {hidden}", *([f"{ranks} ranks"] if ranks > 1 else [])])


def rows_text(case):
    """A gather or update in words: "add, 10000 ids, zipf, 2 ranks"."""
    op, _, _, ids, skew, ranks = case
    return f"{op}, {ids} ids, {skew}, {ranks} ranks"


def moved_text(move, size):
    return f"{byte_text(size)}, {move[0]} to {move[1]}"


def subject(line):
    """The case of a line in words."""
    if line["kind"] == "move":
        return moved_text((line["from"], line["to"]), line["bytes"])
    if line["kind"] == "linear":
        return f"MLP {line['tokens']} x {line['hidden']} x {line['intermediate']}, {line['pass']}"
    if line["kind"] == "ops":
        return op_text([line[key] for key in ("op", "sizes", "pass", "ranks")])
    if line["kind"] == "program":
        return block_text([line[key] for key in (*BLOCK, "ranks")])
    if line["kind"] == "rows":
        return rows_text([line[key] for key in (*ROWS, "ranks")])
    return f"decoding, {line['kv_heads']} key/value heads"


def byte_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024


def unit_of(seconds):
    """(name of the unit, units in a second) for a time."""
    return next(((name, per_second) for limit, name, per_second in ((1e-6, "ns", 1e9), (1e-3, "us", 1e6), (1, "ms", 1e3))
                 if seconds < limit), ("s", 1))


def time_text(seconds):
    unit, per_second = unit_of(seconds)
    return f"{rounded(seconds * per_second)} {unit}"


def rounded(value):
    """The value with three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
