"""The three plots of the moves: time, share of the limit, ratio to each peer. Each is None where nothing was measured for it."""
import math

from figures import MOVES, NAMES, PEERS, byte_text, time_text
from plot import Axis, picture

SHARE_FROM = 1 << 18  # below, a copy is over before the ranks have met
ENGINE = "tessera-mpi"


def size_axis(sizes):
    ticks = [(1 << power, byte_text(1 << power)) for power in range(6, 41, 4) if sizes[0] <= 1 << power <= sizes[-1]]
    return Axis(sizes[0] / 1.3, sizes[-1] * 1.3, ticks)


def decades(values, text):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Axis(10.0**low, 10.0**max(high, low + 1), [(10.0**power, text(10.0**power)) for power in range(low, high + 1)])


def series_of(figures, names, sizes, point):
    """{move: {name: [(size, value, least, most)]}}, leaving out what was not measured."""
    def points(name, move):
        return [(size, *point(name, move, size)) for size in sizes if point(name, move, size)]

    return {move: {name: points(name, move) for name in names if points(name, move)} for move in MOVES}


def values_of(series):
    return [value for by_name in series.values() for points in by_name.values() for _, *three in points for value in three]


def draw(figures, names, sizes, point, title, y_title, axis, level=None, labels=NAMES):
    series = series_of(figures, names, sizes, point) if sizes else {}
    values = values_of(series)
    if not values:
        return None
    across, up = size_axis(sizes), axis(values)
    panels = [(f"{source} to {target}", across, up, series[source, target]) for source, target in MOVES]
    shown = [(name, labels[name]) for name in names if any(name in by_name for by_name in series.values())]
    return picture(title, shown, panels, y_title, level)


def three_of(measured):
    """A value, and as far as its noise goes."""
    return measured and (measured.value, *measured.between())


def time(figures):
    def point(name, move, size):
        line = figures.move(name, move, size)
        return line and tuple(line["seconds"][key] for key in ("median", "min", "max"))

    return draw(figures, ["tessera", "tessera-mpi", *PEERS, "memcpy"], figures.sizes(), point,
                f"Time of a move on {figures.ranks()} ranks, by the tensor's bytes", "time of a call",
                lambda values: decades(values, plain_time))


def share(figures):
    def axis(values):
        most = max(1.0, math.ceil(max(values) * 5) / 5)
        return Axis(0, most, [(step / 5, f"{step / 5:.1f}") for step in range(round(most * 5) + 1)], logarithmic=False)

    return draw(figures, ["tessera", "tessera-mpi", *PEERS], [size for size in figures.sizes() if size >= SHARE_FROM],
                lambda name, move, size: three_of(figures.share(name, move, size)),
                "Share of the limit: the bytes that a move must touch, at the best plain copy's rate", "share", axis, level=1)


def ratio(figures):
    def point(name, move, size):
        if name == ENGINE:
            return three_of(figures.ratio("mpi", move, size, ENGINE))
        return three_of(figures.ratio(name, move, size))

    return draw(figures, [*PEERS, ENGINE], figures.sizes(), point, "A peer's time over Tessera's (above 1: Tessera is faster)", "ratio",
                lambda values: decades([*values, 1], lambda value: f"{value:g}"), level=1,
                labels={**NAMES, ENGINE: "MPI, to Tessera over MPI"})


def plain_time(seconds):
    """Of a power of ten."""
    return time_text(seconds).replace(".00", "").replace(".0", "")


PICTURES = {"time": time, "share": share, "ratio": ratio}
