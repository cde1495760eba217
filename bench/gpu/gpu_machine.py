"""Facts for a report of scripts/gpu-check: the machine, and the versions of what ran. Unknown facts
are null."""
import ctypes
import os
import pathlib
import platform
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "peers"))
import machine as host  # noqa: E402


def missing():
    """The reason why there is no GPU to check on, by the driver itself, before anything is built;
    None if there is one."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        return f"there is no GPU to check on: the driver's library cannot be opened ({error})"
    count = ctypes.c_int(0)
    error = driver.cuInit(0) or driver.cuDeviceGetCount(ctypes.byref(count))
    if error != 0:
        return f"there is no GPU to check on: the driver gives error {error}"
    return None if count.value > 0 else "there is no GPU to check on: the driver sees none"


def commit(root):
    name = host.said("git", "-C", root, "rev-parse", "HEAD")
    changed = host.said("git", "-C", root, "status", "--porcelain", "--untracked-files=no")
    return name and name + (" with changes" if changed else "")


def describe(place):
    info = place.tool_json("info")
    cuda = next(row for row in info["devices"] if row["name"] == "cuda")
    nccl = next(row for row in info["engines"] if row["name"] == "nccl")
    return {
        "gpus": cuda["gpus"], "reason": cuda["reason"],
        "driver": host.said("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"),
        "versions": {"tessera": info["version"], "cuda_runtime": cuda["runtime"], "cuda_driver": cuda["driver"], "nccl": nccl["version"],
                     "cublaslt": cuda["cublaslt"],
                     "nvcc": (place.said_last("nvcc", "--version") or None), "cc": host.said("cc", "--version"), "python": platform.python_version()},
        "processor": host.field("/proc/cpuinfo", "model name"), "cores": len(os.sched_getaffinity(0)), "memory_gib": host.memory_gib(),
        "system": f"{platform.system()} {platform.release()}",
    }
