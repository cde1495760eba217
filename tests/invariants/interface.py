#!/usr/bin/env python3
"""Every public function is documented and tested: usage interface.py SOURCE_ROOT"""
import pathlib
import re
import sys

import tap
import tree

DECLARATION = re.compile(r"^TSR_API[^;]*?\b(tsr_\w+)\([^;]*;[^\n]*", re.M)


def functions(header):
    """(name, documented): documented if a comment is above the declaration, above its group of
    lines, or behind it."""
    text = header.read_text()
    for match in DECLARATION.finditer(text):
        paragraph = text[:match.start()].rsplit("\n\n", 1)[-1]
        yield match.group(1), "*/" in paragraph or "/**<" in match.group(0)


def main(root):
    root = pathlib.Path(root)
    report = tap.Report()
    for header in tree.headers(root):
        name = header.relative_to(root / "include")
        report.check(f"<{name}> begins with what it is for", [] if header.read_text().startswith("/**") else ["no comment on top"])
        report.check(f"<{name}> documents every function", (f for f, documented in functions(header) if not documented))
    named = set()
    for path in tree.files(root, ".c"):
        if path.relative_to(root).parts[0] == "tests":
            named.update(re.findall(r"\btsr_\w+", path.read_text()))
    known = [name for header in tree.headers(root) for name, _ in functions(header)]
    report.check("every public function is called by a test", (name for name in known if name not in named))
    report.finish()


main(*sys.argv[1:])
