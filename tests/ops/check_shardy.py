#!/usr/bin/env python3
"""jaxlib parses the Shardy text of every row's rule, for all shapes that the proof draws. TAP.

Skipped where neither python3, nor that of build-peers (scripts/bench-peers), has jaxlib.

usage: check_shardy.py SOURCE_ROOT PROOF LIST..
"""
import os
import pathlib
import subprocess
import sys
import tempfile

ROOT, PROOF, LISTS = pathlib.Path(sys.argv[1]).resolve(), sys.argv[2], sys.argv[3:]
sys.path.insert(0, str(ROOT / "tests" / "invariants"))
import tap  # noqa: E402

PARSE = """
import sys
from jax._src.interpreters import mlir
from jaxlib.mlir import ir
with mlir.make_ir_context():
    for line in sys.stdin:
        text = line.rstrip("\\n")
        try:
            if str(ir.Attribute.parse(text)) != text:
                print(text, "is printed as", ir.Attribute.parse(text))
        except Exception as error:
            print(text, str(error).replace("\\n", " "))
"""


def has_jaxlib(python):
    try:
        return subprocess.run([python, "-c", "import jax, jaxlib.mlir.dialects.sdy"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def find_python():
    candidates = [os.environ.get("TSR_JAX_PYTHON"), sys.executable, ROOT / "build-peers" / "venv" / "bin" / "python"]
    return next((python for python in candidates if python and has_jaxlib(python)), None)


def write_texts(name):
    """The texts of a list of rows, each once."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "texts"
        subprocess.run([PROOF, name], env={**os.environ, "TSR_SHARDY_TEXTS": str(path)}, capture_output=True, check=True)
        return sorted({line.split(" ", 1)[1] for line in path.read_text().splitlines()}) if path.exists() else []


def unless_any(texts):
    return [] if texts else ["the proof wrote no texts"]


def main():
    report = tap.Report()
    python = find_python()
    for name in LISTS:
        if not python:
            report.skip(f"jaxlib parses the rules of {name}", "jaxlib is not installed")
            continue
        texts = write_texts(name)
        answer = tap.run(python, "-c", PARSE, input="\n".join(texts) + "\n" if texts else "")
        report.check(f"jaxlib parses the rules of {name} ({len(texts)} texts)", answer.splitlines() or unless_any(texts))
    report.finish()


main()
