"""What a file of scripts/bench-peers holds, as the report asks for it."""
import json

MOVES = [("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")]
NAMES = {"tessera": "Tessera", "mpi": "MPI", "jax": "JAX", "pytorch": "PyTorch DTensor", "transformers": "transformers", "memcpy": "memcpy"}
PEERS = ["mpi", "jax", "pytorch"]

# Least ratios of a peer's time to ours: (bytes, peer) or what else was measured, then one for each of MOVES.
GOALS = [((1 << 28, "pytorch"), (20, 20, 20, 8)), ((1 << 28, "jax"), (5, 5, 5, 5)), ((1 << 28, "mpi"), (1.5, 1.25, 4, 4)),
         ((1 << 12, "pytorch"), (500,) * 4), ((1 << 12, "jax"), (75,) * 4)]
DECODE_GOAL = 100


class Unreadable(Exception):
    """The file is not what scripts/bench-peers writes."""


#: What tells one figure from another.
KEY = ("kind", "implementation", "way", "from", "to", "bytes", "tokens", "hidden", "intermediate", "pass", "kv_heads", "ranks")


def read(path):
    try:
        with open(path) as text:
            lines = [json.loads(line) for line in text if line.strip()]
    except (OSError, ValueError) as error:
        raise Unreadable(f"{path}: {error}") from error
    if not lines or not all(isinstance(line, dict) for line in lines) or lines[0].get("kind") != "machine":
        raise Unreadable(f'{path}: its first line is no {{"kind": "machine", ..}}, so scripts/bench-peers did not write it')
    for number, line in enumerate(lines[1:], 1):
        missing = sorted({"kind", "implementation", "way", "ranks"} - line.keys())
        if missing or ("seconds" in line and not (isinstance(line["seconds"], dict) and "median" in line["seconds"])):
            raise Unreadable(f"{path}, figure {number}: it has no {missing[0] if missing else 'median of its seconds'}")
    return lines


class Figures:
    def __init__(self, *paths):
        """Of runs on one machine; what a later file measured again replaces what an earlier one says."""
        files = [read(path) for path in paths]
        self.machine = files[0][0]
        for path, lines in zip(paths, files):
            if lines[0] != self.machine:
                raise Unreadable(f"{path}: it is of another machine, day or version than {paths[0]}")
        self.lines = list({tuple(line.get(key) for key in KEY): line for lines in files for line in lines[1:]}.values())
        self.measured = [line for line in self.lines if "seconds" in line]
        self.refused = [line for line in self.lines if "refused" in line]

    def sizes(self):
        return sorted({line["bytes"] for line in self.measured if line["kind"] == "move"})

    def ranks(self):
        return self.lines[0]["ranks"] if self.lines else 0

    def best(self, kind, implementation, **fields):
        """Of an implementation's ways, the fastest; None where it was not measured."""
        found = [line for line in self.measured if line["kind"] == kind and line["implementation"] == implementation
                 and all(line.get(key) == value for key, value in fields.items())]
        return min(found, key=lambda line: line["seconds"]["median"], default=None)

    def move(self, implementation, move, size):
        return self.best("move", implementation, **{"from": move[0], "to": move[1], "bytes": size})

    def seconds(self, implementation, move, size):
        line = self.move(implementation, move, size)
        return line and line["seconds"]["median"]

    def ratio(self, peer, move, size):
        """The peer's time over ours."""
        ours, theirs = self.seconds("tessera", move, size), self.seconds(peer, move, size)
        return theirs / ours if ours and theirs else None

    def limit(self, move, size):
        """Seconds that the best plain copy takes for the bytes that a move must read and write, in the same run.

        A copy reads and writes the payload. P -> S(0) reads every rank's term, and writes one tensor.
        """
        copied, line = self.move("memcpy", move, size), self.move("tessera", move, size)
        if copied is None or line is None:
            return None
        payload, ranks = line["payload_bytes"], line["ranks"]
        rate = max(payload / copied["seconds"]["median"], line.get("peak_bandwidth", 0))
        return payload / rate * ((ranks + 1) / 2 if move == ("P", "S(0)") else 1)

    def share(self, implementation, move, size):
        limit, seconds = self.limit(move, size), self.seconds(implementation, move, size)
        return limit / seconds if limit and seconds else None

    def decode_ratio(self):
        """On the model that both can run."""
        ours, theirs = self.best("decode", "tessera", kv_heads=6), self.best("decode", "transformers", kv_heads=6)
        return theirs["seconds"]["median"] / ours["seconds"]["median"] if ours and theirs else None

    def goals(self):
        """(what, peer, goal, measured or None), in the order of the report."""
        for (size, peer), least in GOALS:
            for move, goal in zip(MOVES, least):
                yield f"{byte_text(size)}, {move[0]} to {move[1]}", NAMES[peer], goal, self.ratio(peer, move, size)
        yield "decoding, a token", NAMES["transformers"], DECODE_GOAL, self.decode_ratio()


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
