#!/usr/bin/env python3
"""scripts/bench-report on made-up figures, whose page can be worked out by hand. TAP.

usage: test_report.py SOURCE_ROOT
"""
import json
import math
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(ROOT / "bench" / "report"), str(ROOT / "bench" / "peers")]
import canned  # noqa: E402
import cases as measured  # noqa: E402
import figures  # noqa: E402
import noise  # noqa: E402
import page  # noqa: E402
import reading  # noqa: E402
import rounds  # noqa: E402
import tap  # noqa: E402

#: The goals of the benchmark, in the order of the page: (bytes, against, least for each move).
GOALS = [("256 MiB", "PyTorch DTensor", (20, 20, 20, 8)), ("256 MiB", "JAX", (5, 5, 5, 5)), ("256 MiB", "MPI", (1.5, 1.25, 4, 4)),
         ("4 KiB", "PyTorch DTensor", (500,) * 4), ("4 KiB", "JAX", (75,) * 4)]
MOVES = ("S(0) to S(1)", "S(0) to R", "P to S(0)", "P to R")


def report(file, folder):
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "bench-report"), str(file), "--output", str(folder)], capture_output=True,
                          text=True, timeout=60)


def unless(holds, found):
    return [] if holds else [found]


def missing(text, *wanted):
    return [f"not there: {words}" for words in wanted if words not in text]


def goal_lines(found):
    """The first columns of the rows of the table of goals."""
    rows = [[cell.strip() for cell in line.strip("| ").split("|")] for line in found.split("### ")[0].split("## Goals")[1].splitlines()
            if line.startswith("| ")]
    return [tuple(row[:3]) for row in rows[2:]]


def check_goals(cases, found):
    wanted = [(f"{size}, {move}", peer, str(goal)) for size, peer, least in GOALS for move, goal in zip(MOVES, least)]
    wanted += [("decoding, a token", "transformers", "100"), ("decoding, a token", "transformers, 1 rank", "no goal"),
               ("4 KiB, P to R", "MPI by hand", "no goal")]
    cases.check("the goals are those that were set", [f"{one} for {two}" for one, two in zip(goal_lines(found), wanted) if one != two]
                + unless(len(goal_lines(found)) == len(wanted), goal_lines(found)))
    cases.check("every goal stands beside its ratio and its noise, and is met from there on", missing(
        found, "| 4 KiB, S(0) to R | PyTorch DTensor | 500 | 600 ±4% | met |", "| 256 MiB, P to S(0) | MPI | 4 | 3.00 ±4% | **not met** |",
        "| decoding, a token | transformers | 100 | 200 ±4% | met |"))
    cases.check("against those that make a new result, Tessera with one is held against the same goal", missing(
        found, "| PyTorch DTensor | 500 | 600 ±4% | met | 480 ±4% | **not met** |", "| JAX | 5 | 74.0 ±4% | met | 59.2 ±4% | met |",
        "| MPI | 1.5 | 3.00 ±4% | met |  |  |"))
    cases.check("what has no goal is told with its ratio, and where others disturbed it", missing(
        found, "| decoding, a token | transformers, 1 rank | no goal | 30.0 ±4% |  |  |  |",
        "| 4 KiB, P to R | MPI by hand | no goal | 4.00 ±4% (others 40%) |  |  |  |",
        "| 4 KiB, P to R | MPI by hand | no goal | 2.00 ±4% (others 40%) |  |\n"))
    cases.check("a goal that the noise reaches is met, or not, within it", missing(
        found, "| 4 KiB, P to R | JAX | 75 | 74.0 ±4% | **not met**, within its noise |",
        "| 256 MiB, S(0) to S(1) | MPI | 1.5 | 1.50 ±4% | met, within its noise |"))
    cases.check("the engine over an MPI is held against its MPI, and against the best copy", missing(
        found, "### Tessera over MPI\n", "| 256 MiB, S(0) to R | the best plain copy | 0.8 | 0.25 ±4% | **not met** |",
        "| 256 MiB, S(0) to R | MPI | 1.25 | 1.50 ±4% | met |", "| 4 KiB, P to R | MPI | 1 | 1.50 ±4% | met |"))
    cases.check("an MPI may have any name", missing(
        found, "### Tessera over impi\n", "| 256 MiB, P to R | impi | 4 | 6.00 ±4% | met |") + unless("MPICH |" not in found, "MPICH"))


def check_page(cases, found):
    cases.check("of how many ranks goals and figures are is said", missing(found, "Goals and figures are of two ranks."))
    cases.check("a peer's fastest way counts", missing(found, "| 256 MiB, S(0) to S(1) | MPI | 1.5 | 3.00 ±4% | met |"))
    cases.check("times have units, three digits and their noise, and a move's share of the limit", missing(
        found, "| 4 KiB | 1.00 us ±2% | 1.25 us ±2% | 2.00 us ±2% | 2.00 us ±2% | 3.00 us ±2% | 12.0 us ±2% | 74.0 us ±2% | 600 us ±2% "
        "| 500 ns ±2% | 0.50 ±3% |", "| 256 MiB | 256 us ±2% | 320 us ±2% |"))
    cases.check("who did not do a move has no column in its table, who did one size has one", missing(
        found, "| impi | MPI by hand | JAX |",
        "| 12.0 us ±2% | 4.00 us ±2% (others 40%) | 74.0 us ±2% |", "| 192 us ±2% |  | 1.18 ms ±2% |")
        + unless(found.count("| MPI by hand | JAX |") == 1, "several columns"))
    cases.check("where a peer is faster is listed, all of it and nothing else", missing(
        found, "faster, by their fastest ways: 1 of 100 comparisons.", "| MLP 8 x 16 x 32, forward | Tessera | 2.00 ms ±2% (others 50%) "
        "| PyTorch DTensor (b) | 1.00 ms ±2% (others 50%) | 0.50 ±4% (others 50%) |"))
    cases.check("machine, sources, versions, when, and what others used are told", missing(
        found, "Abacus <1>, 2 cores, 8.0 GiB", "tessera 0.1.0, torch 2.0", "| sources | 0123456789ab |", "| build | release, cc 12 |",
        "| measured | 2026-01-02 03:04:05 to 2026-01-02 03:10:07 |", "up to 50 % of the cores", "5 % in the median",
        "more than 10 % for 4 of 116"))
    cases.check("layers are held against their own GEMMs, and each figure says who disturbed it", missing(
        found, "| 4.00 ms ±2% (others 50%) | 1.00 ms ±2% (others 50%) | 0.25 ±4% (others 50%) |"))
    cases.check("decoding says on how many ranks", missing(
        found, "| 6 | Tessera, 2 ranks | 10,000 ±2% |", "| 6 | transformers, 2 ranks | 50 ±2% |", "| 6 | transformers, 1 rank | 333 ±2% |"))
    cases.check("a refusal is told in its own words, and breaks no table", missing(
        found, "`RuntimeError: no`", "| move | impi | b | 1 | `there is none, or \\| another` |"))
    cases.check("what was not checked in the run is said", missing(
        found, "none was wrong (PyTorch DTensor's linear, Tessera's linear: not in"))
    cases.check("what was done is said: rounds, samples, and who was asked again", missing(
        found, "| Tessera | move | 12 | 3 | 3 | 0 |", "| PyTorch DTensor | linear | 1 | 3 | 3 | 1 |"))
    cases.check("times of measurement are promised only where all figures have them", unless(
        "with the time at which" not in found, "promised"))


def check_operations(cases, folder):
    done = report(canned.write(folder / "ops.json", [canned.MACHINE, *canned.ops()]), folder / "ops")
    cases.check("a run of ops alone becomes a page", unless(done.returncode == 0, done.stderr))
    found = (folder / "ops" / "benchmarks.md").read_text()
    cases.check("goals of ops stand beside what was measured", missing(
        found, "| add 64 bytes | 300 ns | 1 | 1.50 ±2% | met |", "| softmax, 4x8 | plain copies | 0.9 | 0.80 ±1% | **not met** |",
        "| attention, 8x4x64, backward | PyTorch | 1 | 1.50 ±4% | met |", "| cross_entropy, 4x9, 2 ranks | 1 rank | 1.67 | 2.00 ±4% | met |"))
    cases.check("each op stands beside its peers, by their fastest ways", missing(
        found, "| softmax, 4x8 | 1.00 ms ±2% | 0.80 ±1% | 500 us ±2% | 0.50 ±4% | 2.00 ms ±2% | 2.00 ±4% |",
        "| softmax, 4x8, 2 ranks | 500 us ±2% |  |  |  |  |  |", "| add 64 bytes | 200 ns ±2% |  |  |  | 12.0 us ±2% | 60.0 ±4% |"))
    cases.check("an op is compared on the same number of ranks, and listed where a peer is faster", missing(
        found, "faster, by their fastest ways: 1 of 4 comparisons.",
        "| softmax, 4x8 | Tessera, 1 rank | 1.00 ms ±2% | PyTorch, 1 rank (a) | 500 us ±2% | 0.50 ±4% |"))


def check_blocks(cases, folder):
    done = report(canned.write(folder / "blocks.json", [canned.MACHINE, *canned.blocks()]), folder / "blocks")
    cases.check("a run of blocks alone becomes a page", unless(done.returncode == 0, done.stderr))
    found = (folder / "blocks" / "benchmarks.md").read_text()
    cases.check("blocks on several ranks stand beside PyTorch's tensor parallelism and its goal", missing(
        found, "| llama-block, 64 tokens, hidden 256, 2 ranks | 1.00 ms ±2% | PyTorch DTensor | 2.00 ms ±2% | 2.00 ±4% | 3 | **not met** |",
        "| llama-block, 1 token, hidden 256, 2 ranks | 100 us ±2% | PyTorch DTensor | 3.00 ms ±2% | 30.0 ±4% | 20 | met |"))
    cases.check("those on one rank stand beside a plain module, without a goal", missing(
        found, "| llama-block, 64 tokens, hidden 256 | 2.00 ms ±2% | PyTorch | 1.00 ms ±2% | 0.50 ±4% | no goal |  |"))
    cases.check("a block that no peer did is told as not measured", missing(
        found, "| llama-block, 7 tokens, hidden 256, 2 ranks | 100 us ±2% | PyTorch DTensor |  | not measured | no goal |  |"))
    cases.check("a block is compared on the same number of ranks, and listed where a peer is faster", missing(
        found, "faster, by their fastest ways: 1 of 3 comparisons.",
        "| llama-block, 64 tokens, hidden 256 | Tessera, 1 rank | 2.00 ms ±2% | PyTorch, 1 rank (a) | 1.00 ms ±2% | 0.50 ±4% |"))
    run = figures.Figures(folder / "blocks.json")
    wanted = {(case["tokens"], case["hidden"]) for case in measured.programs(False, 2)}
    cases.check("every block that is measured has a goal", unless(set(figures.BLOCK_GOALS) == wanted, wanted))
    cases.check("blocks on one rank and on all are of one report", unless(run.ranks == 2, run.ranks))


def check_rows(cases, folder):
    done = report(canned.write(folder / "rows.json", [canned.MACHINE, *canned.rows()]), folder / "rows")
    cases.check("a run of rows alone becomes a page", unless(done.returncode == 0, done.stderr))
    found = (folder / "rows" / "benchmarks.md").read_text()
    gather = "gather, 10000 ids, uniform, 2 ranks"
    cases.check("rows of threads stand beside loops by hand, PyTorch and their goals", missing(
        found, f"| {gather} | a loop by hand | 0.8 | 0.90 ±1% | met |", f"| {gather} | PyTorch on gloo | 20 | 30.0 ±4% | met |",
        "| add, 10000 ids, uniform, 2 ranks | a loop by hand | 0.6 | 0.50 ±2% | **not met** |",
        "| add, 10000 ids, uniform, 2 ranks | PyTorch on gloo | 20 | 15.0 ±4% | **not met** |"))
    cases.check("few ids have a goal of time, ids that are not uniform have none", missing(
        found, "| gather, 8 ids, uniform, 2 ranks | 3.00 us | 1 | 1.50 ±2% | met |", "| add, 10000 ids, zipf, 2 ranks | a loop by hand | no goal | 0.50 ±2% |  |"))
    cases.check("rows over MPI stand beside that MPI by hand, on twice as many ranks too", missing(
        found, f"| {gather} | MPI by hand | no goal | 0.50 ±4% |  |", f"| {gather}, Tessera over MPI | MPI by hand | no goal | 0.25 ±4% |  |",
        "| gather, 10000 ids, uniform, 4 ranks, Tessera over MPI | MPI by hand | no goal | 3.00 ±4% |  |",
        "| gather, 10000 ids, uniform, 4 ranks |  |  | 12.0 ms ±2% | 4.00 ms ±2% |"))
    cases.check("rows are compared on the same number of ranks, and listed where a peer is faster", missing(
        found, "faster, by their fastest ways: 2 of 5 comparisons.", f"| {gather} | Tessera over MPI | 2.00 ms ±2% | MPI by hand (a) | 500 us ±2% |"))
    run = figures.Figures(folder / "rows.json")
    cases.check("rows on twice as many ranks are of the same report", unless(run.ranks == 2, run.ranks))
    cases.check("the goals are of what is measured", unless(
        figures.FEW_IDS == measured.FEW_IDS and set(figures.LOOP_GOALS) < set(measured.ROWS_OPS), figures.LOOP_GOALS))


def line(*medians, others=0, **more):
    return {"seconds": {"median": sorted(medians)[len(medians) // 2], "rounds": list(medians)}, "others": others, **more}


def check_intervals(cases):
    wanted = {1: None, 2: None, 3: (1, 3), 4: (1, 4), 5: (1, 5), 6: (2, 5), 7: (2, 6), 8: (2, 7), 9: (3, 7)}
    found = {count: noise.interval_of(list(range(count, 0, -1))) for count in wanted}
    cases.check("an interval is of 3 rounds all of them, of 9 the third to the seventh, of fewer than 3 it is not known",
                unless(found == wanted, found))

    def chance(count, k):
        return 1 - 2 * sum(math.comb(count, i) for i in range(k)) / 2**count

    wrong = [count for count, one in wanted.items() if one and not chance(count, one[0]) >= 0.75 > chance(count, one[0] + 1)]
    cases.check("by the binomial distribution it holds the median three times of four, and a shorter one does not", wrong)
    found = noise.seconds_of(line(4.0, 5.0, 3.0)).over(noise.seconds_of(line(2.0, 1.0, 4.0, others=0.3)))
    cases.check("a ratio's goes from the lowest over the highest on, and is as disturbed as either", unless(
        (found.value, found.interval, found.others) == (2.0, (0.75, 5.0), 0.3), vars(found)))
    for one, other in ((line(4.0), line(1.0, 2.0, 3.0)), (line(1.0, 2.0, 3.0), line(4.0))):
        found = noise.seconds_of(one).over(noise.seconds_of(other))
        cases.check("what is not known of one is not known of a ratio", unless(found.interval is None, found.interval))


def check_texts(cases):
    for interval, text in ((None, "2.00"), ((1.9, 2.1), "2.00 ±5%"), ((1.9, 2.13), "2.00 ±6%"), ((1.9, 2.2), "2.00 (1.90 to 2.20)"),
                           ((0.2, 2.0), "2.00 (0.20 to 2.00)")):
        found = page.measured_text(noise.Measured(2.0, interval))
        cases.check(f"an interval is told as one number only where it goes as far down as up: {text}", unless(found == text, found))
    found = page.seconds_text(noise.Measured(1.01e-6, (0.52e-6, 1.3e-6), 0.23))
    cases.check("that of a time in its unit", unless(found == "1.01 us (0.52 to 1.30) (others 23%)", found))


def check_verdicts(cases):
    for value, interval, said in ((20, (20, 30), "met"), (25.2, (19.92, 27.7), "met, within its noise"), (25, None, "met, noise not known"),
                                  (19, (18, 19.9), "**not met**"), (19, (18, 20), "**not met**, within its noise"),
                                  (19, None, "**not met**, noise not known"), (2.61, (0.96, 4.4), "**not met**")):
        found = page.judge(noise.Measured(value, interval), 20)
        cases.check(f"a ratio of {value} with {interval} to 20 is {said}", unless(found == said, found))


def faster_peers():
    """Lines in which every peer is faster than Tessera, each line slower than the next."""
    ours = ("tessera", "tessera-new", "tessera-mpi", "tessera-mpich")
    peers = ("mpi", "mpich", "mpi-by-hand", "mpich-by-hand", "jax", "pytorch")
    yield from (canned.move(name, "P", "R", 4096, 1e-3) for name in ours)
    yield from (canned.move(name, "P", "R", 4096, 1e-6) for name in peers)


def check_rivals(cases, folder):
    run = figures.Figures(canned.write(folder / "faster.json", [canned.MACHINE, *faster_peers()]))
    found = {(ours["implementation"], theirs["implementation"]) for _, ours, theirs, _ in run.behind()}
    wanted = {("tessera", peer) for peer in ("mpi", "mpich", "mpi-by-hand", "mpich-by-hand", "jax", "pytorch")}
    wanted |= {("tessera-new", "jax"), ("tessera-new", "pytorch")}
    wanted |= {(f"tessera-{mpi}", f"{mpi}{hand}") for mpi in ("mpi", "mpich") for hand in ("", "-by-hand")}
    cases.check("all of Tessera are behind whoever is faster at the same work", [f"{pair}" for pair in found ^ wanted])


def check_copies(cases, folder):
    """The best plain copy counts, also one of the tool under another engine: here 4 times as fast
    as memcpy."""
    size, move = 1 << 28, ("S(0)", "S(1)")
    rounds_of = {"peak_rounds": [3 * size / 1e-3, 4 * size / 1e-3, 5 * size / 1e-3]}
    lines = [canned.MACHINE, canned.move("memcpy", *move, size, 1e-3), canned.move("tessera-mpi", *move, size, 1e-3),
             canned.move("tessera-mpich", *move, size, 1e-3, peak_bandwidth=4 * size / 1e-3, **rounds_of)]
    found = figures.Figures(canned.write(folder / "copies.json", lines)).share_of_copy("tessera-mpi", move, size)
    wanted = (0.25, 1 / 1.02 / 5, 1 / 0.98 / 3)
    cases.check("the best plain copy is the best that anybody made, with its noise", unless(
        found.interval and all(map(math.isclose, (found.value, *found.interval), wanted)), vars(found)))
    del lines[3]["peak_rounds"]
    found = figures.Figures(canned.write(folder / "copies.json", lines)).share_of_copy("tessera-mpi", move, size)
    cases.check("without rounds of it there is no noise", unless(found.interval is None, found.interval))
    lines[1] = canned.move("memcpy", *move, size, 1e-4)
    without = figures.Figures(canned.write(folder / "copies.json", lines))
    found = without.share_of_copy("tessera-mpi", move, size).value
    cases.check("memcpy's too", unless(math.isclose(found, 0.1), found))
    cases.check("without a limit there is no share", unless(without.share("memcpy", move, size) is None, "there is one"))


def check_harness(cases, folder):
    """The report reads the rounds that the harness writes."""
    answers = [{"seconds": [1e-3], "wrong": 0, "peak_bandwidth": rate, "limit_bandwidth": rate, "began": 0, "ended": 1, "others": 0.0,
                "asked": 1} for rate in (7e9, 5e9, 6e9)]
    case = {"kind": "move", "from": "P", "to": "R", "bytes": 4096, "payload_bytes": 8192, "ranks": 2}
    lines = [canned.MACHINE, *rounds.lines(case, "tessera", "direct", answers)]
    found = noise.bandwidth_of(figures.Figures(canned.write(folder / "harness.json", lines)).measured[0], "limit")
    cases.check("the limit that the harness tells has the noise of its rounds", unless(
        (found.value, found.interval) == (6e9, (5e9, 7e9)), vars(found)))


def check_few(cases, folder):
    one = {**canned.move("tessera", "P", "R", 64, 1e-6), "seconds": {"median": 1e-6}}
    done = report(canned.write(folder / "few.json", [canned.MACHINE, one]), folder / "few")
    found = folder / "few" / "benchmarks.md"
    stale = folder / "few" / "benchmarks" / "share.svg"
    stale.write_text("of another run")
    report(folder / "few.json", folder / "few")
    cases.check("a picture that is not made again does not stay", ["share.svg is there"] if stale.exists() else [])
    text = found.read_text() if found.exists() else done.stderr
    too_much = [word for word in ("share.svg", "ratio.svg", "## Decoding") if word in text]
    cases.check("what was not measured is said, and draws nothing", too_much + missing(
        text, "| 4 KiB, P to R | JAX | 75 | not measured |  | not measured |  |", "(benchmarks/time.svg)"))
    cases.check("of how many figures noise is not known is said", missing(text, "it is not known for 1 of 1 figures"))
    cases.check("times of measurement are promised where all figures have them", missing(text, "with the time at which each was measured"))
    report(canned.write(folder / "four.json", [canned.MACHINE, {**one, "ranks": 4}]), folder / "four")
    cases.check("figures of other ranks than the goals are told apart", missing(
        (folder / "four" / "benchmarks.md").read_text(), "The goals are for two ranks, the figures of 4."))
    report(canned.write(folder / "bare.json", [{"kind": "machine"}, one]), folder / "bare")
    cases.check("what nobody told of the machine is not known", missing(
        (folder / "bare" / "benchmarks.md").read_text(), "| versions | not known |", "| processor | not known |"))


def refusal_of(*paths):
    try:
        figures.Figures(*paths)
        return "nothing"
    except reading.Unreadable as error:
        return str(error)


def check_several(cases, folder):
    moves = [canned.move("tessera", "P", "R", size, 1e-6) for size in (64, 256)]
    first = canned.write(folder / "first.json", [canned.MACHINE, *moves])
    second = canned.write(folder / "second.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 2e-6)])
    found = [figures.Figures(first, second).move("tessera", ("P", "R"), size)["seconds"]["median"] for size in (64, 256)]
    cases.check("a later file replaces what it measured again, and nothing else", unless(found == [2e-6, 1e-6], found))
    for what, value in (("cores", 64), ("commit", "ba9876543210"), ("date", "2026-01-03")):
        other = canned.write(folder / "other.json", [{**canned.MACHINE, what: value}, *moves])
        said = refusal_of(first, other)
        cases.check(f"figures of another {what} do not go into one report", unless(f"of another {what} than" in said, said))
    other = canned.write(folder / "other.json", [canned.MACHINE, {**moves[0], "ranks": 4}])
    said = refusal_of(first, other)
    cases.check("nor do those of other numbers of ranks", unless(f"2 ({first}) and 4 ({other})" in said, said))
    mixed = canned.write(folder / "mixed.json", [canned.MACHINE, moves[0], {**moves[1], "ranks": 1}])
    cases.check("nor where one file has both", unless("1 (" in refusal_of(mixed), refusal_of(mixed)))


def check_figures_file(cases, folder):
    """The figures file beside the page has every figure that was read, once."""
    merged = folder / "docs" / "benchmarks" / "peers.json"
    cases.check("the figures that the page is of lie beside it", unless(
        merged.read_text() == (folder / "run.json").read_text(), f"{merged} is another"))
    done = report(merged, folder / "docs")
    cases.check("a report of that very file leaves it as it is", unless(
        done.returncode == 0 and merged.read_text() == (folder / "run.json").read_text(), done.stderr))


def check_processors(cases, folder):
    """The page of another processor moves the first page into a folder; measured again, the first page comes back."""
    docs = folder / "processors"
    pages = {}
    for name in ("Abacus <1>", "Slide Rule", "Abacus <1>"):
        done = report(canned.write(folder / "processor.json", [{**canned.MACHINE, "processor": name}, *canned.lines()]), docs)
        pages[name] = (docs / "benchmarks.md").read_text() if done.returncode == 0 else done.stderr
    kept = next(iter(docs.glob("benchmarks/slide-rule-*/README.md")), docs / "no page of the slide rule")
    cases.check("the page is of the processor that was measured last", missing(pages["Abacus <1>"], "| processor | Abacus <1>"))
    cases.check("that of another is kept beside its pictures and figures", (
        missing(kept.read_text(), "| processor | Slide Rule", "](ratio.svg)", "[peers.json](peers.json)", "](../remarks.md)") if kept.exists()
        else [f"{kept} is not there"]) + [name for name in ("ratio.svg", "peers.json") if not (kept.parent / name).exists()])
    cases.check("links of either page lead somewhere", [
        link for page in (docs / "benchmarks.md", kept) if page.exists() for link in re.findall(r"\]\(([^)#]*\.(?:svg|json))\)", page.read_text())
        if not (page.parent / link).exists()])
    met = f"[Slide Rule](benchmarks/{kept.parent.name}/README.md) | 2026-01-02 | 15 of 21 | 8 of 16 |"
    cases.check("how many goals are met there is told", missing(pages["Abacus <1>"], met))
    cases.check("a processor has no folder beside its page", [path.name for path in docs.glob("benchmarks/abacus*")])


def check_odd_processors(cases, folder):
    """Whatever a processor is called, only its own folder is removed, and a page that cannot be read is named."""
    docs = folder / "odd"
    (docs / "benchmarks").mkdir(parents=True)
    remarks = docs / "benchmarks" / "remarks.md"
    remarks.write_text("by hand")
    for name in ("\u042d\u043b\u044c", "A-1", "A 1", "\u042d\u043b\u044c"):
        report(canned.write(folder / "odd.json", [{**canned.MACHINE, "processor": name}, *canned.lines()]), docs)
    kept = sorted(path.parent.name for path in docs.glob("benchmarks/*/README.md"))
    cases.check("names without letters, or alike but for signs, have folders of their own",
                unless(remarks.exists() and len(kept) == 2 and all(name.startswith("a-1-") for name in kept), kept))
    (docs / "benchmarks" / "peers.json").write_text("no JSON")
    done = report(folder / "odd.json", docs)
    cases.check("figures of the page before that cannot be read are told in one line", unless(
        done.returncode == 1 and done.stderr.count("\n") == 1 and "peers.json" in done.stderr, done.stderr))


def check_simulation(cases, folder):
    file, docs = canned.write(folder / "simulated.json"), folder / "simulated"
    (docs / "benchmarks").mkdir(parents=True)
    texts = []
    for _ in range(2):
        report(file, docs)
        texts.append((docs / "benchmarks.md").read_text())
        (docs / "benchmarks" / "simulation.md").write_text("")
    linked = ["(benchmarks/simulation.md)" in text for text in texts]
    cases.check("the page of the simulation's error is linked where it is", unless(linked == [False, True], linked))


MOVE = canned.move("tessera", "P", "R", 64, 1e-6)
LAYER = {**MOVE, "kind": "linear", "tokens": 8, "hidden": 16, "intermediate": 32, "pass": "forward", "gemm_seconds": canned.spread(1e-3)}
BLOCK = next(canned.blocks())
ROWS = next(canned.rows())
REFUSED = {"kind": "move", "implementation": "mpi", "way": "a", "from": "P", "to": "R", "bytes": 64, "ranks": 2, "refused": "no"}


def without(one, field):
    return {key: value for key, value in one.items() if key != field}


def refused_files():
    """{name: (text of the file, words of the error)}"""
    def after_machine(*lines):
        return "".join(json.dumps(one) + "\n" for one in (canned.MACHINE, *lines))

    yield "text", "hello\n", "line 1: it is not JSON"
    yield "nothing", "", "its first line"
    yield "another", '{"bench": "redistribute"}\n', "its first line"
    yield "list", "[1]\n", "its first line"
    yield "absent", None, "No such file"
    yield "a list for a figure", after_machine([1]), "line 2: it is not an object"
    yield "a last line cut off", after_machine(MOVE) + '{"kind": "mo', "line 3: it was cut off"
    yield "a line cut off within", after_machine(MOVE) + '{"kind": "mo\n' + json.dumps(MOVE) + "\n", "line 3: it is not JSON"
    yield "the machine alone", after_machine(), "no figure is in it"
    yield "refusals alone", after_machine(REFUSED), "no figure is in it"
    yield "an unknown kind", after_machine({**MOVE, "kind": "cast"}), 'its "kind" is "cast"'
    yield "versions that are none", json.dumps({**canned.MACHINE, "versions": 3}) + "\n" + json.dumps(MOVE) + "\n", 'its "versions" is 3'
    for field in ("implementation", "way", "ranks", "from", "to", "bytes", "payload_bytes", "seconds", "rounds", "samples"):
        yield f"a move without {field}", after_machine(without(MOVE, field)), f'line 2: it has no "{field}"'
    for field in ("tokens", "pass", "gemm_seconds"):
        yield f"a layer without {field}", after_machine(without(LAYER, field)), f'line 2: it has no "{field}"'
    for field in figures.BLOCK:
        yield f"a block without {field}", after_machine(without(BLOCK, field)), f'line 2: it has no "{field}"'
    for field in figures.ROWS:
        yield f"rows without {field}", after_machine(without(ROWS, field)), f'line 2: it has no "{field}"'
    for field, value in (("bytes", -1), ("ranks", "two"), ("seconds", 1), ("seconds", {"min": 1}), ("seconds", {"median": 0}),
                         ("seconds", {"median": 1, "rounds": [1, "2"]}), ("others", "much"), ("limit_bandwidth", "fast"), ("way", None),
                         ("limit_rounds", 3), ("seconds", {"median": math.nan}), ("bytes", True)):
        yield f"a {field} of {value}", after_machine({**MOVE, field: value}), f'line 2: its "{field}" is '


def check_refusals(cases, folder):
    for name, text, said in refused_files():
        file = folder / "refused.json"
        file.unlink(missing_ok=True)
        if text is not None:
            file.write_text(text)
        done = report(file, folder / "refused")
        cases.check(f"a file of {name} is refused in one sentence, with nothing written", unless(
            done.returncode == 1 and done.stderr.count("\n") == 1 and str(file) in done.stderr and said in done.stderr,
            f"{done.returncode}: {done.stderr}") + unless(not (folder / "refused").exists(), "it wrote"))
    file = folder / "bytes.json"
    file.write_bytes(b"\xff\xfe\n")
    done = report(file, folder / "refused")
    cases.check("so is one that is not text", unless("it is not text" in done.stderr and done.stderr.count("\n") == 1, done.stderr))
    done = report(canned.write(folder / "good.json"), file)
    cases.check("so is an output that cannot be written", unless(
        done.returncode == 1 and done.stderr.count("\n") == 1 and str(file) in done.stderr, done.stderr))


def main():
    cases = tap.Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = report(canned.write(folder / "run.json"), folder / "docs")
        cases.check("a run becomes a page and its pictures", unless(done.returncode == 0, done.stderr))
        if done.returncode == 0:
            found = (folder / "docs" / "benchmarks.md").read_text()
            check_goals(cases, found)
            check_page(cases, found)
            check_figures_file(cases, folder)
            for title in ("## Operations", "## A block of a Llama", "## Rows by id"):
                cases.check(f"without figures there is no section {title}", unless(title not in found, "there is"))
        check_operations(cases, folder)
        check_blocks(cases, folder)
        check_rows(cases, folder)
        check_intervals(cases)
        check_texts(cases)
        check_verdicts(cases)
        check_rivals(cases, folder)
        check_copies(cases, folder)
        check_harness(cases, folder)
        check_simulation(cases, folder)
        check_processors(cases, folder)
        check_odd_processors(cases, folder)
        check_few(cases, folder)
        check_several(cases, folder)
        check_refusals(cases, folder)
    cases.finish()


main()
