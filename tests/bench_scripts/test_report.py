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
    colour = plot.STYLES[series][0]
    lines = [points for line, points in points_of(root) if line.get("stroke") == colour][1:]  # the first is the legend's
    foot = plot.TOP + 20 + (panel // 2) * (plot.PANEL_HEIGHT + plot.GAP_Y) + plot.PANEL_HEIGHT
    return (foot - lines[panel][index][1]) / plot.PANEL_HEIGHT


def differs(what, found, wanted):
    return [] if math.isclose(found, wanted, rel_tol=0, abs_tol=0.1 / plot.PANEL_HEIGHT) else [f"{what}: {found}, not {wanted}"]


def check_page(cases, page):
    cases.check("every goal stands beside its ratio, and is met from there on", missing(
        page, "| 4 KiB, S(0) to R | PyTorch DTensor | 500 | 600 | met |", "| 4 KiB, P to R | JAX | 75 | 74.0 | **not met** |",
        "| 256 MiB, P to S(0) | MPI | 4 | 3.00 | **not met** |", "| decoding, a token | transformers | 100 | 200 | met |"))
    cases.check("a peer's fastest way counts", missing(page, "| 256 MiB, S(0) to S(1) | MPI | 1.5 | 3.00 | met |"))
    cases.check("times have units and three digits", missing(page, "| 4 KiB | 1.00 us | 3.00 us | 74.0 us | 600 us | 500 ns |",
                                                             "| 256 MiB | 256 us | 768 us | 18.9 ms | 154 ms | 128 us |"))
    cases.check("machine, versions and what others used are told", missing(page, "Abacus <1>, 2 cores, 8.0 GiB", "tessera 0.1.0, torch 2.0",
                                                               "up to 50 % of the cores", "25 % in the median"))
    cases.check("layers are held against their own GEMMs", missing(
        page, "| forward | Tessera | 2.00 ms | 1.00 ms | 0.50 |", "| 4.00 ms | 1.00 ms | 0.25 |"))
    cases.check("a refusal is told in its own words", missing(page, "`RuntimeError: no`", "| 6 | Tessera, 2 ranks | 10,000 |"))
    cases.check("what was not checked in the run is said", missing(page, "none was wrong (Tessera's linear: not in this run"))


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
    cases.check("the limit is the copy of the payload, and half as much again from P to S(0)",
                differs("S(0) to S(1)", height_of(share, "tessera", 0, 1), 0.5)
                + differs("P to S(0)", height_of(share, "tessera", 2, 1), 0.75))


def check_limit(cases, folder):
    """The tool's own best copy counts where it beats memcpy: here 4 times as fast."""
    file = canned.write(folder / "peak.json", [canned.MACHINE, canned.move("memcpy", "S(0)", "S(1)", 1 << 20, 1e-3),
                                               canned.move("tessera", "S(0)", "S(1)", 1 << 20, 1e-3, peak_bandwidth=4 * (1 << 20) / 1e-3)])
    found = figures.Figures(file).share("tessera", ("S(0)", "S(1)"), 1 << 20)
    cases.check("the best plain copy of the run is the limit", [] if math.isclose(found, 0.25) else [f"share {found}, not 0.25"])


def check_few(cases, folder):
    done = report(canned.write(folder / "few.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 1e-6)]), folder / "few")
    page = folder / "few" / "benchmarks.md"
    text = page.read_text() if page.exists() else done.stderr
    too_much = [word for word in ("share.svg", "ratio.svg", "## Decoding") if word in text]
    cases.check("what was not measured is said, and draws nothing", too_much + missing(
        text, "| 4 KiB, P to R | JAX | 75 | not measured |", "(benchmarks/time.svg)"))


def check_several(cases, folder):
    first = canned.write(folder / "first.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 1e-6),
                                                 canned.move("tessera", "P", "R", 256, 1e-6)])
    second = canned.write(folder / "second.json", [canned.MACHINE, canned.move("tessera", "P", "R", 64, 2e-6)])
    found = [figures.Figures(first, second).seconds("tessera", ("P", "R"), size) for size in (64, 256)]
    cases.check("a later file replaces what it measured again, and nothing else", [] if found == [2e-6, 1e-6] else [found])
    other = canned.write(folder / "other.json", [{**canned.MACHINE, "cores": 64}])
    try:
        figures.Figures(first, other)
        said = "nothing"
    except figures.Unreadable as error:
        said = str(error)
    cases.check("figures of two machines do not go into one report", [] if "another machine" in said else [said])


def check_refusals(cases, folder):
    files = {"text": "hello\n", "nothing": "", "another": '{"bench": "redistribute"}\n', "list": "[1]\n", "absent": None,
             "half a figure": json.dumps(canned.MACHINE) + '\n{"kind": "move"}\n',
             "a figure without a median": json.dumps(canned.MACHINE) + '\n{"kind": "move", "implementation": "mpi", "way": "", "ranks": 2, "seconds": 1}\n'}
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
        check_limit(cases, folder)
        check_few(cases, folder)
        check_several(cases, folder)
        check_refusals(cases, folder)
    cases.finish()


main()
