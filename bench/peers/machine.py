"""What a run is of: the machine, and the versions of all that was measured. Facts that a command cannot tell are null."""
import datetime
import os
import platform
import subprocess


def said(*command):
    """The first line that a command prints, or null."""
    try:
        lines = subprocess.run([str(word) for word in command], capture_output=True, text=True, timeout=60).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired):
        return None
    return lines[0].strip() if lines else None


def field(path, name):
    try:
        with open(path) as lines:
            return next((line.split(":", 1)[1].strip() for line in lines if line.startswith(name)), None)
    except OSError:
        return None


def memory_gib():
    text = field("/proc/meminfo", "MemTotal")
    return round(int(text.split()[0]) / 2**20, 1) if text else None


def describe(build, venv, mpirun):
    packages = ("torch", "jax", "jaxlib", "transformers", "numpy")
    listed = "import importlib.metadata as m; print(*(m.version(p) for p in %r))" % (packages,)
    versions = (said(venv / "bin" / "python", "-c", listed) or "").split()
    return {
        "kind": "machine", "date": datetime.date.today().isoformat(), "processor": field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)), "memory_gib": memory_gib(),
        "system": f"{platform.system()} {platform.release()}", "libc": " ".join(platform.libc_ver()),
        "versions": {"tessera": said(build / "tools" / "tessera", "--version"), "mpi": said(mpirun, "--version") if mpirun else None,
                     "python": platform.python_version(), **dict(zip(packages, versions))},
    }
