#!/usr/bin/env python3
"""One hand in all folders, where clang-format and clang-tidy cannot tell: usage dialect.py SOURCE_ROOT"""
import pathlib
import re
import sys

import tap
import tree

PROSE_COLUMNS = 100
TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.S)
CONDITION = re.compile(r"\b(?:if|while) \(\*?[\w.>\-\[\]]+ != NULL|(?:&&|\|\|) \(*\*?[\w.>\-\[\]]+ != NULL|!= NULL (?:&&|\|\||\?)")
VALUE = re.compile(r"\bsizeof\((\*?[a-z]\w*(?:(?:->|\.)\w+|\[[^\]]*\])*)\)")
BASIC = {"atomic_bool", "char", "short", "int", "long", "unsigned", "signed", "float", "double", "void", "bool", "struct", "const", "typeof"}
NAMED = re.compile(r"^\}\s*(\w+);|typedef [^;{]*?\b(\w+)(?:\([^;]*\)|\[[^;]*\])?;|typedef (?:struct|union|enum) (\w+)|^struct (\w+) ", re.M)
NUMBERED = re.compile(r'" ?PRI[dux]64')


def blank(text):
    """The text without comments and with empty strings, so that lines keep their numbers."""
    return TOKEN.sub(lambda m: '""' if m.group(0)[0] in "\"'" else "\n" * m.group(0).count("\n"), text)


def comments(text):
    """(first line, lines) of each comment that has its lines to itself."""
    lines = text.split("\n")
    for m in TOKEN.finditer(text):
        if m.group(0)[0] != "/":
            continue
        first = text.count("\n", 0, m.start())
        last = text.count("\n", 0, m.end())
        if not lines[first][:m.start() - text.rfind("\n", 0, m.start()) - 1].strip() and not text[m.end():].split("\n", 1)[0].strip():
            yield first + 1, lines[first:last + 1]


def matches(texts, pattern, keep=lambda m: True):
    for path, text in texts.items():
        for m in pattern.finditer(text):
            if keep(m):
                yield f"{path}:{text.count(chr(10), 0, m.start()) + 1}: {m.group(0).strip()}"


def prose(lines):
    """(number, line) of what a page says in sentences: no code, no table, no address on a line of its own."""
    fenced = code = listed = False
    before = ""
    for number, line in enumerate(lines, 1):
        if line.lstrip().startswith("```"):
            fenced = not fenced
        if line.strip():
            indented = line.startswith("    ")
            code = indented and (code or (not before.strip() and not listed))
            listed = bool(re.match(r" *([*-]|\d+\.) ", line)) and not code or (listed and line.startswith(" "))
        before = line
        if not fenced and not code and not line.lstrip().startswith(("|", "<", "#", "![")) and " " in line.strip():
            yield number, line


def main(root):
    root = pathlib.Path(root)
    report = tap.Report()
    texts, pages = {}, {}
    for path in tree.files(root):
        if path.suffix in (".c", ".h", ".cc", ".hpp", ".cu", ".cuh"):
            texts[path.relative_to(root)] = path.read_text()
        elif path.suffix == ".md":
            pages[path.relative_to(root)] = path.read_text().split("\n")
    code = {path: blank(text) for path, text in texts.items()}
    types = BASIC | {name for text in code.values() for found in NAMED.findall(text) for name in found if name}

    report.check("a pointer is tested as p or !p", matches(code, re.compile(r"== NULL\b")))
    report.check("a condition does not compare with NULL", matches(code, CONDITION))
    report.check("sizeof takes a value without parentheses",
                 matches(code, VALUE, lambda m: m.group(1) not in types and not re.fullmatch(r"\w+_t(\[.*)?|MPI_\w+|tsr_\w+|nccl[A-Z]\w+", m.group(1))))
    report.check("64-bit numbers are printed as long long", matches(texts, NUMBERED))
    report.check("comments for the reference stand in headers alone",
                 matches({path: text for path, text in texts.items() if path.suffix in (".c", ".cc", ".cu")}, re.compile(r"/\*\*[ \n<].*")))
    report.check(f"comments have at most {PROSE_COLUMNS} columns",
                 (f"{path}:{first + n}: {len(line)}" for path, text in texts.items() for first, lines in comments(text)
                  for n, line in enumerate(lines) if len(line) > PROSE_COLUMNS))
    report.check(f"include/ has at most {PROSE_COLUMNS} columns",
                 (f"{path}:{n}: {len(line)}" for path, text in texts.items() if path.parts[0] == "include"
                  for n, line in enumerate(text.split("\n"), 1) if len(line) > PROSE_COLUMNS))
    report.check(f"pages have at most {PROSE_COLUMNS} columns of prose",
                 (f"{path}:{n}: {len(line)}" for path, lines in pages.items() for n, line in prose(lines) if len(line) > PROSE_COLUMNS))
    report.finish()


main(*sys.argv[1:])
