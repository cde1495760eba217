"""Line plots as SVG text: a grid of panels under one legend. Each series has its own mark, dash and
shade, so that series differ in black and white too."""
import math

WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 920, 360, 230
LEFT, TOP, GAP_X, GAP_Y = 70, 86, 100, 76

# style: (colour, dash, width, mark, True if the mark is filled)
STYLES = {
    "tessera": ("#000000", "", 2.4, "circle", True),
    "tessera-new": ("#000000", "10 3", 1.7, "plus", False),
    "tessera-mpi": ("#000000", "5 2", 1.7, "circle", False),
    "tessera-mpich": ("#555555", "2 2", 1.7, "target", False),
    "mpi": ("#0060a8", "7 3", 1.6, "square", False),
    "mpich": ("#0060a8", "3 2", 1.6, "square", True),
    "mpi-by-hand": ("#7a3f9d", "12 3 2 3", 1.6, "wedge", False),
    "mpich-by-hand": ("#7a3f9d", "4 2 1 2", 1.6, "wedge", True),
    "jax": ("#3d8b37", "2 3", 1.8, "triangle", False),
    "jax-new": ("#3d8b37", "1 2", 1.8, "triangle", True),
    "pytorch": ("#c4500c", "9 3 2 3", 1.6, "diamond", False),
    "pytorch-new": ("#c4500c", "6 2 2 2 2 2", 1.6, "diamond", True),
    "memcpy": ("#8a8a8a", "", 1.2, "cross", False),
}
LEGEND_TOP, LEGEND_ROW = 46, 22


class Axis:
    """A scale from values to 0 .. 1 along a side of a panel; the ticks are (value, text)."""

    def __init__(self, low, high, ticks, logarithmic=True):
        self.scale = math.log if logarithmic else float
        self.low, self.high, self.ticks = self.scale(low), self.scale(high), ticks

    def at(self, value):
        return (self.scale(value) - self.low) / (self.high - self.low)


def escape(text):
    return str(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def text_at(x, y, text, anchor="middle", size=12, weight="normal", turn=""):
    turned = f' transform="rotate(-90 {x:.1f} {y:.1f})"' if turn else ""
    return (f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" font-size="{size}" font-weight="{weight}"{turned}>'
            f"{escape(text)}</text>")


def line_between(x1, y1, x2, y2, colour="#d8d8d8", width=1.0, dash=""):
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{colour}" stroke-width="{width}"{dashed}/>'


R = 4.2  # half of the width of a mark
CORNERS = {"square": ((-R, -R), (R, -R), (R, R), (-R, R)), "diamond": ((0, -R - 1), (R + 1, 0), (0, R + 1), (-R - 1, 0)),
           "triangle": ((0, -R - 1), (R + 1, R), (-R - 1, R)), "wedge": ((0, R + 1), (R + 1, -R), (-R - 1, -R))}
STROKES = {"cross": ((-R, -R, R, R), (-R, R, R, -R)), "plus": ((-R - 1, 0, R + 1, 0), (0, -R - 1, 0, R + 1))}


def circle_at(x, y, radius, colour, fill):
    return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def mark_at(x, y, style):
    colour, _, _, shape, filled = STYLES[style]
    fill = colour if filled else "white"
    if shape == "circle":
        return circle_at(x, y, R, colour, fill)
    if shape == "target":
        return circle_at(x, y, R, colour, fill) + circle_at(x, y, 1, colour, colour)
    if shape in STROKES:
        return "".join(line_between(x + x1, y + y1, x + x2, y + y2, colour, 1.6) for x1, y1, x2, y2 in STROKES[shape])
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in CORNERS[shape])
    return f'<polygon points="{points}" fill="{fill}" stroke="{colour}" stroke-width="1.5"/>'


def path_through(points, name):
    colour, dash, width, _, _ = STYLES[name]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'


class Panel:
    """One plot; `left` and `bottom` are its origin."""

    def __init__(self, left, bottom, title, across, up):
        self.left, self.bottom, self.title, self.across, self.up = left, bottom, title, across, up

    def x(self, value):
        return self.left + PANEL_WIDTH * self.across.at(value)

    def y(self, value):
        return self.bottom - PANEL_HEIGHT * min(1.0, max(0.0, self.up.at(value)))

    def frame(self, titles):
        top, right = self.bottom - PANEL_HEIGHT, self.left + PANEL_WIDTH
        yield text_at(self.left, top - 9, self.title, "start", 13, "bold")
        yield text_at(self.left - 52, (top + self.bottom) / 2, titles[1], turn="left")
        yield text_at((self.left + right) / 2, self.bottom + 34, titles[0])
        for value, text in self.up.ticks:
            yield line_between(self.left, self.y(value), right, self.y(value))
            yield text_at(self.left - 6, self.y(value) + 4, text, "end", 11)
        for value, text in self.across.ticks:
            yield line_between(self.x(value), self.bottom, self.x(value), self.bottom + 4, "#555555")
            if text:
                yield text_at(self.x(value), self.bottom + 17, text, size=11)
        yield line_between(self.left, self.bottom, right, self.bottom, "#555555")

    def draw(self, series):
        """Draws series, {name: [(x, y, least, most)]}, with whiskers from least to most. Tessera's
        is drawn last, on top."""
        for name, points in sorted(series.items(), key=lambda item: item[0] == "tessera"):
            places = [(self.x(x), self.y(y)) for x, y, _, _ in points]
            for x, _, least, most in points:
                if abs(self.y(least) - self.y(most)) > 2:
                    yield line_between(self.x(x), self.y(least), self.x(x), self.y(most), STYLES[name][0], 0.8)
            yield path_through(places, name)
            yield from (mark_at(x, y, name) for x, y in places)


def placed(names):
    """Places the entries of a legend in rows: yields (style, text, x, row)."""
    x, row = LEFT, 0
    for style, text in names:
        wide = 66 + 7.2 * len(text)
        if x > LEFT and x + wide > WIDTH:
            x, row = LEFT, row + 1
        yield style, text, x, row
        x += wide


def legend(places):
    for style, text, x, row in places:
        y = LEGEND_TOP + row * LEGEND_ROW
        yield path_through([(x, y), (x + 40, y)], style)
        yield mark_at(x + 20, y, style)
        yield text_at(x + 47, y + 4, text, "start", 12)


def picture(title, names, panels, titles, level=None):
    """The picture as SVG. Panels are (title, across, up, series), two in a row; `titles` are those
    of the axes. `level` is a value at which each panel gets a line."""
    places = list(placed(names))
    top = TOP + places[-1][3] * LEGEND_ROW
    height = top + (len(panels) + 1) // 2 * (PANEL_HEIGHT + GAP_Y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif" '
             'fill="#111111">',
             f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             text_at(LEFT, 22, title, "start", 15, "bold"), *legend(places)]
    for i, (panel_title, across, up, series) in enumerate(panels):
        left = LEFT + (i % 2) * (PANEL_WIDTH + GAP_X)
        panel = Panel(left, top + 20 + (i // 2) * (PANEL_HEIGHT + GAP_Y) + PANEL_HEIGHT, panel_title, across, up)
        parts.extend(panel.frame(titles))
        if level is not None:
            parts.append(line_between(panel.left, panel.y(level), panel.left + PANEL_WIDTH, panel.y(level), "#111111", 1.2, "4 2"))
        parts.extend(panel.draw(series))
    return "\n".join([*parts, "</svg>"]) + "\n"
