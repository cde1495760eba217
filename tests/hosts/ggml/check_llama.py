#!/usr/bin/env python3
"""llama.cpp with its tensors split over the library's devices: the logits and tokens of the trained
model of examples/llama.

usage: check_llama.py PROGRAM FOLDER    (test-ggml-llama; where it may write the model as GGUF)
"""
import json
import pathlib
import re
import struct
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parents[3]
MODEL = ROOT / "examples/llama/shakespeare"
MORE = 96


def reference():
    """PyTorch's logits of the model's folder, one list a token."""
    data = (MODEL / "logits.npy").read_bytes()
    rows, columns = map(int, re.search(rb"'shape': \((\d+), (\d+)\)", data[:128]).groups())
    values = struct.unpack(f"<{rows * columns}f", data[-4 * rows * columns:])
    return [values[columns * i:columns * (i + 1)] for i in range(rows)]


def run(program, gguf, way, devices, tokens):
    words = [str(word) for word in tokens]
    printed = subprocess.run([program, gguf, way, str(devices), str(MORE)] + words, check=True, capture_output=True, text=True).stdout
    lines = [line.split() for line in printed.splitlines()]
    logits = [[float(word) for word in line[1:]] for line in lines if line[0] == "logits"]
    return logits, [int(word) for word in lines[-2][1:]], int(lines[-1][1])


def largest_difference(a, b):
    return max(abs(x - y) for row, other in zip(a, b, strict=True) for x, y in zip(row, other, strict=True))


def check(number, said, good, remark=""):
    print(("ok" if good else "not ok"), number, said, remark, flush=True)


def main(program, folder):
    gguf = pathlib.Path(folder) / "shakespeare.gguf"
    subprocess.run([sys.executable, ROOT / "tests/hosts/ggml/to_gguf.py", MODEL, gguf], check=True)
    expected = json.loads((MODEL / "expected.json").read_text())
    wanted = reference()
    bound = 1e-4 * max(abs(value) for row in wanted for value in row)
    cases = {case["prompt"]: case for case in expected["cases"]}
    main_case = cases[expected["logits_of"]]
    one, tokens, _ = run(program, gguf, "cpu", 0, main_case["prompt_ids"])
    difference = largest_difference(one, wanted)
    check(1, "llama.cpp's CPU backend has PyTorch's logits within 1e-4 of the largest, and its tokens",
          difference <= bound and tokens == main_case["ids"], f"# {difference:.2g} of {bound:.2g}")
    number = 1
    for way, devices in (("layer", 2), ("tensor", 1), ("tensor", 2), ("tensor", 3), ("tensor", 4), ("tensor", 7), ("tensor", 16)):
        logits, tokens, sums = run(program, gguf, way, devices, main_case["prompt_ids"])
        difference = largest_difference(logits, one)
        same = logits == one
        number += 1
        # One device, or one after the other, computes what the CPU backend does; every layer has two sums for each batch.
        layers = json.loads((MODEL / "config.json").read_text())["num_hidden_layers"]
        added = sums == 0 if way == "layer" or devices == 1 else sums >= 2 * layers * (MORE + 1)
        good = tokens == main_case["ids"] and added and (same if way == "layer" or devices == 1 else difference <= bound)
        check(number, f"{way} split over {devices} devices: {'the same logits' if same else 'logits within 1e-4 of the largest'}, and the same tokens",
              good, f"# {difference:.2g} of {bound:.2g}, {sums} sums")
    for prompt, case in cases.items():
        number += 1
        check(number, f"{prompt!r} goes on as with PyTorch, split over 4 devices", run(program, gguf, "tensor", 4, case["prompt_ids"])[1] == case["ids"])


if __name__ == "__main__":
    main(*sys.argv[1:])
