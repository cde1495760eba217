#!/usr/bin/env python3
"""Every public header stands alone: usage headers.py SOURCE_ROOT CC [CXX]"""
import pathlib
import subprocess
import sys

import tap
import tree

WARNINGS = ["-pedantic-errors", "-Wall", "-Wextra", "-Werror", "-fsyntax-only"]


def complaints(compiler, language, include, name):
    source = f"#include <{name}>\n#include <{name}>\nint tsr_anything;\n"
    command = [*compiler.split(), *language, *WARNINGS, "-I", include, "-"]
    done = subprocess.run(command, input=source, capture_output=True, text=True)
    return [done.stderr] if done.returncode else []


def main(root, cc, cxx=None):
    include = pathlib.Path(root) / "include"
    report = tap.Report()
    for header in tree.headers(root):
        name = header.relative_to(include)
        report.check(f"<{name}> compiles alone, twice, as C99", complaints(cc, ["-x", "c", "-std=c99"], include, name))
        fact = f"<{name}> compiles alone, twice, as C++"
        if cxx:
            report.check(fact, complaints(cxx, ["-x", "c++", "-std=c++11"], include, name))
        else:
            report.skip(fact, "there is no C++ compiler")
    installed = (include / "meson.build").read_text()
    report.check("every public header is installed",
                 (path.name for path in tree.headers(root) if f"'{path.relative_to(include)}'" not in installed))
    report.finish()


main(*sys.argv[1:])
