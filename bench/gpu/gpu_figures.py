"""The figures: the benchmarks to run, their goals, and how to read a figure from their JSON."""
import json
import shlex

SECONDS = 600
# Rows are (name, unit, goal or None, command, reading); a goal is (relation, number).
AT_LEAST, AT_MOST = "at least", "at most"


def move(ranks, shape, source, target, iterations):
    return ["bench", "redistribute", "--mesh", str(ranks), "--shape", shape, "--dtype", "bf16", "--from", source, "--to", target, "--iterations",
            str(iterations), "--device", "cuda", "--engine", "threads", "--json"]


def moves(toy):
    wide, reduced, short = ("64x96", "64x32", "64x256") if toy else ("32768x65536", "16384x32768", "8388608x256")
    times = 2 if toy else 11
    for ranks in (2, 4, 8):
        yield (f"S(0) -> S(1), {ranks} ranks on one GPU, {wide} bf16", "of the device's own copy, in the same run", (AT_LEAST, 0.90),
               move(ranks, wide, "S(0)", "S(1)", times), lambda lines: lines[0]["of_peak"])
    for ranks in (2, 4, 8):
        yield (f"P -> S(0), {ranks} ranks on one GPU, {reduced} bf16", f"of the limit ({ranks} reads and 1 write)", (AT_LEAST, 0.85),
               move(ranks, reduced, "P", "S(0)", times), lambda lines: lines[0]["of_limit"])
    yield (f"S(0) -> S(1), 2 ranks, rows of 256 bytes, {short} bf16", "of the device's own copy, in the same run", (AT_LEAST, 0.60),
           move(2, short, "S(0)", "S(1)", times), lambda lines: lines[0]["of_peak"])


def layers(toy):
    """With --check 0, for inputs of many bits: checked inputs are mostly zeros, with which a GPU
    draws less power."""
    sizes = ["16", "24", "40"] if toy else ["8192", "8192", "28672"]
    command = ["bench", "linear", "--mesh", "1", "--tokens", sizes[0], "--hidden", sizes[1], "--intermediate", sizes[2], "--dtype",
               "bf16", "--iterations", "2" if toy else "11", "--check", "0", "--device", "cuda", "--json"]
    for at, (name, goal) in enumerate((("forward", (AT_LEAST, 0.98)), ("backward", None))):
        yield (f"MLP on one rank, {name}, {'x'.join(sizes)} bf16", "of its GEMMs called directly", goal, command,
               lambda lines, at=at: lines[at]["of_gemm"])


def enqueuing(toy):
    for ranks, goal in ((2, (AT_MOST, 10)), (8, None)):
        command = ["bench", "dispatch", "--mesh", str(ranks), "--shape", "1024x1024", "--dtype", "f32", "--from", "S(0)", "--to", "S(1)", "--device", "cuda",
                   "--json"] + (["--iterations", "2"] if toy else [])
        yield (f"enqueuing a planned redistribute, {ranks} ranks", "us of the host a call", goal, command, lambda lines: 1e6 * lines[0]["seconds"]["median"])


def products(toy):
    shapes = [("bf16", 8192, 8192, 8192, 0, 1), ("bf16", 8192, 8192, 8192, 1, 0), ("bf16", 512, 8192, 8192, 0, 1), ("f16", 4096, 4096, 4096, 0, 1),
              ("f32", 4096, 4096, 4096, 0, 1), ("f64", 4096, 4096, 4096, 0, 1)]
    for dtype, m, n, k, trans_a, trans_b in shapes:
        sizes = [size // 256 for size in (m, n, k)] if toy else [m, n, k]
        name = f"GEMM {'x'.join(map(str, sizes))} {dtype}{', a transposed' if trans_a else ''}{', b transposed' if trans_b else ''}"
        words = [dtype, *map(str, sizes), str(trans_a), str(trans_b), *(("2", "1") if toy else ("21", "20"))]
        yield name, "of cuBLASLt called directly, in turns", (AT_LEAST, 0.98), words, lambda lines: lines[0]["of_direct"]


def meets(goal, measured):
    if goal is None or measured is None:
        return None
    return measured >= goal[1] if goal[0] == AT_LEAST else measured <= goal[1]


def read_lines(out):
    try:
        return [json.loads(line) for line in out.splitlines()]
    except ValueError:
        return []


def answer(place, program, words, kept):
    """(lines, reason why there are none) of a benchmark, which runs once for all its figures."""
    command = (program, *words)
    if command not in kept:
        status, out, error = place.run(command, SECONDS, CUDA_VISIBLE_DEVICES=place.environment.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0])
        lines = read_lines(out) if status == 0 else []
        kept[command] = lines, None if lines else error.strip() or (f"exit status {status}" if status else "it printed no JSON")
    return kept[command]


def measure(place, row, program, kept):
    """The figure of a row. "measured" is None if the benchmark fails, as for wrong results."""
    name, unit, goal, words, reading = row
    lines, reason = answer(place, program, words, kept)
    measured = reading(lines) if lines else None
    figure = {"name": name, "unit": unit, "relation": goal and goal[0], "goal": goal and goal[1], "measured": measured,
              "met": None if place.dry_run else meets(goal, measured), "command": shlex.join([program.name, *words]), "lines": lines}
    if reason:
        figure["reason"] = reason
    told = reason or f"{measured:.3g} {unit}"
    print(f"  {name}: {told}{f', goal {goal[0]} {goal[1]:g}' if goal else ''}", flush=True)
    return figure


def run_figures(place):
    """Measures all figures. A dry run has no goals, and is ok if all were measured."""
    print("figures", flush=True)
    toy = place.dry_run
    rows = [(row, place.tool) for source in (moves, layers, enqueuing) for row in source(toy)] + [(row, place.gemm_peer) for row in products(toy)]
    kept = {}
    figures = [measure(place, row, program, kept) for row, program in rows]
    return {"ok": all(f["measured"] is not None and f["met"] is not False for f in figures), "rows": figures}
