#!/usr/bin/env python3
"""Runs the programs of docs/tvm.md, each in a process of its own, and compares what they print.

usage: check_page.py LIBTESSERA_TVM.so
"""
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "invariants"))
import tap  # noqa: E402

page = pathlib.Path(__file__).resolve().parents[3] / "docs" / "tvm.md"
programs = re.findall(r"^```python\n(.*?)^```\n```text\n(.*?)^```$", page.read_text(), re.M | re.S)
folder = str(pathlib.Path(sys.argv[1]).resolve().parent)
surroundings = dict(os.environ, LD_LIBRARY_PATH=os.pathsep.join(filter(None, (folder, os.environ.get("LD_LIBRARY_PATH")))))


def case(number, text, wanted):
    def program():
        done = subprocess.run([sys.executable, "-c", text], env=surroundings, capture_output=True, text=True, timeout=120)
        if done.stdout != wanted:
            raise ValueError(f"it printed\n{done.stdout}{done.stderr}".replace("\n", "\n# "))
    program.__name__ = f"program {number} of docs/tvm.md"
    return program


tap.run_cases(*(case(number, *program) for number, program in enumerate(programs, 1)))
