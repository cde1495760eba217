#!/usr/bin/env python3
"""Pages quote sources as they are, and docs/add-an-op.md's own lines use what the named files have. TAP.

usage: quotes.py SOURCE_ROOT

A block fenced as text, or as C in examples, is in the file of the last link to a source before it. An indented block is for the last `src/..`, `include/..` or `tests/..` file
named before it: each word in capitals, and each word before a parenthesis, is in that file already, but for those of the example, cube.
"""
import pathlib
import re
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402

PAGE = "docs/add-an-op.md"
EXAMPLE = "examples/runtime/README.md"


def quotes(folder, text, fence, link):
    """Blocks that their file lacks."""
    for match in re.finditer(rf"^```{fence}\n(.*?)^```$", text, re.M | re.S):
        target = re.findall(rf"\]\(({link})\)", text[:match.start()])[-1]
        if match.group(1) not in (folder / target).read_text():
            yield f"{target} lacks\n{match.group(1)}"


def strangers(root, text):
    """Names in indented lines that their file lacks, and files that are not there."""
    for line in re.finditer(r"^    (.*[({[].*)$", re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S), re.M):
        before = line.string[:line.start()]
        path = re.findall(r"`((?:src|include|tests)/[\w/]+\.[ch])`|(examples/custom_op/rows\.c)", before)[-1]
        name = next(filter(None, path))
        source = (root / name).read_text() if (root / name).is_file() else ""
        for word in re.findall(r"\b[A-Z_]{3,}\b|\.\w+(?= =)", line.group(1)):
            if "CUBE" not in word and word not in source:
                yield f"{name} lacks {word}"


def main(root):
    root = pathlib.Path(root)
    report = tap.Report()
    text = (root / PAGE).read_text()
    report.check(f"{PAGE} quotes files as they are", quotes(root / "docs", text, "text", r"[^)]+"))
    example = root / EXAMPLE
    report.check(f"{EXAMPLE} quotes files as they are", quotes(example.parent, example.read_text(), "C", r"\w+\.c"))
    xla = (root / "docs/xla.md").read_text()
    for fence in ("mlir", "C"):
        report.check(f"docs/xla.md quotes files as they are: {fence}", quotes(root / "docs", xla, fence, r"[^)]+\.(?:mlir|c)"))
    report.check(f"{PAGE} adds lines of words that the files have", strangers(root, text))
    report.finish()


main(*sys.argv[1:])
