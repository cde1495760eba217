"""Runs the tool, reads and writes .npy files without NumPy, and computes expected shards from
explicit index lists."""
import ast
import itertools
import json
import math
import os
import pathlib
import struct
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import tap  # noqa: E402

MAGIC = b"\x93NUMPY"
FORMATS = {"<f8": "d", "<f4": "f", "<i8": "q", "<i4": "i", "<i2": "h", "|i1": "b", "<u8": "Q", "<u4": "I", "<u2": "H", "|u1": "B",
           "|b1": "?", ">i4": "i", ">f8": "d", ">u2": "H"}


class Tool:
    """The built tool, a folder for its files, and a report of the cases."""

    def __init__(self, path):
        self.path = path
        self.report = tap.Report()
        self.place = tempfile.TemporaryDirectory()
        self.folder = pathlib.Path(self.place.name)

    def run(self, *arguments, **options):
        # Of what hangs: nothing here takes so long, under a sanitizer on a busy machine either.
        options.setdefault("timeout", 900)
        if "mpi" in arguments:
            # What an MPI leaves behind is its own, and LeakSanitizer would tell of it.
            options.setdefault("env", {**os.environ, "LSAN_OPTIONS": "detect_leaks=0"})
        return subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, **options)

    def json(self, *arguments, **options):
        done = self.run(*arguments, "--json", **options)
        if done.returncode != 0 or done.stderr:
            raise AssertionError(f"{shown(arguments)}: exit status {done.returncode}, {done.stderr.strip()}")
        return json.loads(done.stdout)

    def has_engine(self, name):
        return next(engine["available"] for engine in self.json("info")["engines"] if engine["name"] == name)

    def refuses(self, status, arguments, mentions=(), **options):
        """One case: the tool ends with `status`, prints one line `tessera: SENTENCE` to standard
        error, and nothing to standard output."""
        done = self.run(*arguments, **options)
        wrong = []
        if done.returncode != status:
            wrong.append(f"exit status {done.returncode}")
        if done.stdout:
            wrong.append(f"standard output: {done.stdout}")
        if not done.stderr.startswith("tessera: ") or done.stderr.count("\n") != 1 or len(done.stderr) < 20:
            wrong.append(f"standard error: {done.stderr}")
        wrong += [f"{word!r} is not in: {done.stderr}" for word in mentions if word not in done.stderr]
        self.report.check(f"exit status {status}: {shown(arguments)}", wrong)

    def case(self, fact, attempt, *arguments, **options):
        """One case: `attempt` raises nothing, and returns a list of what is wrong."""
        try:
            self.report.check(fact, attempt(*arguments, **options))
        except Exception as error:
            self.report.check(fact, [f"{type(error).__name__}: {error}"])


def thinned(cases, by):
    """All cases, or under sanitizers each `by`th: these look for what every case would show, and each case starts the tool."""
    return list(cases)[::by if os.environ.get("TSR_TEST_THIN") else 1]


def left_out_thinned(cases):
    """All cases, or under sanitizers none: of large cases, which smaller ones stand for there."""
    return [] if os.environ.get("TSR_TEST_THIN") else list(cases)


def shown(arguments):
    words = (str(a).replace("\n", "\\n") for a in arguments)
    return "tessera " + " ".join(f"'{word}'" if set("();[ ") & set(word) or not word else word for word in words)


def different(what, found, wanted):
    return [] if found == wanted else [f"{what}: {found!r} instead of {wanted!r}"]


def header(descr, shape, version=1, fortran=False, spaces=0):
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {tuple(shape)!r}, }}" + " " * spaces + "\n"
    return MAGIC + bytes([version, 0]) + struct.pack("<H" if version == 1 else "<I", len(text)) + text.encode()


def pack(descr, elements):
    order = ">" if descr[0] == ">" else "<"
    return struct.pack(f"{order}{len(elements)}{FORMATS[descr]}", *elements)


def write_npy(path, descr, shape, elements, **options):
    path.write_bytes(header(descr, shape, **options) + pack(descr, elements))


def read_npy(path):
    """(descr, shape, elements) of a file that must be version 1.0, C order, and as long as it says."""
    data = path.read_bytes()
    assert data[:8] == MAGIC + b"\x01\x00", data[:8]
    length = struct.unpack("<H", data[8:10])[0]
    assert (10 + length) % 64 == 0, f"the elements begin at {10 + length}"
    facts = ast.literal_eval(data[10:10 + length].decode())
    assert set(facts) == {"descr", "fortran_order", "shape"} and facts["fortran_order"] is False, facts
    count = math.prod(facts["shape"])
    body = data[10 + length:]
    wanted = struct.calcsize(f"<{count}{FORMATS[facts['descr']]}")
    assert len(body) == wanted, f"{len(body)} bytes of elements instead of {wanted}"
    return facts["descr"], facts["shape"], list(struct.unpack(f"<{count}{FORMATS[facts['descr']]}", body))


def cut(indices, parts, part, placement):
    """Returns the indices that part `part` of `parts` gets of a list under S(d), S(d;balanced) or
    S(d;interleave=2)."""
    if placement.endswith("interleave=2)"):
        half = -(-len(indices) // 2)
        plain = placement.replace(";interleave=2", "")
        return cut(indices[:half], parts, part, plain) + cut(indices[half:], parts, part, plain)
    if placement.endswith("balanced)"):
        size, more = divmod(len(indices), parts)
        begin = part * size + min(part, more)
        return indices[begin:begin + size + (part < more)]
    chunk = -(-len(indices) // parts)
    return indices[chunk * part:chunk * (part + 1)]


def owned(shape, mesh, placements, coordinate):
    """The indices along each dim that a coordinate owns."""
    dims = [list(range(size)) for size in shape]
    for parts, part, placement in zip(mesh, coordinate, placements):
        if placement.startswith("S"):
            dim = int(placement[2])
            dims[dim] = cut(dims[dim], parts, part, placement)
    return dims


def select(shape, elements, dims):
    """The elements of a row-major tensor at the product of index lists."""
    chosen = []
    for index in itertools.product(*dims):
        at = 0
        for size, i in zip(shape, index):
            at = at * size + i
        chosen.append(elements[at])
    return chosen


def coordinates(mesh):
    return list(itertools.product(*map(range, mesh)))
