#!/usr/bin/env python3
"""The tool with a device in a shared object. usage: test_plugged.py TOOL DEVICE OTHER

DEVICE is a shared object with a device called queue, OTHER one without devices.
"""
import pathlib
import sys
import tempfile

import harness

tool = harness.Tool(sys.argv[1])
device, other = sys.argv[2], sys.argv[3]
MOVE = ["--mesh", "3", "--from", "S(0)", "--to", "S(1)"]


def redistribute(place):
    """The results equal the host's byte for byte."""
    file = place / "x.npy"
    harness.write_npy(file, "<f4", (7, 5), [float(value) for value in range(35)])
    for folder, where in (("host", []), ("device", ["--device", device])):
        tool.json("redistribute", *MOVE, "--input", file, "--output", place / folder, *where)
    files = [{path.name: path.read_bytes() for path in (place / folder).iterdir()} for folder in ("host", "device")]
    return harness.different("files", files[1], files[0])


def bench():
    answer = tool.json("bench", "redistribute", *MOVE, "--shape", "64x48", "--device", device, "--iterations", 2)
    line = answer[0] if isinstance(answer, list) else answer
    return harness.different("the device has its own name", (line["device"], line["wrong"]), ("queue", 0))


def refusals():
    for path, said in (("./nothing.so", "nothing.so"), (other, "it exports no function tessera_device")):
        tool.refuses(1, ["bench", "redistribute", *MOVE, "--shape", "8x8", "--device", path], ["--device", said])
    tool.refuses(2, ["bench", "redistribute", *MOVE, "--shape", "8x8", "--device", "libqueue.so"],
                 ["--device 'libqueue.so' is not known; a shared object is given by a path, such as ./libqueue.so"])
    return []


with tempfile.TemporaryDirectory() as folder:
    tool.case("tensors move on a device of a shared object as on the host", redistribute, pathlib.Path(folder))
tool.case("its moves are measured and right", bench)
tool.case("what has no device is refused", refusals)
tool.report.finish()
