#!/usr/bin/env python3
"""Rules for the text of sources: usage sources.py SOURCE_ROOT"""
import pathlib
import re
import sys

import tap
import tree

TEXT = (".c", ".h", ".cc", ".hpp", ".cmake", ".in", ".cu", ".cuh", ".py", ".sh", ".md", ".build", ".txt", ".1", "")
MACHINE = re.compile("|".join(["/" + "work/", "/" + "root/", "/" + r"home/\w", "/" + "tmp/build"]))
UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b")
FILE_LINES, FUNCTION_LINES = 600, 80


def functions(lines):
    """(first line, length) of every function, which a brace in column 0 opens and the next such
    brace closes."""
    begin = None
    for number, line in enumerate(lines, 1):
        if line == "{":
            begin = number
        elif line == "}" and begin is not None:
            yield begin, number - begin - 1
            begin = None


def main(root):
    root = pathlib.Path(root)
    report = tap.Report()
    texts = {}
    for path in tree.files(root):
        if path.suffix in TEXT and "corpus" not in path.parts:
            try:
                texts[path.relative_to(root)] = path.read_text().split("\n")
            except UnicodeDecodeError:
                pass
    code = {path: lines for path, lines in texts.items() if path.suffix in (".c", ".h", ".cc", ".hpp", ".cu", ".cuh")}

    def matching(pattern):
        return (f"{path}:{n}: {line.strip()}" for path, lines in texts.items() for n, line in enumerate(lines, 1) if pattern.search(line))

    report.check("no line names a place on somebody's machine", matching(MACHINE))
    report.check("nothing is left unfinished", matching(UNFINISHED))
    report.check(f"no source file has more than {FILE_LINES} lines", (path for path, lines in code.items() if len(lines) > FILE_LINES + 1))
    report.check(f"no function has more than {FUNCTION_LINES} lines",
                 (f"{path}:{n}: {length}" for path, lines in code.items() for n, length in functions(lines) if length > FUNCTION_LINES))
    report.check("no line ends in spaces", (f"{path}:{n}" for path, lines in texts.items() for n, line in enumerate(lines, 1)
                                            if line != line.rstrip() and path.suffix != ".md"))
    report.finish()


main(*sys.argv[1:])
