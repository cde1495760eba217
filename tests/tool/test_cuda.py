#!/usr/bin/env python3
"""The CUDA fields of `tessera info`, with and without the CUDA library. usage: test_cuda.py TOOL
CORE_LIBRARY [CUDA_LIBRARY]"""
import os
import pathlib
import re
import shutil
import sys

import harness

tool = harness.Tool(sys.argv[1])
libraries = pathlib.Path(sys.argv[2]).resolve().parent
built = len(sys.argv) > 3


def rows(**options):
    found = tool.json("info", **options)
    return ({row["name"]: row for row in found["devices"]}["cuda"], {row["name"]: row for row in found["engines"]}["nccl"])


def device():
    cuda, nccl = rows()
    wrong = harness.different("a reason is given where there is no device", bool(cuda["reason"]), cuda["count"] == 0)
    wrong += harness.different("there is a row a GPU", len(cuda["gpus"]), cuda["count"])
    wrong += harness.different("kernels", cuda["kernels"], None)
    wrong += harness.different("nccl is available where there are GPUs", nccl["available"], cuda["count"] > 0)
    for index, gpu in enumerate(cuda["gpus"]):
        wrong += harness.different("a GPU reaches itself", index in gpu["reaches"], True)
        wrong += harness.different("fields", sorted(gpu), ["compute_capability", "memory_bytes", "multiprocessors", "name", "reaches"])
    if not built:
        wrong += harness.different("reason", cuda["reason"], "built without CUDA: there is no libtessera-cuda")
    wrong += harness.different("so is cuBLASLt's", bool(re.fullmatch(r"\d+\.\d+\.\d+", cuda["cublaslt"] or "")), built)
    return wrong + harness.different("the runtime's version is known where it is built", bool(re.fullmatch(r"\d+\.\d", cuda["runtime"] or "")), built)


def refused(reason, tool, **options):
    """Without a GPU every command that needs one fails with the reason that info gives, before it
    does anything."""
    move = ["--mesh", "2", "--shape", "4", "--from", "R", "--to", "S(0)"]
    for command in (["bench", "redistribute", *move], ["bench", "dispatch", *move],
                    ["redistribute", *move[:2], *move[4:], "--input", tool.folder / "none.npy", "--output", tool.folder / "out"]):
        tool.refuses(1, [*command, "--device", "cuda"], ["--device cuda", reason], **options)
        tool.refuses(1, [*command, "--engine", "nccl"], ["--engine nccl", reason], **options)


def without_library():
    """Copies the tool and the other libraries, as if libtessera-cuda were not installed."""
    place = tool.folder / "bin"
    place.mkdir()
    for path in libraries.glob("libtessera*.so.0"):
        if "cuda" not in path.name:
            os.symlink(path, place / path.name)
    shutil.copy(tool.path, place / "tessera")
    alone = harness.Tool(str(place / "tessera"))
    alone.report = tool.report
    found = alone.json("info", env={**os.environ, "LD_LIBRARY_PATH": str(place)})
    cuda = {row["name"]: row for row in found["devices"]}["cuda"]
    refused(cuda["reason"], alone, env={**os.environ, "LD_LIBRARY_PATH": str(place)})
    wrong = harness.different("the library is named", "libtessera-cuda" in cuda["reason"], True)
    return wrong + harness.different("versions", (cuda["count"], cuda["runtime"], cuda["driver"], cuda["cublaslt"]), (0, None, None, None))


def words():
    done = tool.run("info")
    return harness.different("cuda has a line", bool(re.search(r"^  cuda     \S", done.stdout, re.M)), True)


here = rows()[0]
if here["count"] == 0:
    refused(here["reason"], tool)
tool.case("info says how many GPUs there are, or why none", device)
tool.case("info says that the library is missing", without_library)
tool.case("people read of CUDA too", words)
tool.report.finish()
