#!/usr/bin/env python3
"""docs/tour.md has every source of src/, and no other: usage tour.py SOURCE_ROOT

A heading with the name of a folder of src/ begins its table; a row begins with the name of a file.
A header has a row if there is no source of its name."""
import pathlib
import re
import sys

import tap
import tree

FOLDER = re.compile(r"^#+ .*`(src/[\w/]+)`")
ROW = re.compile(r"^\| `([\w.]+)` \| (.*) \|$")


def rows(page):
    """(path, description) of every row."""
    folder = None
    for line in page.read_text().splitlines():
        if line.startswith("#"):
            found = FOLDER.match(line)
            folder = found.group(1) if found else None
        elif folder and (found := ROW.match(line)):
            yield f"{folder}/{found.group(1)}", found.group(2)


def main(root):
    root = pathlib.Path(root)
    report = tap.Report()
    paths = [path for path in tree.files(root, ".c", ".h", ".cu", ".cuh") if path.relative_to(root).parts[0] == "src"]
    sources = {str(path.relative_to(root)) for path in paths if path.suffix != ".h" or not path.with_suffix(".c").exists()}
    told = list(rows(root / "docs" / "tour.md"))
    report.check("docs/tour.md has a row for every source of src/", sorted(sources - {path for path, _ in told}))
    report.check("docs/tour.md has no row for a source that is not there, and none twice",
                 [path for at, (path, _) in enumerate(told) if path not in sources or path in {other for other, _ in told[:at]}])
    report.check("each row of docs/tour.md is a sentence", (f"{path}: {does}" for path, does in told if not re.match(r"[A-Z`].*\.$", does)))
    report.finish()


main(*sys.argv[1:])
