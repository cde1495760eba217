"""Facts of a run: the machine, the sources, and the versions of what was measured. Unknown facts
are null."""
import datetime
import glob
import json
import os
import pathlib
import platform
import subprocess
import time

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACKAGES = ("torch", "jax", "jaxlib", "transformers", "numpy")


def output_of(*command):
    try:
        return subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""


def said(*command):
    """The first line that a command prints; None if there is none."""
    lines = output_of(*command).splitlines()
    return lines[0].strip() if lines else None


def field(path, name):
    try:
        with open(path) as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)
    except OSError:
        return None


def contents(path):
    try:
        return pathlib.Path(path).read_text().strip()
    except OSError:
        return None


def objects(text, kind):
    """The JSON value in `text` if it is of type `kind`, else an empty one."""
    try:
        found = json.loads(text or "null")
    except ValueError:
        return kind()
    return found if isinstance(found, kind) else kind()


def memory_gib():
    text = field("/proc/meminfo", "MemTotal")
    return round(int(text.split()[0]) / 2**20, 1) if text else None


def caches():
    """The caches of the first core: each one's level, type and size, and the cores that share
    it."""
    for folder in sorted(glob.glob("/sys/devices/system/cpu/cpu0/cache/index*")):
        level, kind, size = (contents(f"{folder}/{name}") for name in ("level", "type", "size"))
        shared = contents(f"{folder}/shared_cpu_list")
        if level and kind and size:
            yield f"L{level} {kind.lower()} {size}" + (f" (cores {shared})" if shared else "")


def threads_per_core():
    listed = contents("/sys/devices/system/cpu/cpu0/topology/thread_siblings_list")
    if not listed:
        return None
    ends = [[int(end) for end in part.split("-")] for part in listed.split(",")]
    return sum(part[-1] - part[0] + 1 for part in ends)


def commit():
    """The commit of the sources, with " with changes" after it if tracked files differ."""
    name = said("git", "-C", ROOT, "rev-parse", "--short=12", "HEAD")
    changed = output_of("git", "-C", ROOT, "status", "--porcelain", "--untracked-files=no")
    return name and name + (" with changes" if changed.strip() else "")


def built(build):
    """The compiler and the build type of a build directory."""
    options = {one["name"]: one["value"] for one in objects(contents(build / "meson-info" / "intro-buildoptions.json"), list)}
    return {"compiler": field(build / "meson-logs" / "meson-log.txt", "C compiler for the host machine:"),
            "buildtype": options.get("buildtype")}


def mpi_version(mpirun):
    """The first line of `mpirun --version` with a digit, without MPICH's "Version:"."""
    lines = (line.strip() for line in output_of(mpirun, "--version").splitlines() if any(letter.isdigit() for letter in line))
    return next(lines, "").removeprefix("Version:").strip() or None


def versions(tool, venv, mpis):
    listed = "import importlib.metadata as m; print(*(m.version(p) for p in %r))" % (PACKAGES,)
    packages = ((venv and said(venv / "bin" / "python", "-c", listed)) or "").split()
    return {"tessera": said(tool, "--version"), **{name: mpi_version(mpirun) for name, mpirun in mpis},
            "python": platform.python_version(), **dict(zip(PACKAGES, packages))}


def clock(seconds=None):
    """Local time in the format of lines; now, without `seconds`."""
    return time.strftime("%Y-%m-%dT%H:%M:%S", time.localtime(seconds))


def describe(build, venv=None, mpis=()):
    """The line about the machine. `venv` is the virtual environment of the peers in Python; `mpis`
    are pairs (name, mpirun)."""
    tool = build / "tools" / "tessera"
    info = objects(output_of(tool, "info", "--json"), dict)
    host = next((device for device in info.get("devices", []) if device["name"] == "host"), {})
    return {
        "kind": "machine", "date": datetime.date.today().isoformat(), "commit": commit(), **built(build),
        "kernels": host.get("kernels"), "blas": info.get("blas"), "processor": field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)), "threads_per_core": threads_per_core(), "caches": list(caches()), "memory_gib": memory_gib(),
        "system": f"{platform.system()} {platform.release()}", "libc": " ".join(platform.libc_ver()),
        "versions": versions(tool, venv, mpis),
    }
