#!/usr/bin/env python3
"""`tessera plan --svg`: the picture is XML, stays within its borders, and shows every rank, piece
and transfer."""
import re
import sys
import xml.etree.ElementTree as ElementTree

import harness

tool = harness.Tool(sys.argv[1])
SVG = "{http://www.w3.org/2000/svg}"
KNOWN = {"svg", "title", "defs", "pattern", "path", "circle", "rect", "line", "text"}
#: The width of a character, of a font's size, that text is laid out with.
CHARACTER = 0.62


class Picture:
    """A picture that the tool drew, with the JSON output of the same plans."""

    def __init__(self, *arguments):
        path = tool.folder / "picture.svg"
        self.arguments = ["plan", *arguments]
        self.answer = tool.json(*self.arguments, "--svg", path)
        self.root = ElementTree.fromstring(path.read_bytes())
        self.texts = ["".join(t.itertext()) for t in self.root.iter(SVG + "text")]
        self.titles = [t.text for t in self.root.iter(SVG + "title")]

    def words(self):
        return "\n".join(self.texts)


def numbers(text):
    return [float(n) for n in re.findall(r"-?\d+(?:\.\d+)?", text)]


def text_corners(element):
    """The corners of a line of text, as wide as it was thought to be."""
    x, y, size = (float(element.get(name)) for name in ("x", "y", "font-size"))
    length = CHARACTER * size * len("".join(element.itertext()))
    begin = {"start": 0, "middle": -length / 2, "end": -length}[element.get("text-anchor")]
    if element.get("transform") is None:
        return [(x + begin, y - size), (x + begin + length, y + size / 4)]
    return [(x - size, y - begin - length), (x + size / 4, y - begin)]


def corners(element):
    kind = element.tag.removeprefix(SVG)
    if kind == "text":
        return text_corners(element)
    if kind == "rect":
        x, y, width, height = (float(element.get(name)) for name in ("x", "y", "width", "height"))
        return [(x, y), (x + width, y + height)] if width >= 0 and height >= 0 else [(-1, -1)]
    if kind == "path":
        flat = numbers(element.get("d"))
        return list(zip(flat[::2], flat[1::2]))
    return [(float(element.get("x1")), float(element.get("y1"))), (float(element.get("x2")), float(element.get("y2")))]


def within_borders(picture):
    root, wrong = picture.root, []
    width, height = float(root.get("width")), float(root.get("height"))
    wrong += harness.different("view", root.get("viewBox"), f"0 0 {width:.0f} {height:.0f}")
    hidden = {e for defs in root.iter(SVG + "defs") for e in defs.iter()}
    for element in root.iter():
        kind = element.tag.removeprefix(SVG)
        wrong += harness.different("element", kind in KNOWN, True)
        if element in hidden or kind not in ("rect", "path", "line", "text"):
            continue
        if any(not (0 <= x <= width and 0 <= y <= height) for x, y in corners(element)):
            wrong.append(f"beyond the border: {ElementTree.tostring(element)[:200]}")
    return wrong


def shown_steps(picture):
    """Returns the transfers of each step between ranks, from the titles of its bands."""
    steps = []
    for text in picture.root.iter():
        words = text.text or ""
        if text.tag == SVG + "text" and words.startswith("Step "):
            steps.append({})
        flow = re.fullmatch(r"rank (\d+) to rank (\d+): (\d+) bytes", words) if text.tag == SVG + "title" else None
        if flow:
            steps[-1][int(flow[1]), int(flow[2])] = int(flow[3])
    return steps


def told_steps(picture, ranks):
    """Returns the same from every rank's plan."""
    steps = [{} for _ in picture.answer["steps"]]
    for rank in ranks:
        for row in tool.json(*picture.arguments, "--rank", rank)["receives"]:
            flows = steps[row["step"]]
            flows[row["from"], rank] = flows.get((row["from"], rank), 0) + row["bytes"]
    return steps


def mesh_ranks(mesh):
    count = 1
    for size in mesh["shape"]:
        count *= size
    return mesh.get("ranks", list(range(count)))


def ranks_of(picture):
    return sorted({r for side in ("from", "to") for r in mesh_ranks(picture.answer[side]["mesh"])})


def nodes(picture, verb):
    """[(rank, bytes)] of the bars of senders ("sends") or receivers, of all steps."""
    found = (re.fullmatch(rf"rank (\d+) {verb} (\d+) bytes", title) for title in picture.titles)
    return [(int(m[1]), int(m[2])) for m in found if m]


def every_rank_has_bars(picture, ranks):
    """In each step that crosses ranks, every rank of the source sends and every one of the target receives, if nothing."""
    wrong = []
    for verb, side in (("sends", "from"), ("receives", "to")):
        crossing = sum(1 for flows in shown_steps(picture) if flows)
        drawn = [rank for rank, _ in nodes(picture, verb)]
        for rank in mesh_ranks(picture.answer[side]["mesh"]):
            wrong += harness.different(f"bars of rank {rank} that {verb}", drawn.count(rank), crossing)
    return wrong


def shows_all(*arguments):
    """One case of a picture without gaps: all transfers, all bars, a cell for each transfer."""
    picture = Picture(*arguments)
    ranks = ranks_of(picture)
    wrong = within_borders(picture) + harness.different("transfers", shown_steps(picture), told_steps(picture, ranks))
    cells = sorted(t for t in picture.titles if t.startswith("from "))
    flows = [(a, b, n) for step in shown_steps(picture) for (a, b), n in step.items()]
    wrong += harness.different("cells", cells, sorted(f"from {a} to {b}: {n} bytes" for a, b, n in flows))
    for head in ("rank: bytes sent", "rank: bytes received"):
        wrong += harness.different(head, picture.texts.count(head), sum(1 for step in shown_steps(picture) if step))
    return wrong + every_rank_has_bars(picture, ranks)


def pieces(picture):
    """{rank: number of blocks that name it} of both layouts."""
    count = {}
    for title in picture.titles:
        block = re.fullmatch(r"\[\d+, \d+\) x \[\d+, \d+\): ([\d +]+)", title)
        for rank in re.findall(r"\d+", block[1]) if block else []:
            count[int(rank)] = count.get(int(rank), 0) + 1
    return count


def shows_pieces(wanted, *arguments):
    picture = Picture(*arguments)
    return within_borders(picture) + harness.different("blocks of each rank", pieces(picture), wanted)


def says(sentences, *arguments, hides=()):
    picture = Picture(*arguments)
    wrong = [f"{sentence!r} is not among the texts" for sentence in sentences if sentence not in picture.words()]
    return within_borders(picture) + wrong + [f"there is {word!r}" for word in hides if word in picture.words()]


def labelled(*arguments):
    """Each rank of a small mesh can be read on its own block, and every piece's first index at its edge."""
    picture = Picture(*arguments)
    return [f"{rank}" for rank in ranks_of(picture) if picture.texts.count(str(rank)) < 2]


def one_rank():
    picture = Picture("--mesh", "4x2", "--shape", "64x64", "--from", "S(0),S(1)", "--to", "S(1),S(0)", "--rank", "4")
    flows = [{(r["from"], 4): r["bytes"] for r in picture.answer["receives"]} | {(4, r["to"]): r["bytes"] for r in picture.answer["sends"]}]
    return within_borders(picture) + harness.different("transfers", shown_steps(picture), flows)


def same_again():
    first, second = (tool.folder / name for name in ("first.svg", "second.svg"))
    arguments = ["plan", "--mesh", "2x3", "--shape", "5x7", "--from", "P,S(0)", "--to", "R,R"]
    for path in (first, second):
        tool.json(*arguments, "--svg", path)
    return harness.different("equal", first.read_bytes() == second.read_bytes(), True)


def hatched():
    """Blocks of Partial terms are hatched as well as named; other blocks are not."""
    picture = Picture("--mesh", "2", "--shape", "6x4", "--from", "P", "--to", "S(0)")
    hatches = [r for r in picture.root.iter(SVG + "rect") if r.get("fill") == "url(#hatch)"]
    return harness.different("hatched blocks", len(hatches), 1) + harness.different("terms", "0+1" in picture.texts, True)


MOVES = [("2", "4x6", "S(0)", "S(1)"), ("4x2", "64x64", "S(0),S(1)", "S(1),S(0)"), ("4", "10x3", "P", "R"), ("2x2", "9x6", "P,S(1)", "S(0),R"),
         ("8", "5", "S(0)", "R"), ("3x2", "7x2", "S(0;balanced),R", "R,S(0;interleave=2)"), ("2x2", "scalar", "P,R", "R,R"), ("2", "2x2x2", "S(0)", "S(2)"),
         ("2x2@[70,4,11,9]", "6x6", "S(0),S(1)", "R,S(0)"), ("2", "4", "R", "S(0)"), ("2", "4", "R", "P")]
# A picture asks for the plan of each rank: of 64 ranks sanitizers have one.
for mesh, shape, source, target in MOVES + harness.left_out_thinned([("64", "64x64", "S(0)", "S(1)")]):
    tool.case(f"{mesh} {shape}: {source} -> {target} is shown whole", shows_all, "--mesh", mesh, "--shape", shape, "--from", source, "--to", target)
BETWEEN = [("4", "3@8", "9"), ("6", "8", "100x3"), ("1", "64", "8x8")]
for mesh, to_mesh, shape in BETWEEN + harness.left_out_thinned([("64", "64@64", "1000x10")]):
    tool.case(f"{mesh} to {to_mesh}, {shape}, is shown whole", shows_all, "--mesh", mesh, "--to-mesh", to_mesh, "--shape", shape, "--from", "S(0)",
              "--to", "S(0;balanced)", "--dtype", "i16")
tool.case("blocks of each rank", shows_pieces, {0: 2, 1: 2, 2: 2, 3: 2}, "--mesh", "2x2", "--shape", "9x6", "--from", "S(0),S(1)", "--to", "R,R")
tool.case("blocks of interleaved pieces", shows_pieces, {0: 3, 1: 3}, "--mesh", "2", "--shape", "8x6", "--from", "S(1;interleave=2)", "--to", "S(0)")
tool.case("blocks of replicas and terms", shows_pieces, {0: 2, 1: 2, 2: 2, 3: 2}, "--mesh", "2x2", "--shape", "4x4", "--from", "P,S(0)", "--to", "S(1),R")
tool.case("sizes near the end of int64", shows_pieces, {0: 2, 1: 2}, "--mesh", "2", "--shape", "2305843009213693951", "--dtype", "i8", "--from", "S(0)", "--to",
          "S(0;balanced)")
tool.case("long placements are cut to the page", says, ["From S(0;sizes=1,1,"], "--mesh", "64", "--shape", "64", "--from",
          f"S(0;sizes={','.join(['1'] * 64)})", "--to", "S(0)")
tool.case("long rank lists are cut to the page", says, ["To S(0) on mesh 64@[3000063,"], "--mesh", "64", "--to-mesh",
          f"64@[{','.join(str(3000063 - r) for r in range(64))}]", "--shape", "64", "--from", "S(0)", "--to", "S(0)")
tool.case("ranks that hold nothing are named", says, ["Ranks that hold nothing: 3", "Ranks that hold nothing: 9"], "--mesh", "4", "--to-mesh", "3@8",
          "--shape", "9", "--from", "S(0)", "--to", "S(0;sizes=1,0,8)")
tool.case("an empty tensor is said to be empty", says, ["The tensor is empty.", "Ranks that hold nothing: 0 1", "Nothing crosses"], "--mesh", "2",
          "--shape", "0x4", "--from", "S(0)", "--to", "R")
tool.case("three dims are not drawn, their transfers are", says, ["Not drawn: layouts", "rank: bytes sent"], "--mesh", "2", "--shape", "2x2x2", "--from",
          "S(0)", "--to", "S(2)", hides=["The tensor is empty"])
tool.case("more than 64 ranks are not drawn", says, ["Not drawn: layouts", "Not drawn: who sends"], "--mesh", "65", "--shape", "130x2", "--from", "S(0)",
          "--to", "R", hides=["rank: bytes sent"])
tool.case("more than 64 blocks on a side are not drawn", says, ["Not drawn: the tensor has more than 64 blocks", "rank: bytes sent"], "--mesh", "2",
          "--shape", "200", "--from", "S(0;interleave=50)", "--to", "S(0)")
tool.case("every rank can be read", labelled, "--mesh", "8", "--shape", "64x64", "--from", "S(0)", "--to", "S(1)")
tool.case("terms are hatched", hatched)
tool.case("one rank's picture has its transfers alone", one_rank)
tool.case("the same question gives the same picture", same_again)
tool.report.finish()
