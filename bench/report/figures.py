"""What a file of scripts/bench-peers holds, as the report asks for it."""
import json

MOVES = [("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")]
NAMES = {"tessera": "Tessera", "tessera-mpi": "Tessera over MPI", "tessera-mpich": "Tessera over MPICH", "mpi": "MPI", "mpich": "MPICH",
         "jax": "JAX", "pytorch": "PyTorch DTensor", "transformers": "transformers", "memcpy": "memcpy"}
PEERS = ["mpi", "jax", "pytorch"]
#: Tessera's engine over an MPI, and what that MPI does itself.
ENGINES = [("tessera-mpi", "mpi"), ("tessera-mpich", "mpich")]
#: Who is held against whom: (ours, peer).
RIVALS = [("tessera", "mpi"), ("tessera", "mpich"), ("tessera", "jax"), ("tessera", "pytorch"), ("tessera", "transformers"), *ENGINES]

# Least ratios of a peer's time to ours: (bytes, peer), then one for each of MOVES.
GOALS = [((1 << 28, "pytorch"), (20, 20, 20, 8)), ((1 << 28, "jax"), (5, 5, 5, 5)), ((1 << 28, "mpi"), (1.5, 1.25, 4, 4)),
         ((1 << 12, "pytorch"), (500,) * 4), ((1 << 12, "jax"), (75,) * 4)]
DECODE_GOAL = 100
# Of the engine over MPI: to the same MPI's own ways, and of the best copy.
ENGINE_GOALS = [(1 << 28, (1.5, 1.25, 4, 4)), (1 << 12, (1,) * 4)]
COPY_GOAL, COPY_GOAL_BYTES, COPY_GOAL_MOVES = 0.8, 1 << 28, MOVES[:2]


class Unreadable(Exception):
    """The file is not what scripts/bench-peers writes."""


#: What tells one figure from another.
KEY = ("kind", "implementation", "way", "from", "to", "bytes", "tokens", "hidden", "intermediate", "pass", "kv_heads", "ranks")


def read(path):
    try:
        with open(path) as text:
            lines = [json.loads(line) for line in text if line.strip()]
    except OSError as error:
        raise Unreadable(f"{path}: {error.strerror}") from error
    except ValueError as error:
        raise Unreadable(f"{path}: no lines of JSON, so scripts/bench-peers did not write it") from error
    if not lines or not all(isinstance(line, dict) for line in lines) or lines[0].get("kind") != "machine":
        raise Unreadable(f'{path}: its first line is no {{"kind": "machine", ..}}, so scripts/bench-peers did not write it')
    for number, line in enumerate(lines[1:], 1):
        missing = sorted({"kind", "implementation", "way", "ranks"} - line.keys())
        if missing or ("seconds" in line and not (isinstance(line["seconds"], dict) and "median" in line["seconds"])):
            raise Unreadable(f"{path}, figure {number}: it has no {missing[0] if missing else 'median of its seconds'}")
    return lines


def noise(line, key="seconds"):
    """Half of what the rounds' medians spread over, relative to the figure; None of a single round, which does not tell."""
    medians = line[key].get("rounds", [])
    return (max(medians) - min(medians)) / 2 / line[key]["median"] if len(medians) > 1 else None


def together(*parts):
    """The noise of a ratio, as `tessera bench compare` has it: that of both."""
    return sum(parts) if all(part is not None for part in parts) else None


class Measured:
    """A number that was worked out of figures, with its noise; None where that is not known."""

    def __init__(self, value, noise_):
        self.value, self.noise = value, noise_

    def between(self):
        return self.value / (1 + (self.noise or 0)), self.value * (1 + (self.noise or 0))


class Figures:
    def __init__(self, *paths):
        """Of runs on one machine, of one commit; what a later file measured again replaces what an earlier one says."""
        files = [read(path) for path in paths]
        self.machine = files[0][0]
        for path, lines in zip(paths, files):
            other = sorted(key for key in {**lines[0], **self.machine} if lines[0].get(key) != self.machine.get(key))
            if other:
                raise Unreadable(f"{path}: it is of another {other[0]} than {paths[0]}")
        self.lines = list({tuple(line.get(key) for key in KEY): line for lines in files for line in lines[1:]}.values())
        self.measured = [line for line in self.lines if "seconds" in line]
        self.refused = [line for line in self.lines if "refused" in line]

    def sizes(self):
        return sorted({line["bytes"] for line in self.measured if line["kind"] == "move"})

    def ranks(self):
        return self.lines[0]["ranks"] if self.lines else 0

    def has(self, implementation, kind="move"):
        return any(line["implementation"] == implementation and line["kind"] == kind for line in self.measured)

    def best(self, kind, implementation, **fields):
        """Of an implementation's ways, the fastest; None where it was not measured."""
        found = [line for line in self.measured if line["kind"] == kind and line["implementation"] == implementation
                 and all(line.get(key) == value for key, value in fields.items())]
        return min(found, key=lambda line: line["seconds"]["median"], default=None)

    def move(self, implementation, move, size):
        return self.best("move", implementation, **{"from": move[0], "to": move[1], "bytes": size})

    def ratio(self, peer, move, size, ours="tessera"):
        """The peer's time over ours; None where one was not measured."""
        return ratio_of(self.move(peer, move, size), self.move(ours, move, size))

    def share(self, implementation, move, size):
        """Of the limit, which the tool defines, and measures in the same rounds."""
        line, tool = self.move(implementation, move, size), self.move("tessera", move, size)
        if line is None or tool is None or not tool.get("limit_bandwidth"):
            return None
        return Measured(line["payload_bytes"] / line["seconds"]["median"] / tool["limit_bandwidth"], noise(line))

    def share_of_copy(self, implementation, move, size):
        """Of the best plain copy of the payload that anybody made in the run."""
        line, copied = self.move(implementation, move, size), self.move("memcpy", move, size)
        rates = [one["peak_bandwidth"] for one in (self.move(name, move, size) for name in ("tessera", implementation))
                 if one and "peak_bandwidth" in one]
        rates += [copied["payload_bytes"] / copied["seconds"]["median"]] if copied else []
        if line is None or not rates:
            return None
        return Measured(line["payload_bytes"] / line["seconds"]["median"] / max(rates), noise(line))

    def decode_ratio(self):
        """On the model that both can run."""
        return ratio_of(self.best("decode", "transformers", kv_heads=6), self.best("decode", "tessera", kv_heads=6))

    def goals(self):
        """(what, against whom, goal, Measured or None), in the order of the report."""
        for (size, peer), least in GOALS:
            for move, goal in zip(MOVES, least):
                yield f"{byte_text(size)}, {move[0]} to {move[1]}", NAMES[peer], goal, self.ratio(peer, move, size)
        yield "decoding, a token", NAMES["transformers"], DECODE_GOAL, self.decode_ratio()

    def engine_goals(self, ours, peer):
        """The same for Tessera over an MPI."""
        for move in COPY_GOAL_MOVES:
            yield (f"{byte_text(COPY_GOAL_BYTES)}, {move[0]} to {move[1]}", "the best plain copy", COPY_GOAL,
                   self.share_of_copy(ours, move, COPY_GOAL_BYTES))
        for size, least in ENGINE_GOALS:
            for move, goal in zip(MOVES, least):
                yield f"{byte_text(size)}, {move[0]} to {move[1]}", NAMES[peer], goal, self.ratio(peer, move, size, ours)

    def compared(self):
        """(what, ours, theirs) of all that both measured, lines of their fastest ways."""
        same = ("kind", "from", "to", "bytes", "tokens", "hidden", "intermediate", "pass", "kv_heads")
        seen = set()
        for line in self.measured:
            what = tuple(line.get(key) for key in same)
            if what in seen:
                continue
            seen.add(what)
            fields = dict(zip(same[1:], what[1:]))
            for ours, peer in RIVALS:
                pair = self.best(what[0], ours, **fields), self.best(what[0], peer, **fields)
                if all(pair):
                    yield subject(line), *pair

    def behind(self):
        """(what, our line, the peer's, ratio) where a peer is faster."""
        for what, ours, theirs in self.compared():
            ratio = ratio_of(theirs, ours)
            if ratio.value < 1:
                yield what, ours, theirs, ratio


def ratio_of(theirs, ours):
    if theirs is None or ours is None:
        return None
    return Measured(theirs["seconds"]["median"] / ours["seconds"]["median"], together(noise(theirs), noise(ours)))


def subject(line):
    """What a line is of, in words."""
    if line["kind"] == "move":
        return f"{byte_text(line['bytes'])}, {line['from']} to {line['to']}"
    if line["kind"] == "linear":
        return f"MLP {line['tokens']} x {line['hidden']} x {line['intermediate']}, {line['pass']}"
    return f"decoding, {line['kv_heads']} key/value heads"


def byte_text(size):
    for unit in ("B", "KiB", "MiB"):
        if size < 1024 or unit == "MiB":
            return f"{size:g} {unit}"
        size /= 1024


def time_text(seconds):
    for limit, factor, unit in ((1e-6, 1e9, "ns"), (1e-3, 1e6, "us"), (1, 1e3, "ms")):
        if seconds < limit:
            return f"{rounded(seconds * factor)} {unit}"
    return f"{rounded(seconds)} s"


def rounded(value):
    """Three digits, without an exponent."""
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"
