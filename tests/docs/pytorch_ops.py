#!/usr/bin/env python3
"""docs/pytorch-ops.md has each op of PyTorch's list in one row, and names only what Tessera has. TAP.

usage: pytorch_ops.py SOURCE_ROOT TOOL

In each table the left cell has PyTorch's names between backquotes, also as shell patterns, and the right cell Tessera's: `op` is a row of
`tessera ops`, `tsr_f()` a public function.
"""
import collections
import fnmatch
import json
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402
import tree  # noqa: E402


def base(name):
    """The name under which an op stands on the page."""
    name = re.sub(r"^(prims::|_foreach_)", "", name)
    return name if name.startswith("__") else name.rstrip("_")


def rows(page):
    """(left, right) of each row of each table: the words between backquotes."""
    for line in page.split("\n"):
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if line.startswith("| `") and len(cells) == 2:
            yield tuple(re.findall(r"`([^`]+)`", cell) for cell in cells)


def misplaced(names, patterns):
    found = {name: [p for p in patterns if fnmatch.fnmatchcase(name, p)] for name in names}
    return [f"{name}: {' and '.join(ps) or 'no row has it'}" for name, ps in sorted(found.items()) if len(ps) != 1]


def main(root, tool):
    root = pathlib.Path(root)
    report = tap.Report()
    page = (root / "docs/pytorch-ops.md").read_text()
    listed = [line.split() for line in (root / "tests/golden/pytorch_op_names.txt").read_text().splitlines()]
    names = {base(name) for name, _ in listed}
    ops = {json.loads(line)["op"] for line in tap.run(tool, "ops", "--json").splitlines()}
    functions = set(re.findall(r"\b(tsr_\w+)\(", "\n".join(header.read_text() for header in tree.headers(root))))
    table = list(rows(page))
    patterns = [pattern for left, _ in table for pattern in left]

    overloads = f"{sum(int(count) for _, count in listed):,}"
    report.check("the page says how many there are", (count for count in (f"{overloads} overloads", f"{len(listed)} names") if count not in page))
    report.check("each op of PyTorch stands in one row", misplaced(names, patterns))
    report.check("no pattern stands twice", (p for p, count in collections.Counter(patterns).items() if count > 1))
    report.check("each row has ops of PyTorch alone", (p for p in patterns if not fnmatch.filter(names, p)))
    same = page[:page.index("## Calls of several ops")]
    report.check("an op of the same name is one of ours", (
        name for left, right in rows(same) if not right for name in left if name not in ops))
    models = page.split("## What models need")[1].split("## Left out")[0]
    ours = [word for _, right in table for word in right] + re.findall(r"`([^`]+)`", models)
    report.check("what stands beside them is an op or a function of ours", (
        word for word in ours if word not in ops and not (word.endswith("()") and word[:-2] in functions)))
    report.finish()


main(*sys.argv[1:])
