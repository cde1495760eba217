#!/usr/bin/env python3
"""scripts/bench-report on figures that nobody measured, whose pages and pictures can be worked out by hand. TAP.

usage: test_report.py SOURCE_ROOT
"""
import json
import math
import pathlib
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(ROOT / "bench" / "report")]
import canned  # noqa: E402
import figures  # noqa: E402
import plot  # noqa: E402
import tap  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"


def report(file, folder):
    return subprocess.run([sys.executable, str(ROOT / "scripts" / "bench-report"), str(file), "--output", str(folder)], capture_output=True,
                          text=True, timeout=60)


def missing(text, *wanted):
    return [f"not there: {words}" for words in wanted if words not in text]


def points_of(root):
    for line in root.iter(SVG + "polyline"):
        yield line, [tuple(map(float, pair.split(","))) for pair in line.get("points").split()]


def outside(root):
    """Marks, lines and the anchors of text that leave the picture."""
    width, height = map(float, root.get("viewBox").split()[2:])
    places = [point for _, points in points_of(root) for point in points]
    places += [(float(t.get("x")), float(t.get("y"))) for t in root.iter(SVG + "text")]
    return [f"{x}, {y}" for x, y in places if not (0 <= x <= width and 0 <= y <= height)]


def alike_in_grey():
    """Series that share a mark, or both dash and width."""
    styles = plot.STYLES.values()
    marks, lines = {mark for _, _, _, mark in styles}, {(dash, width) for _, dash, width, _ in styles}
    return [] if len(marks) == len(lines) == len(styles) else ["two series differ by their colour alone"]


def height_of(root, series, panel, index):
    """How far above its panel's foot a point of a series is drawn, as a share of the panel."""
    colour, dash, _, _ = plot.STYLES[series]
    lines = [points for line, points in points_of(root) if line.get("stroke") == colour and line.get("stroke-dasharray", "") == dash]
    lines = lines[1:]  # the first is the legend's
    foot = plot.TOP + 20 + (panel // 2) * (plot.PANEL_HEIGHT + plot.GAP_Y) + plot.PANEL_HEIGHT
    return (foot - lines[panel][index][1]) / plot.PANEL_HEIGHT


def whiskers(root, series, least, most):
    """Whether a whisker of the first panel spans so much."""
    foot = plot.TOP + 20 + plot.PANEL_HEIGHT
    colour, width = plot.STYLES[series][0], "0.8"
    spans = [sorted((foot - float(line.get(end))) / plot.PANEL_HEIGHT for end in ("y1", "y2")) for line in root.iter(SVG + "line")
             if line.get("stroke") == colour and line.get("stroke-width") == width]
    near = 0.1 / plot.PANEL_HEIGHT
    return [] if any(abs(low - least) < near and abs(high - most) < near for low, high in spans) else [f"{series}: {spans}"]


def differs(what, found, wanted):
    return [] if math.isclose(found, wanted, rel_tol=0, abs_tol=0.1 / plot.PANEL_HEIGHT) else [f"{what}: {found}, not {wanted}"]


def check_page(cases, page):
    cases.check("every goal stands beside its ratio and its noise, and is met from there on", missing(
        page, "| 4 KiB, S(0) to R | PyTorch DTensor | 500 | 600 ±4% | met |", "| 256 MiB, P to S(0) | MPI | 4 | 3.00 ±4% | **not met** |",
        "| decoding, a token | transformers | 100 | 200 ±4% | met |"))
    cases.check("a goal that the noise reaches is met, or not, within it", missing(
        page, "| 4 KiB, P to R | JAX | 75 | 74.0 ±4% | **not met**, within its noise |",
        "| 256 MiB, S(0) to S(1) | MPI | 1.5 | 1.50 ±4% | met, within its noise |"))
    cases.check("the engine over MPI is held against its MPI, and against the best copy", missing(
        page, "### Tessera over MPI\n", "| 256 MiB, S(0) to R | the best plain copy | 0.8 | 0.25 ±2% | **not met** |",
        "| 256 MiB, S(0) to R | MPI | 1.25 | 1.50 ±4% | met |", "| 4 KiB, P to R | MPI | 1 | 1.50 ±4% | met |")
        + ["a goal of an engine that was not measured" for _ in [0] if "### Tessera over MPICH" in page])
    cases.check("of how many ranks goals and figures are is said", missing(page, "Goals and figures are of two ranks."))
    cases.check("a peer's fastest way counts", missing(page, "| 256 MiB, S(0) to S(1) | MPI | 1.5 | 3.00 ±4% | met |"))
    cases.check("times have units, three digits and their noise, and a move's share of the limit", missing(
        page, "| 4 KiB | 1.00 us ±2% | 2.00 us ±2% | 3.00 us ±2% | 74.0 us ±2% | 600 us ±2% | 500 ns ±2% | 0.50 ±2% |",
        "| 256 MiB | 256 us ±2% | 512 us ±2% | 768 us ±2% | 18.9 ms ±2% | 154 ms ±2% | 128 us ±2% | 0.50 ±2% |"))
    cases.check("where a peer is faster is listed, all of it and nothing else", missing(
        page, "faster, by their fastest ways: 1 of 50 comparisons.", "| MLP 8 x 16 x 32, forward | Tessera | 2.00 ms ±2% (others 50%) "
        "| PyTorch DTensor (b) | 1.00 ms ±2% (others 50%) | 0.50 ±4% |"))
    cases.check("machine, sources, versions, when, and what others used are told", missing(
        page, "Abacus <1>, 2 cores, 8.0 GiB", "tessera 0.1.0, torch 2.0", "| sources | 0123456789ab |", "| build | release, cc 12 |",
        "| measured | 2026-01-02 03:04:05 to 2026-01-02 03:10:07 |", "up to 50 % of the cores", "5 % in the median",
        "more than 10 % for 3 of 78"))
    cases.check("a figure that others disturbed says so", missing(page, "| 2.00 ms ±2% (others 50%) | 1.00 ms ±2% | 0.50 |"))
    cases.check("layers are held against their own GEMMs", missing(page, "| 4.00 ms ±2% (others 50%) | 1.00 ms ±2% | 0.25 |"))
    cases.check("a refusal is told in its own words", missing(page, "`RuntimeError: no`", "| 6 | Tessera, 2 ranks | 10,000 ±2% |",
                                                              "| move | MPICH | a | 1 | `there is none` |"))
    cases.check("what was not checked in the run is said", missing(
        page, "none was wrong (PyTorch DTensor's linear, Tessera's linear: not in"))
    cases.check("what was done is said: rounds, samples, and who was asked again", missing(
        page, "| Tessera | move | 12 | 3 | 3 | 0 |", "| PyTorch DTensor | linear | 1 | 3 | 3 | 1 |"))


def check_pictures(cases, folder):
    for name in ("time", "share", "ratio"):
        root = ElementTree.parse(folder / "benchmarks" / f"{name}.svg").getroot()
        titles = [t.text for t in root.iter(SVG + "text") if t.get("font-size") == "13"]
        cases.check(f"{name}.svg is XML with a panel for each move, all within its borders", outside(root) + [
            f"panels: {titles}" for _ in [0] if titles != ["S(0) to S(1)", "S(0) to R", "P to S(0)", "P to R"]])
    cases.check("series can be told apart without colours", alike_in_grey())
    ratio = ElementTree.parse(folder / "benchmarks" / "ratio.svg").getroot()
    cases.check("a ratio is as high as its logarithm", differs("pytorch at 4 KiB", height_of(ratio, "pytorch", 1, 0), math.log10(600) / 3)
                + differs("mpi at 4 KiB", height_of(ratio, "mpi", 3, 0), math.log10(3) / 3))
    share = ElementTree.parse(folder / "benchmarks" / "share.svg").getroot()
    cases.check("shares are of the limit that the tool told",
                differs("S(0) to S(1)", height_of(share, "tessera", 0, 1), 0.5)
                + differs("S(0) to R", height_of(share, "tessera", 1, 1), 0.375)
                + differs("P to S(0)", height_of(share, "tessera", 2, 1), 0.75)
                + differs("the engine's", height_of(share, "tessera-mpi", 2, 1), 0.375))
    cases.check("whiskers reach as far as the noise", whiskers(share, "tessera", 0.5 / 1.02, 0.5 * 1.02))


def check_copies(cases, folder):
    """The best that anybody made: the tool's beside the engine's moves, 4 times as fast as memcpy."""
    size, move = 1 << 28, ("S(0)", "S(1)")
    lines = [canned.MACHINE, canned.move("memcpy", *move, size, 1e-3),
             canned.move("tessera-mpi", *move, size, 1e-3, peak_bandwidth=4 * size / 1e-3)]
    found = figures.Figures(canned.write(folder / "copies.json", lines)).share_of_copy("tessera-mpi", move, size).value
    cases.check("the best plain copy is the best that anybody made", [] if math.isclose(found, 0.25) else [f"share {found}, not 0.25"])
    lines[1] = canned.move("memcpy", *move, size, 1e-4)
    without = figures.Figures(canned.write(folder / "copies.json", lines))
    found = without.share_of_copy("tessera-mpi", move, size).value
    cases.check("memcpy's too", [] if math.isclose(found, 0.1) else [f"share {found}, not 0.1"])
    cases.check("without a limit there is no share", [] if without.share("memcpy", move, size) is None else ["there is one"])


def check_noise(cases):
    def line(*medians):
        return {"seconds": {"median": sorted(medians)[len(medians) // 2], "rounds": list(medians)}}

    found = [figures.noise(line(*medians)) for medians in ((2.0,), (2.0, 1.0, 4.0), (3.0, 3.0))]
    cases.check("noise is half of what the rounds spread over, and not known of one", [] if found == [None, 0.75, 0.0] else [found])
    found = figures.ratio_of(line(4.0, 4.0, 5.0), line(2.0, 2.0, 2.0))
    cases.check("a ratio has the noise of both", [] if (found.value, found.noise) == (2.0, 0.125) else [vars(found)])
    found = figures.ratio_of(line(4.0, 4.0, 5.0), line(2.0))
    cases.check("what is not known of one is not known of a ratio", [] if found.noise is None else [found.noise])


def check_few(cases, folder):
    done = report(canned.write(folder / "few.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 1e-6)]), folder / "few")
    page = folder / "few" / "benchmarks.md"
    stale = folder / "few" / "benchmarks" / "share.svg"
    stale.write_text("of another run")
    report(folder / "few.json", folder / "few")
    cases.check("a picture that is not made again does not stay", ["share.svg is there"] if stale.exists() else [])
    text = page.read_text() if page.exists() else done.stderr
    too_much = [word for word in ("share.svg", "ratio.svg", "## Decoding") if word in text]
    cases.check("what was not measured is said, and draws nothing", too_much + missing(
        text, "| 4 KiB, P to R | JAX | 75 | not measured |", "(benchmarks/time.svg)"))
    report(canned.write(folder / "four.json", [canned.MACHINE, {**canned.move("tessera", "P", "R", 64, 1e-6), "ranks": 4}]), folder / "four")
    cases.check("figures of other ranks than the goals are told apart", missing(
        (folder / "four" / "benchmarks.md").read_text(), "The goals are for two ranks, the figures of 4."))


def check_several(cases, folder):
    first = canned.write(folder / "first.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 1e-6),
                                                 canned.move("tessera", "P", "R", 256, 1e-6)])
    second = canned.write(folder / "second.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 2e-6)])
    found = [figures.Figures(first, second).move("tessera", ("P", "R"), size)["seconds"]["median"] for size in (64, 256)]
    cases.check("a later file replaces what it measured again, and nothing else", [] if found == [2e-6, 1e-6] else [found])
    for what, value in (("cores", 64), ("commit", "ba9876543210"), ("date", "2026-01-03")):
        other = canned.write(folder / "other.json", [{**canned.MACHINE, what: value}])
        try:
            figures.Figures(first, other)
            said = "nothing"
        except figures.Unreadable as error:
            said = str(error)
        cases.check(f"figures of another {what} do not go into one report", [] if f"of another {what} than" in said else [said])


def check_simulation(cases, folder):
    file, docs = canned.write(folder / "simulated.json"), folder / "simulated"
    (docs / "benchmarks").mkdir(parents=True)
    texts = []
    for _ in range(2):
        report(file, docs)
        texts.append((docs / "benchmarks.md").read_text())
        (docs / "benchmarks" / "simulation.md").write_text("")
    linked = ["(benchmarks/simulation.md)" in text for text in texts]
    cases.check("the page of the simulation's error is linked where it is", [] if linked == [False, True] else [linked])


def check_refusals(cases, folder):
    files = {"text": "hello\n", "nothing": "", "another": '{"bench": "redistribute"}\n', "list": "[1]\n", "absent": None,
             "half a figure": json.dumps(canned.MACHINE) + '\n{"kind": "move"}\n',
             "a figure without a median": json.dumps(canned.MACHINE)
             + '\n{"kind": "move", "implementation": "mpi", "way": "", "ranks": 2, "seconds": 1}\n'}
    for name, text in files.items():
        file = folder / name
        if text is not None:
            file.write_text(text)
        done = report(file, folder / "refused")
        cases.check(f"a file of {name} is refused in one sentence, with nothing written",
                    ([] if done.returncode == 1 and done.stderr.count("\n") == 1 and str(file) in done.stderr
                     else [f"{done.returncode}: {done.stderr}"]) + (["it wrote"] if (folder / "refused").exists() else []))


def main():
    cases = tap.Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        done = report(canned.write(folder / "run.json"), folder / "docs")
        cases.check("a run becomes a page and three pictures", [] if done.returncode == 0 else [done.stderr])
        if done.returncode == 0:
            check_page(cases, (folder / "docs" / "benchmarks.md").read_text())
            check_pictures(cases, folder / "docs")
        check_copies(cases, folder)
        check_noise(cases)
        check_simulation(cases, folder)
        check_few(cases, folder)
        check_several(cases, folder)
        check_refusals(cases, folder)
    cases.finish()


main()
