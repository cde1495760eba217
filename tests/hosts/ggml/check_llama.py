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


def check(said, good, remark=""):
    print("ok" if good else "not ok", "-", said, remark, flush=True)


def main(program, folder):
    gguf = pathlib.Path(folder) / "shakespeare.gguf"
    subprocess.run([sys.executable, ROOT / "tests/hosts/ggml/to_gguf.py", MODEL, gguf], check=True)
    expected = json.loads((MODEL / "expected.json").read_text())
    layers = json.loads((MODEL / "config.json").read_text())["num_hidden_layers"]
    case = next(case for case in expected["cases"] if case["prompt"] == expected["logits_of"])
    wanted = reference()
    bound = 1e-4 * max(abs(value) for row in wanted for value in row)

    plain, tokens, _ = run(program, gguf, "plain", 0, case["prompt_ids"])
    difference = largest_difference(plain, wanted)
    check("llama.cpp's CPU backend has PyTorch's logits within 1e-4 of the largest, and its tokens",
          difference <= bound and tokens == case["ids"], f"# {difference:.2g} of {bound:.2g}")

    # Tensor splits need flash attention, which rounds keys and values to f16. Where sums in another order round to the other
    # neighbour, logits change by less than this rounding itself does.
    one, tokens, _ = run(program, gguf, "cpu", 0, case["prompt_ids"])
    bound = largest_difference(one, plain)
    check("with flash attention its tokens are the same", tokens == case["ids"], f"# logits differ by {bound:.2g}")
    for way, devices in (("layer", 2), ("tensor", 1)):
        logits, tokens, sums = run(program, gguf, way, devices, case["prompt_ids"])
        check(f"{way} split over {devices} devices: the CPU backend's bits", logits == one and tokens == case["ids"] and sums == 0)
    for devices in (2, 3, 4, 7, 16):
        logits, tokens, sums = run(program, gguf, "tensor", devices, case["prompt_ids"])
        difference = largest_difference(logits, one)
        # Every layer has two sums for the prompt, and two for each token.
        check(f"tensor split over {devices} devices: logits within the rounding of flash attention, the same tokens, sums by the library",
              difference <= bound and tokens == case["ids"] and sums >= 2 * layers * (MORE + 1), f"# {difference:.2g} of {bound:.2g}, {sums} sums")
    for case in expected["cases"]:
        _, tokens, _ = run(program, gguf, "tensor", 4, case["prompt_ids"])
        check(f"tensor split over 4 devices: {case['prompt']!r} goes on as with PyTorch", tokens == case["ids"])


if __name__ == "__main__":
    main(*sys.argv[1:])
