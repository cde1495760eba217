#!/usr/bin/env python3
"""Functions of src/ are declared in the header of their file, and files do not call one another in
circles: usage declarations.py SOURCE_ROOT

A file, FOLDER/NAME, is NAME.c with NAME.h. The public headers in include/ declare functions of any
file."""
import re
import sys

import tap
import tree

COMMENT = re.compile(r"/\*.*?\*/|//[^\n]*", re.S)
STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')
KERNEL = re.compile(r"\bKERNEL\((\w+)\)")
NAME = re.compile(r"\b(?!__attribute__\b)(\w+)\s*\(")
MACRO_CALL = re.compile(r"^[A-Z][A-Z_]*\([^;{]*?\)$", re.M)
WORD = re.compile(r"\b[A-Za-z_]\w*\b")

# Allowed circles of files, each a sorted list, with a reason in docs/adr/0026-calls-go-one-way.md.
# There is none.
CIRCLES = []


def code(path):
    """The text without comments, strings and directives, KERNEL(name) as one word."""
    text = STRING.sub('""', COMMENT.sub(" ", path.read_text())).replace("\\\n", " ")
    return KERNEL.sub(r"KERNEL_\1", MACRO_CALL.sub("", re.sub(r"^[ \t]*#[^\n]*", "", text, flags=re.M)))


def pieces(text):
    """The pieces at file level: (words before a brace or semicolon, that character)."""
    depth, begin = 0, 0
    for at, character in enumerate(text):
        if character == "{":
            if depth == 0:
                yield text[begin:at], "{"
            depth += 1
        elif character == "}":
            depth -= 1
            begin = at + 1 if depth == 0 else begin
        elif character == ";" and depth == 0:
            yield text[begin:at], ";"
            begin = at + 1


def functions(text, end):
    """The names of functions defined (`end` is "{") or declared (`end` is ";"), static ones
    separate."""
    for head, ended in pieces(text):
        words = re.sub(r"__attribute__\s*\(\(.*?\)\)", "", head).strip()
        found = NAME.search(words)
        if ended == end and found and "=" not in words and not re.match(r"(static|typedef|extern \"\"|_Static_assert)\b", words):
            yield found.group(1)


def circles(calls):
    """The sets of two or more files that call one another in a circle, directly or not (Tarjan)."""
    index, low, stack, found = {}, {}, [], []

    def visit(file):
        index[file] = low[file] = len(index)
        stack.append(file)
        for other in calls[file]:
            if other not in index:
                visit(other)
            if other in stack:
                low[file] = min(low[file], low[other])
        if low[file] == index[file]:
            at = stack.index(file)
            found.append(stack[at:])
            del stack[at:]

    for file in sorted(calls):
        if file not in index:
            visit(file)
    return [circle for circle in found if len(circle) > 1]


def main(root):
    sys.setrecursionlimit(10000)
    report = tap.Report()
    source = tree.pathlib.Path(root) / "src"
    files = {path: str(path.relative_to(source).with_suffix("")) for path in tree.files(root, ".c", ".h") if source in path.parents}
    texts = {path: code(path) for path in files}
    public = {name for path in tree.headers(root) for name in NAME.findall(code(path))}
    homes = {name: files[path] for path in files if path.suffix == ".c" for name in functions(texts[path], "{")}
    declared = {(name, files[path]) for path in files if path.suffix == ".h" for name in functions(texts[path], ";")}
    own = {name: file for name, file in homes.items() if name not in public}
    report.check("a function of src/ is declared in the header of its own file",
                 (f"{name} of {file}.c" for name, file in sorted(own.items())
                  if (name, file) not in declared))
    report.check("a header of src/ declares functions of its own file alone",
                 (f"{file}.h: {name} of {homes.get(name, 'no file')}" for name, file in sorted(declared)
                  if homes.get(name) != file))
    calls = {file: set() for file in files.values()}
    for path, file in files.items():
        calls[file] |= {homes[word] for word in WORD.findall(texts[path]) if word in homes and homes[word] != file
                        and (path.suffix == ".c" or (word, file) not in declared)}
    found = [sorted(circle) for circle in circles(calls)]
    report.check("no calls between files of src/ go round, but where an ADR says why",
                 (" ".join(circle) for circle in found if circle not in CIRCLES))
    report.check("each circle that an ADR defends is there", (" ".join(circle) for circle in CIRCLES if circle not in found))
    report.finish()


main(*sys.argv[1:])
