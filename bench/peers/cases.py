"""The cases: moves of a square f32 tensor over sizes, an MLP of two layers, decoding by a small
Llama, single ops, a block of a Llama, rows by id, and steps of a training."""
import json

MOVES = [("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")]
SIDES = [4, 32, 128, 256, 512, 1024, 2048, 4096, 8192]  # 64 bytes to 256 MiB
MLPS = [(8, 128, 512), (512, 1024, 4096), (1024, 2048, 8192)]  # tokens, hidden, intermediate
SMALL = 64 << 10  # bytes: moves up to this size get more rounds
# Ops by their names in `tessera bench ops`: those on elements and rows of a matrix.
MATRIX_OPS = ["add", "silu_mul", "gelu", "gelu tanh", "tanh", "rms_norm", "layer_norm", "softmax"]
NORMS = {"rms_norm": 1, "layer_norm": 2}  # vectors beside the matrix
PAIRS = ("add", "silu_mul")
MATRIX, QUICK_MATRIX = [512, 16384], [256, 4096]
TOKENS, QUICK_TOKENS = (1024, 4096), (256,)
LOSS, QUICK_LOSS = [1024, 50257], [64, 50257]
DTENSOR_OPS = ["add 64 bytes", "add", "gelu", "softmax", "layer_norm", "cross_entropy"]  # that DTensor has rules for
INTO_OPS = ["add 64 bytes", "add", "silu_mul", "gelu", "gelu tanh", "tanh", "softmax", "layer_norm"]  # of which PyTorch has forms with out=
# Blocks of a Llama: tokens, hidden, heads, key/value heads, intermediate.
BLOCKS = [(512, 1024, 16, 4, 4096), (64, 256, 4, 2, 1024), (1, 1024, 16, 4, 4096), (1, 256, 4, 2, 1024)]
QUICK_BLOCKS = [(64, 256, 4, 2, 1024), (1, 256, 4, 2, 1024)]
# Gathers and updates of rows by id: rows and columns of the table, and ids of a rank.
TABLE, QUICK_TABLE = (1000000, 64), (100000, 64)
IDS, FEW_IDS = 10000, 8
ROWS_OPS, SKEWS = ("gather", "add", "assign"), ("uniform", "zipf")
# Models that are trained: the name, windows of a batch, and tokens of a window.
TRAININGS = [("shakespeare", 16, 256), ("125m", 2, 256)]
QUICK_TRAININGS = [("shakespeare", 4, 32)]
WARM_STEPS = 2  # before those that are measured: the first has new pages to fill
QUICK_SIDES, QUICK_MLPS = [4, 32, 512], [(8, 128, 512)]


def moves(quick, sides=None):
    for side in sides or (QUICK_SIDES if quick else SIDES):
        for source, target in MOVES:
            yield {"kind": "move", "from": source, "to": target, "shape": [side, side], "dtype": "f32", "bytes": 4 * side * side}


def payload_bytes(case, ranks):
    """Bytes of all destination shards together."""
    return case["bytes"] * (ranks if case["to"] == "R" else 1)


def linears(quick):
    for tokens, hidden, intermediate in QUICK_MLPS if quick else MLPS:
        yield {"kind": "linear", "tokens": tokens, "hidden": hidden, "intermediate": intermediate, "dtype": "f32"}


def decodes(shakespeare, doubled, ranks):
    """Decoding with the model's own 3 key/value heads, and with each head twice: the same function,
    whose heads 2 ranks divide evenly. Also on one rank, where a peer may be faster than on
    several."""
    expected = json.loads((shakespeare / "expected.json").read_text())["cases"][0]
    for count in sorted({1, ranks}):
        for path, heads in ((shakespeare, 3), (doubled, 6)):
            yield {"kind": "decode", "model": str(path), "kv_heads": heads, "prompt_ids": expected["prompt_ids"], "ids": expected["ids"],
                   "ranks": count}


def matrix_operands(op, matrix):
    return [matrix] * (2 if op in PAIRS else 1) + [matrix[-1:]] * NORMS.get(op, 0)


def ops(quick, ranks):
    """Ops with the shapes of their operands, each on one rank and on `ranks`. `sizes` is the shape
    in words, `shape` what --shape is given; None: the case has but one."""
    matrix, tokens, loss = (QUICK_MATRIX, QUICK_TOKENS, QUICK_LOSS) if quick else (MATRIX, TOKENS, LOSS)
    both = ["forward", "backward"]
    chosen = [("add 64 bytes", [[16], [16]], None, ["forward"])]
    chosen += [(op, matrix_operands(op, matrix), matrix, ["forward"]) for op in MATRIX_OPS]
    chosen += [("attention", [[8, count, 64]] * 3, [8, count, 64], both) for count in tokens]
    chosen += [("decode attention", [[8, 1, 64], [8, 16384, 64], [8, 16384, 64]], None, ["forward"]),
               ("cross_entropy", [loss, loss[:1]], loss, both)]
    for op, shapes, shape, passes in chosen:
        for count in sorted({1, ranks}):
            yield {"kind": "ops", "op": op, "shapes": shapes, "shape": shape, "sizes": "x".join(map(str, shapes[-1] if shape is None else shape)),
                   "dtype": "f32", "passes": passes, "ranks": count}


def programs(quick, ranks):
    """Blocks of a Llama, each on one rank and on `ranks`."""
    for tokens, hidden, heads, kv_heads, intermediate in QUICK_BLOCKS if quick else BLOCKS:
        for count in sorted({1, ranks}):
            yield {"kind": "program", "program": "llama-block", "tokens": tokens, "hidden": hidden, "heads": heads, "kv_heads": kv_heads,
                   "intermediate": intermediate, "dtype": "f32", "ranks": count}


def rows(quick, ranks):
    """Gathers and updates of rows by random ids on `ranks`, and on twice as many, which processes
    of an MPI alone are asked for."""
    rows_, columns = QUICK_TABLE if quick else TABLE
    chosen = [(op, skew, IDS, count) for op in ROWS_OPS for skew in SKEWS for count in (ranks, 2 * ranks)]
    for op, skew, ids, count in [*chosen, ("gather", "uniform", FEW_IDS, ranks)]:
        yield {"kind": "rows", "op": op, "rows": rows_, "columns": columns, "ids": ids, "skew": skew, "dtype": "f32", "ranks": count}


def trainings(quick, models, ranks):
    """Steps of a training on one rank and on `ranks`, which have equal parts of a batch. `models`:
    the config.json and the tokens of each name."""
    for name, batch, length in QUICK_TRAININGS if quick else TRAININGS:
        for count in sorted({1, ranks}):
            model, data = models[name]
            if batch % count == 0:
                yield {"kind": "train", "name": name, "model": str(model), "data": str(data), "batch": batch, "length": length, "dtype": "f32",
                       "ranks": count}


def rounds(case, quick):
    """The number of rounds. Small moves, also those of blocks of one token and of few rows, take more:
    their times depend on cache lines that travel between cores, and the placement of these may
    double or triple the times for a minute or more, so that a few rounds could all see one state."""
    if quick:
        return 1
    if case["kind"] == "ops":
        return 9 if case["op"] == "add 64 bytes" else 3
    if case["kind"] == "program":
        return 9 if case["tokens"] == 1 else 3
    if case["kind"] == "rows":
        return 9 if case["ids"] == FEW_IDS else 3
    return 9 if case["kind"] == "move" and case["bytes"] <= SMALL else 3


def count_wrong_ids(found, expected):
    """The number of tokens that differ, are missing, or are too many."""
    return sum(a != b for a, b in zip(found, expected)) + abs(len(found) - len(expected))
