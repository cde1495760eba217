#!/usr/bin/env python3
"""The pictures of scripts/bench-report, read as people do: curves by the legend, points by the
ticks. TAP.

usage: test_pictures.py SOURCE_ROOT
"""
import math
import pathlib
import sys
import tempfile
import xml.etree.ElementTree as ElementTree

ROOT = pathlib.Path(sys.argv[1])
sys.path[:0] = [str(ROOT / "tests" / "invariants"), str(ROOT / "bench" / "report")]
import canned  # noqa: E402
import figures  # noqa: E402
import pictures  # noqa: E402
import plot  # noqa: E402
import tap  # noqa: E402

SVG = "{http://www.w3.org/2000/svg}"
SIZES = (1 << 12, 1 << 20, 1 << 28)
UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1}
AXIS = "#555555"


def number_of(text):
    """The number of a tick's text."""
    value, _, unit = text.partition(" ")
    return float(value) * UNITS.get(unit, 1)


def places_of(element, *names):
    return [float(element.get(name)) for name in names]


def corners_of(element):
    return [tuple(map(float, pair.split(","))) for pair in element.get("points").split()]


def style_of(line):
    return line.get("stroke"), line.get("stroke-dasharray", "")


class Scale:
    """A scale from places to values, by the first and the last tick of an axis, (place, value)."""

    def __init__(self, ticks, logarithmic):
        self.ticks, self.logarithmic = sorted(ticks), logarithmic

    def at(self, place):
        (first, low), (last, high) = self.ticks[0], self.ticks[-1]
        if first == last:
            return low if abs(place - first) < 0.1 else math.nan
        share = (place - first) / (last - first)
        return low * (high / low) ** share if self.logarithmic else low + (high - low) * share


class Read:
    """The contents of a picture: `panels` is {move: {label: [(bytes, value, least, most)]}}."""

    def __init__(self, svg, logarithmic=True):
        self.root, self.logarithmic = ElementTree.fromstring(svg), logarithmic
        self.texts = [(*places_of(t, "x", "y"), t.text, t) for t in self.root.iter(SVG + "text")]
        self.lines = [(*places_of(line, "x1", "y1", "x2", "y2"), line) for line in self.root.iter(SVG + "line")]
        self.feet = [(x1, x2, y1) for x1, y1, x2, y2, line in self.lines if line.get("stroke") == AXIS and x2 - x1 > 100]
        self.curves = [(style_of(one), corners_of(one)) for one in self.root.iter(SVG + "polyline")]
        self.top = min(foot for _, _, foot in self.feet) - plot.PANEL_HEIGHT
        self.labels = dict(self.legend())
        self.panels = {self.title(*foot): dict(self.series(*foot)) for foot in self.feet}

    def legend(self):
        for style, points in self.curves:
            (_, y), (end, _) = points[0], points[-1]
            if y < self.top:
                yield style, next(text for x, place, text, _ in self.texts if 0 < x - end < 10 and abs(place - y) < 6)

    def title(self, left, _, foot):
        return next(text for x, y, text, t in self.texts
                    if t.get("font-weight") == "bold" and x == left and 0 < foot - y - plot.PANEL_HEIGHT < 20)

    def ticks(self, left, right, foot):
        across = [(x, number_of(text)) for x, y, text, _ in self.texts if left <= x <= right and 10 < y - foot < 25]
        up = [(foot - y + 4, number_of(text)) for x, y, text, t in self.texts
              if t.get("text-anchor") == "end" and 0 < left - x < 10 and -10 < foot - y + 4 < plot.PANEL_HEIGHT + 10]
        return across, up

    def series(self, left, right, foot):
        across, up = self.ticks(left, right, foot)
        x_scale, y_scale = Scale(across, True), Scale(up, self.logarithmic)

        def whisker(x, y):
            """The longest whisker at a point."""
            spans = [sorted((foot - y1, foot - y2)) for x1, y1, x2, y2, line in self.lines
                     if line.get("stroke-width") == "0.8" and x1 == x2 == x and min(y1, y2) <= y <= max(y1, y2)]
            return max(spans, key=lambda span: span[1] - span[0], default=(foot - y, foot - y))

        for style, points in self.curves:
            if left <= points[0][0] <= right and foot - plot.PANEL_HEIGHT <= points[0][1] <= foot:
                yield self.labels[style], [(x_scale.at(x), *map(y_scale.at, (foot - y, *whisker(x, y)))) for x, y in points]

    def outside(self):
        """Marks, lines and texts (0.62 of their size for each letter) that leave the picture."""
        width, height = map(float, self.root.get("viewBox").split()[2:])
        boxes = [(x1, y1, x2, y2) for x1, y1, x2, y2, _ in self.lines]
        boxes += [(x, y, x, y) for shape in ("polyline", "polygon") for one in self.root.iter(SVG + shape) for x, y in corners_of(one)]
        boxes += [(x - r, y - r, x + r, y + r) for x, y, r in (places_of(one, "cx", "cy", "r") for one in self.root.iter(SVG + "circle"))]
        for x, y, text, t in self.texts:
            wide, high = 0.62 * float(t.get("font-size")) * len(text), float(t.get("font-size"))
            before = {"start": 0, "middle": 0.5, "end": 1}[t.get("text-anchor")] * wide
            turned = t.get("transform")
            boxes.append((x - high, y - before, x, y - before + wide) if turned else (x - before, y - high, x - before + wide, y))
        return [f"{box} of {width} x {height}" for box in boxes
                if min(box) < 0 or max(box[0], box[2]) > width or max(box[1], box[3]) > height]


def differs(found, wanted, near):
    """The expected {move: {label: [(x, value, least, most)]}} that the picture does not show."""
    wrong = []
    for move in {**found, **wanted}:
        for label in {**found.get(move, {}), **wanted.get(move, {})}:
            pair = found.get(move, {}).get(label, []), wanted.get(move, {}).get(label, [])
            if len(pair[0]) != len(pair[1]) or not all(near(*both) for points in zip(*pair) for both in zip(*points)):
                wrong.append(f"{move}, {label}: {pair[0]}, not {pair[1]}")
    return wrong


# Places are told to a tenth of a pixel, and whiskers of less than two are not drawn: of the 230 of a panel of at most nine decades.
def near_ratio(a, b):
    return math.isclose(a, b, rel_tol=0.02)


def near_share(a, b):
    return math.isclose(a, b, rel_tol=0.02, abs_tol=0.002)


def moved(value, *sizes):
    """Draws the same curve in every panel, by a function `value` of (move, size)."""
    return {" to ".join(move): [(size, *value(move, size)) for size in sizes or SIZES] for move in canned.LIMITS}


def by_panel(curves):
    """From {label: {move: points}}."""
    return {move: {label: curve[move] for label, curve in curves.items() if move in curve} for move in moved(lambda *_: ())}


def flat(value, *sizes):
    """A ratio, with the noise of both."""
    return moved(lambda move, size: (value, value * 0.98 / 1.02, value * 1.02 / 0.98), *sizes)


def grown(seconds):
    return moved(lambda move, size: (seconds * (size / 4096) ** 0.5,) * 3)


LABELS = {"tessera": "Tessera", "tessera-new": "Tessera, new result", "tessera-mpi": "Tessera over MPI",
          "tessera-impi": "Tessera over impi", "mpi": "MPI", "impi": "impi", "jax": "JAX", "pytorch": "PyTorch DTensor", "memcpy": "memcpy"}


def check_times(cases, run):
    wanted = by_panel({label: grown(canned.SECONDS[name]) for name, label in LABELS.items()})
    cases.check("times are where the ticks say, under the names that the legend says", differs(
        Read(pictures.time(run)).panels, wanted, near_ratio))


def check_ratios(cases, run):
    curves = {"MPI": flat(3), "impi": flat(12), "JAX": flat(74), "PyTorch DTensor": flat(600), "JAX to a new result": flat(59.2),
              "PyTorch DTensor to a new result": flat(480), "MPI by hand": {"P to R": flat(4, 4096)["P to R"]}}
    cases.check("a ratio is a peer's time over Tessera's, and over that of a new result", differs(
        Read(pictures.ratio(run)).panels, by_panel(curves), near_ratio))
    curves = {"MPI": flat(1.5), "impi": flat(6), "MPI by hand": {"P to R": flat(2, 4096)["P to R"]}}
    cases.check("an MPI is held against Tessera over the same MPI", differs(
        Read(pictures.engines(run)).panels, by_panel(curves), near_ratio))


def values_of(panels):
    """Points without whiskers."""
    return {move: {label: [point[:2] for point in points] for label, points in curves.items()} for move, curves in panels.items()}


def check_shares(cases, run):
    def share(name, move):
        value = canned.SECONDS["memcpy"] / canned.SECONDS[name] / canned.LIMITS[move]
        return value, value / 1.02 / 1.01, value / 0.98 / 0.99

    wanted = by_panel({label: moved(lambda move, _, name=name: share(name, move), *SIZES[1:])
                       for name, label in LABELS.items() if name != "memcpy"})
    found = Read(pictures.share(run), logarithmic=False).panels
    cases.check("shares are of the limit that the tool told, and none of sizes below 256 KiB", differs(
        values_of(found), values_of(wanted), near_share))
    ours = [{move: {"Tessera": curves["Tessera"]} for move, curves in panels.items()} for panels in (found, wanted)]
    cases.check("their whiskers reach as far as the noise of both, the move's and the limit's", differs(*ours, near_share))


def wide_moves():
    """Moves whose rounds differ much, and more upwards than downwards."""
    rounds = {"median": 1e-4, "rounds": [0.25e-4, 1e-4, 8e-4]}
    for size in (1 << 18, 1 << 28):
        yield {**canned.move("tessera", "S(0)", "R", size, 1), "seconds": rounds}
        yield canned.move("mpi", "S(0)", "R", size, 1e-3)


def check_whiskers(cases, folder):
    run = figures.Figures(canned.write(folder / "wide.json", [canned.MACHINE, *wide_moves()]))
    found = Read(pictures.time(run)).panels["S(0) to R"]["Tessera"]
    cases.check("whiskers of times go from the least to the most of the interval", differs(
        {"": {"": found}}, {"": {"": [(size, 1e-4, 0.25e-4, 8e-4) for size in (1 << 18, 1 << 28)]}}, near_ratio))
    found = Read(pictures.ratio(run)).panels["S(0) to R"]["MPI"]
    cases.check("those of ratios from the lowest over the highest on", differs(
        {"": {"": found}}, {"": {"": [(size, 10, 0.98e-3 / 8e-4, 1.02e-3 / 0.25e-4) for size in (1 << 18, 1 << 28)]}}, near_ratio))


def check_one_size(cases, folder):
    run = figures.Figures(canned.write(folder / "one.json", [canned.MACHINE, canned.move("tessera", "P", "R", 1 << 28, 1e-3)]))
    found = Read(pictures.time(run)).panels
    cases.check("a run of one size has its tick", differs(found, {"P to R": {"Tessera": [(1 << 28, 1e-3, 1e-3, 1e-3)]}}, near_ratio))


def check_frames(cases, run, name):
    read = Read(pictures.PICTURES[name](run), name != "share")
    titles = ["S(0) to S(1)", "S(0) to R", "P to S(0)", "P to R"]
    cases.check(f"{name}.svg has a panel for each move, all of it within its borders", read.outside() + [
        f"panels: {list(read.panels)}" for _ in [0] if list(read.panels) != titles])
    across = "bytes of the tensor, from 256 KiB" if name == "share" else "bytes of the tensor"
    count = sum(text == across for _, _, text, _ in read.texts)
    cases.check(f"{name}.svg says what its axis across is", [] if count == 4 else [f"{count} times"])


def alike_in_grey():
    """Pairs of series with one mark, or with equal dash and width."""
    styles = plot.STYLES.values()
    marks, lines = {(mark, filled) for *_, mark, filled in styles}, {(dash, width) for _, dash, width, *_ in styles}
    return [] if len(marks) == len(lines) == len(styles) else ["two series differ by their colour alone"]


def main():
    cases = tap.Report()
    with tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        run = figures.Figures(canned.write(folder / "run.json"))
        for picture in pictures.PICTURES:
            check_frames(cases, run, picture)
        check_times(cases, run)
        check_ratios(cases, run)
        check_shares(cases, run)
        check_whiskers(cases, folder)
        check_one_size(cases, folder)
        cases.check("series can be told apart without colours", alike_in_grey())
    cases.finish()


main()
