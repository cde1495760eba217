#!/usr/bin/env python3
"""Every public header stands alone: usage headers.py SOURCE_ROOT CC [CXX..]"""
import itertools
import pathlib
import re
import subprocess
import sys

import tap
import tree

WARNINGS = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]
CXX_STANDARDS = ["-std=c++17", "-std=c++20"]
CXX_WARNINGS = ["-Wzero-as-null-pointer-constant", "-Wold-style-cast", "-Wsign-conversion", "-Wconversion", "-Wshadow"]
INITIALIZER = re.compile(r"^#define (TSR_\w+_INIT)\b.*?sizeof\((\w+)\)", re.M | re.S)
CONSTANT = re.compile(r"^#define (TSR_\w+) (?:\S+)$", re.M)


def uses(header):
    """A statement for each initializer and constant that a header defines: warnings of macros come where they are used."""
    text = header.read_text()
    for name, of in INITIALIZER.findall(text):
        yield f"    const {of} use_{name.lower()} = {name};\n    static_cast<void>(use_{name.lower()});\n"
    for name in CONSTANT.findall(text):
        if name not in ("TSR_API", "TSR_NULL"):
            yield f"    auto use_{name.lower()} = {name};\n    static_cast<void>(use_{name.lower()});\n"


def complaints(compiler, language, include, name, body=""):
    source = f"#include <{name}>\n#include <{name}>\nint tsr_anything;\n{body}"
    command = [*compiler.split(), *language, *WARNINGS, "-I", include, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return [done.stderr] if done.returncode else []


def main(root, cc, *cxx):
    include = pathlib.Path(root) / "include"
    report = tap.Report()
    for header in tree.headers(root):
        name = header.relative_to(include)
        report.check(f"<{name}> compiles alone, twice, as C99", complaints(cc, ["-x", "c", "-std=c99"], include, name))
        body = "void tsr_use();\nvoid tsr_use()\n{\n" + "".join(uses(header)) + "}\n"
        for compiler in cxx:
            report.check(f"<{name}> compiles alone, twice, as C++ without warnings by {pathlib.Path(compiler).name}",
                         complaints(compiler, ["-x", "c++", "-std=c++11", *CXX_WARNINGS], include, name, body))
        if not cxx:
            report.skip(f"<{name}> compiles alone, twice, as C++", "there is no C++ compiler")
    for header in sorted(include.rglob("*.hpp")):
        name = header.relative_to(include)
        for compiler in cxx[:1]:
            report.check(f"<{name}> compiles alone, twice, without warnings",
                         complaints(compiler, ["-x", "c++", CXX_STANDARDS[0], *CXX_WARNINGS], include, name))
    # Templates are checked where they are used.
    program = (pathlib.Path(root) / "tests/cpp/test_cpp.cc").read_text()
    for compiler, standard in itertools.product(cxx, CXX_STANDARDS):
        report.check(f"a program that uses <tessera/tessera.hpp> compiles without warnings by {pathlib.Path(compiler).name} {standard}",
                     complaints(compiler, ["-x", "c++", standard, *CXX_WARNINGS], include, "tessera/tessera.hpp", program))
    installed = (include / "meson.build").read_text()
    report.check("every public header is installed",
                 (path.name for path in [*tree.headers(root), *include.rglob("*.hpp")] if f"'{path.relative_to(include)}'" not in installed))
    report.finish()


main(*sys.argv[1:])
