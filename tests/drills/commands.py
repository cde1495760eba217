"""The tool's commands that drills run in an empty directory, with their output and files."""
import pathlib
import re
import shutil
import struct
import subprocess

SECONDS = 60
WRITTEN = ("out", "shards.out", "o.svg", "o.plan")
MOVE = ["--mesh", "2x2", "--from", "S(0),S(1)", "--to", "P,S(1)"]
COMMANDS = {
    "info": ["info"],
    "info as JSON": ["info", "--json"],
    "layout": ["layout", "--mesh", "dp=2,tp=2", "--shape", "6x8", "--placements", "S(0;interleave=2),S(1)"],
    "layout as JSON": ["layout", "--mesh", "dp=2,tp=2", "--shape", "6x8", "--placements", "S(0;interleave=2),S(1)", "--json"],
    "plan": ["plan", "--mesh", "4x2", "--shape", "64x64", "--from", "S(0),S(1)", "--to", "S(1),S(0)"],
    "plan of a rank": ["plan", "--mesh", "4x2", "--shape", "64x64", "--from", "S(0),S(1)", "--to", "S(1),S(0)", "--rank", "1", "--json", "--svg",
                       "o.svg", "--save", "o.plan"],
    "plan with other ranks": ["plan", "--mesh", "4", "--to-mesh", "4@[2,3,0,1]", "--shape", "8x3", "--from", "S(0)", "--to", "S(0)", "--relabel",
                              "--json"],
    "redistribute": ["redistribute", *MOVE, "--input", "x.npy", "--output", "out"],
    "redistribute as JSON": ["redistribute", *MOVE, "--input", "x.npy", "--output", "out", "--json"],
    "redistribute shards": ["redistribute", "--mesh", "3", "--from", "S(1)", "--to", "R", "--input-shards", "shards", "--output", "shards.out",
                            "--mode", "message"],
}


def npy(shape, data, descr="<f4"):
    """A .npy file, version 1.0."""
    text = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}".encode()
    text += b" " * (-(len(text) + 11) % 64) + b"\n"
    return b"\x93NUMPY\1\0" + struct.pack("<H", len(text)) + text + data


def prepare(tool, directory):
    """Writes x.npy and its shards."""
    (directory / "x.npy").write_bytes(npy((12, 5), struct.pack("<60f", *range(60))))
    subprocess.run([tool, "redistribute", "--mesh", "3", "--from", "S(0)", "--to", "S(1)", "--input", "x.npy", "--output", "shards"], cwd=directory,
                   check=True, stdout=subprocess.DEVNULL)


def files(directory):
    """Returns the files that a command wrote, by name."""
    found = {}
    for name in WRITTEN:
        path = pathlib.Path(directory) / name
        for file in [path] if path.is_file() else sorted(path.rglob("*")):
            found[str(file.relative_to(directory))] = file.read_bytes() if file.is_file() else b""
    return found


def clean(directory):
    for name in WRITTEN:
        path = pathlib.Path(directory) / name
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def without_clock(text):
    """Returns the output of a command without what differs between runs."""
    return re.sub(rb'in [0-9.]+ [mun]?s|"seconds": [0-9.e+-]+|in use: .*|"mem[^,]*|[0-9.]+ of the multiply-adds|"of_machine": [0-9.e+-]+', b"", text)


def told_in_a_line(done, *statuses):
    """Returns what is wrong with a refused run, or None. It has to end with one of the statuses and
    one line on standard error."""
    if done.returncode not in statuses:
        return f"exit status {done.returncode}: {done.stderr[-200:]!r}"
    if done.stderr.count(b"\n") != 1 or not done.stderr.startswith(b"tessera: ") or len(done.stderr) < 12:
        return f"exit status {done.returncode}, and not one line: {done.stderr[:200]!r}"
    return None
