"""Line plots as SVG text: a grid of panels under one legend. Each series has a mark, a dash and a shade of its own, so that a picture in
black and white says the same."""
import math

WIDTH, PANEL_WIDTH, PANEL_HEIGHT = 920, 360, 230
LEFT, TOP, GAP_X, GAP_Y = 70, 86, 100, 76

# name: (colour, dash, width, mark)
STYLES = {
    "tessera": ("#000000", "", 2.4, "circle"),
    "tessera-mpi": ("#000000", "5 2", 1.7, "ring"),
    "mpi": ("#0060a8", "7 3", 1.6, "square"),
    "jax": ("#3d8b37", "2 3", 1.8, "triangle"),
    "pytorch": ("#c4500c", "9 3 2 3", 1.6, "diamond"),
    "memcpy": ("#8a8a8a", "", 1.2, "cross"),
}


class Axis:
    """A scale from values to a line of pixels; the ticks are (value, text)."""

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


def mark_at(x, y, name):
    colour, _, _, shape = STYLES[name]
    r = 4.2
    if shape == "circle":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="{colour}"/>'
    if shape == "ring":
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{r}" fill="white" stroke="{colour}" stroke-width="1.5"/>'
    if shape == "cross":
        return line_between(x - r, y - r, x + r, y + r, colour, 1.4) + line_between(x - r, y + r, x + r, y - r, colour, 1.4)
    corners = {"square": ((-r, -r), (r, -r), (r, r), (-r, r)), "diamond": ((0, -r - 1), (r + 1, 0), (0, r + 1), (-r - 1, 0)),
               "triangle": ((0, -r - 1), (r + 1, r), (-r - 1, r))}[shape]
    points = " ".join(f"{x + dx:.1f},{y + dy:.1f}" for dx, dy in corners)
    return f'<polygon points="{points}" fill="white" stroke="{colour}" stroke-width="1.5"/>'


def path_through(points, name):
    colour, dash, width, _ = STYLES[name]
    dashed = f' stroke-dasharray="{dash}"' if dash else ""
    joined = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
    return f'<polyline points="{joined}" fill="none" stroke="{colour}" stroke-width="{width}"{dashed}/>'


class Panel:
    """One plot, its origin at the lower left."""

    def __init__(self, left, bottom, title, across, up):
        self.left, self.bottom, self.title, self.across, self.up = left, bottom, title, across, up

    def x(self, value):
        return self.left + PANEL_WIDTH * self.across.at(value)

    def y(self, value):
        return self.bottom - PANEL_HEIGHT * min(1.0, max(0.0, self.up.at(value)))

    def frame(self, y_title):
        top, right = self.bottom - PANEL_HEIGHT, self.left + PANEL_WIDTH
        yield text_at(self.left, top - 9, self.title, "start", 13, "bold")
        yield text_at(self.left - 52, (top + self.bottom) / 2, y_title, turn="left")
        for value, text in self.up.ticks:
            yield line_between(self.left, self.y(value), right, self.y(value))
            yield text_at(self.left - 6, self.y(value) + 4, text, "end", 11)
        for value, text in self.across.ticks:
            yield line_between(self.x(value), self.bottom, self.x(value), self.bottom + 4, "#555555")
            yield text_at(self.x(value), self.bottom + 17, text, size=11)
        yield line_between(self.left, self.bottom, right, self.bottom, "#555555")

    def draw(self, series):
        """The series are {name: [(x, y, least, most)]}; what spans least to most is drawn as a whisker. Ours comes last, on top."""
        for name, points in sorted(series.items(), key=lambda item: item[0] == "tessera"):
            places = [(self.x(x), self.y(y)) for x, y, _, _ in points]
            for x, _, least, most in points:
                if abs(self.y(least) - self.y(most)) > 2:
                    yield line_between(self.x(x), self.y(least), self.x(x), self.y(most), STYLES[name][0], 0.8)
            yield path_through(places, name)
            yield from (mark_at(x, y, name) for x, y in places)


def legend(names):
    """(name, text) in a row."""
    x = LEFT
    for name, text in names:
        yield path_through([(x, 46), (x + 40, 46)], name)
        yield mark_at(x + 20, 46, name)
        yield text_at(x + 47, 50, text, "start", 12)
        x += 66 + 7.2 * len(text)


def picture(title, names, panels, y_title, level=None):
    """Panels are (title, across, up, series), two in a row. A level is a value that is ruled across every panel."""
    rows = (len(panels) + 1) // 2
    height = TOP + rows * (PANEL_HEIGHT + GAP_Y)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="Helvetica, Arial, sans-serif" '
             'fill="#111111">',
             f"<title>{escape(title)}</title>", f'<rect width="{WIDTH}" height="{height}" fill="white"/>',
             text_at(LEFT, 22, title, "start", 15, "bold"), *legend(names)]
    for i, (panel_title, across, up, series) in enumerate(panels):
        left = LEFT + (i % 2) * (PANEL_WIDTH + GAP_X)
        panel = Panel(left, TOP + 20 + (i // 2) * (PANEL_HEIGHT + GAP_Y) + PANEL_HEIGHT, panel_title, across, up)
        parts.extend(panel.frame(y_title))
        if level is not None:
            parts.append(line_between(panel.left, panel.y(level), panel.left + PANEL_WIDTH, panel.y(level), "#111111", 1.2, "4 2"))
        parts.extend(panel.draw(series))
    return "\n".join([*parts, "</svg>"]) + "\n"
