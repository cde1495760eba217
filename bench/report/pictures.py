"""The plots of moves: time, share of the limit, ratio of each peer to Tessera, and of each MPI to
Tessera's engine over it. A plot without figures is None."""
import collections
import math

from figures import MAKERS, MOVES, byte_text, name_of, time_text
from plot import Axis, picture

SHARE_FROM = 1 << 18  # bytes: below, a copy takes less time than a barrier of the ranks
TICK_DISTANCE = 0.16  # share of an axis that a text below it needs
SLOTS = ("mpi", "mpich")  # the styles of the first two MPIs; further MPIs are only in the tables

CAPTIONS = {"time": "time of a call against the tensor's size", "share": "share of the limit against the tensor's size",
            "ratio": "ratio of each peer's time to Tessera's against the tensor's size",
            "engines": "ratio of each MPI's time to that of Tessera over it against the tensor's size"}

#: A series: a style of plot.py, a label, and a function `measured` of (move, size), which returns
#: None without a figure.
Series = collections.namedtuple("Series", "style label measured")


def size_axis(sizes):
    """An axis with a tick at every size, and texts where there is room, from the greatest down."""
    low, high = sizes[0] / 1.3, sizes[-1] * 1.3
    texts, last = {}, math.inf
    for size in reversed(sizes):
        place = math.log(size / low) / math.log(high / low)
        if last - place >= TICK_DISTANCE:
            texts[size], last = byte_text(size), place
    return Axis(low, high, [(size, texts.get(size, "")) for size in sizes])


def decades(values, text):
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return Axis(10.0**low, 10.0**max(high, low + 1), [(10.0**power, text(10.0**power)) for power in range(low, high + 1)])


def fifths(values):
    most = max(1.0, math.ceil(max(values) * 5) / 5)
    return Axis(0, most, [(step / 5, f"{step / 5:.1f}") for step in range(round(most * 5) + 1)], logarithmic=False)


def points_of(one, move, sizes):
    """[(size, value, least, most)] of the figures; least and most are the value if the noise is
    unknown."""
    found = ((size, one.measured(move, size)) for size in sizes)
    return [(size, measured.value, *(measured.interval or (measured.value, measured.value))) for size, measured in found if measured]


def draw(series, sizes, title, titles, axis, level=None):
    """A picture, or None without figures. `titles` are those of the horizontal and the vertical
    axis; `axis` makes the vertical axis from all values."""
    drawn = {move: {one.style: points_of(one, move, sizes) for one in series if points_of(one, move, sizes)} for move in MOVES}
    values = [value for by_style in drawn.values() for points in by_style.values() for _, *three in points for value in three]
    if not values:
        return None
    across, up = size_axis(sizes), axis(values)
    panels = [(f"{source} to {target}", across, up, drawn[source, target]) for source, target in MOVES]
    shown = [(one.style, one.label) for one in series if any(one.style in by_style for by_style in drawn.values())]
    return picture(title, shown, panels, titles, level)


def slots(figures):
    """Pairs (style, MPI)."""
    return list(zip(SLOTS, figures.mpis))


def everybody(figures, measured):
    """Series for Tessera's implementations and its peers; `measured` is a function of
    (implementation, move, size)."""
    over_mpi = [(f"tessera-{slot}", f"tessera-{mpi}") for slot, mpi in slots(figures)]
    names = [*((name, name) for name in ("tessera", "tessera-new")), *over_mpi, *slots(figures), *((maker, maker) for maker in MAKERS)]
    return [series_of(style, name_of(name), measured, name) for style, name in names]


def series_of(style, label, measured, *names):
    return Series(style, label, lambda move, size: measured(*names, move, size))


def time(figures):
    series = [*everybody(figures, figures.seconds), series_of("memcpy", name_of("memcpy"), figures.seconds, "memcpy")]
    return draw(series, figures.sizes(), f"Time of a move on {figures.ranks} ranks", ("bytes of the tensor", "time of a call"),
                lambda values: decades(values, plain_time))


def share(figures):
    return draw(everybody(figures, figures.share), [size for size in figures.sizes() if size >= SHARE_FROM],
                "Share of the limit: the bytes that a move must touch, at the best plain copy's rate",
                (f"bytes of the tensor, from {byte_text(SHARE_FROM)}", "share"), fifths, level=1)


def ratios(figures, pairs, title):
    """A picture of the ratios of `pairs`, which are (style, label, peer, ours)."""
    def measured(peer, ours, move, size):
        return figures.ratio(peer, move, size, ours)

    return draw([series_of(style, label, measured, peer, ours) for style, label, peer, ours in pairs], figures.sizes(), title,
                ("bytes of the tensor", "ratio"), lambda values: decades([*values, 1], lambda value: f"{value:g}"), level=1)


def ratio(figures):
    pairs = [(slot, name_of(mpi), mpi, "tessera") for slot, mpi in slots(figures)]
    pairs += [(f"{slot}-by-hand", name_of(f"{mpi}-by-hand"), f"{mpi}-by-hand", "tessera") for slot, mpi in slots(figures)]
    pairs += [(maker, name_of(maker), maker, "tessera") for maker in MAKERS]
    pairs += [(f"{maker}-new", f"{name_of(maker)} to a new result", maker, "tessera-new") for maker in MAKERS]
    return ratios(figures, pairs, "A peer's time over Tessera's (above 1: Tessera is faster)")


def engines(figures):
    pairs = [(f"{slot}{kind}", name_of(f"{mpi}{kind}"), f"{mpi}{kind}", f"tessera-{mpi}")
             for slot, mpi in slots(figures) for kind in ("", "-by-hand")]
    return ratios(figures, pairs, "An MPI's time over that of Tessera over the same MPI (above 1: Tessera is faster)")


def plain_time(seconds):
    """The text of a time that is a power of ten."""
    return time_text(seconds).replace(".00", "").replace(".0", "")


PICTURES = {"time": time, "share": share, "ratio": ratio, "engines": engines}
