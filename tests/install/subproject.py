#!/usr/bin/env python3
"""The Meson project of docs/cpp.md builds with Tessera as a subproject, and runs. TAP.

usage: subproject.py MESON SOURCE_ROOT
"""
import pathlib
import re
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402


def said(*command):
    """What a command prints, or prints until it fails."""
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}")
    return done.stdout


def blocks(source):
    """The program of the page, the project, and what the program prints."""
    text = (source / "docs" / "cpp.md").read_text()
    program, output = re.search(r"^```cpp\n(.*?)^```\n\n```output\n(.*?)^```", text, re.M | re.S).groups()
    return program, re.search(r"^```meson\n(.*?)^```", text, re.M | re.S).group(1), output


def build(meson, source, place):
    """The program's output, and the targets that the project builds."""
    program, project, _ = blocks(source)
    (place / "mlp.cpp").write_text(program)
    (place / "meson.build").write_text(project)
    (place / "subprojects").mkdir()
    (place / "subprojects" / "tessera").symlink_to(source)
    # Without optimisation this takes seconds, and no engine is needed.
    said(*meson.split(), "setup", place / "build", place, "--force-fallback-for=tessera", "-Dtessera:buildtype=debug", "-Dtessera:cuda=disabled",
         "-Dtessera:mpi=disabled")
    said("ninja", "-C", place / "build", "-j2", "mlp")
    return said(place / "build" / "mlp"), said("ninja", "-C", place / "build", "-t", "targets", "all")


def main(meson, source):
    report = tap.Report()
    with tempfile.TemporaryDirectory() as place:
        try:
            printed, targets = build(meson, pathlib.Path(source), pathlib.Path(place))
        except RuntimeError as error:
            printed, targets = str(error), ""
    expected = blocks(pathlib.Path(source))[2]
    report.check("the Meson project of docs/cpp.md builds and runs", [] if printed == expected else [printed])
    report.check("a subproject has no tests and no tool", re.findall(r"^subprojects/tessera/(?:tests|tools)/.*?: .*LINKER$", targets, re.M))
    report.finish()


main(*sys.argv[1:])
