"""What the tests of tessera-llama share: cases in TAP, running the program, reading and writing its files. Standard library only."""
import json
import os
import pathlib
import shutil
import struct
import subprocess
import sys
import tempfile

PROGRAM = sys.argv[1]
SHAKESPEARE = pathlib.Path(sys.argv[2])
TIMEOUT = 120

cases = []

#: True if a sanitizer is built in, which ends the program where malloc() would return NULL.
SANITIZED = any(name in pathlib.Path(PROGRAM).read_bytes() for name in (b"__asan_init", b"__tsan_init"))


class Skip(Exception):
    """Raised by a case that cannot run here, with the reason."""



def case(sentence):
    """Names a test by the fact that it proves. It gets an empty directory, and fails by an exception."""
    def add(function):
        cases.append((sentence, function))
        return function
    return add


def run_cases():
    failed = 0
    print(f"1..{len(cases)}")
    for number, (sentence, function) in enumerate(cases, 1):
        directory = pathlib.Path(tempfile.mkdtemp(prefix="tessera-llama-"))
        try:
            function(directory)
            print(f"ok {number} - {sentence}", flush=True)
        except Skip as reason:
            print(f"ok {number} - {sentence} # SKIP {reason}", flush=True)
        except Exception as error:  # a case fails by whatever it raises, and the others go on
            failed += 1
            print(f"not ok {number} - {sentence}")
            for line in f"{type(error).__name__}: {error}".splitlines():
                print(f"# {line}", flush=True)
        finally:
            shutil.rmtree(directory)
    sys.exit(failed > 0)


def expect(condition, *said):
    if not condition:
        raise AssertionError(" ".join(str(part) for part in said))


def run(*arguments, **options):
    if "mpi" in arguments:
        # What an MPI leaves behind is its own, and LeakSanitizer would tell of it.
        options.setdefault("env", {**os.environ, "LSAN_OPTIONS": "detect_leaks=0"})
    return subprocess.run([PROGRAM, *map(str, arguments)], stdin=subprocess.DEVNULL, capture_output=True, timeout=TIMEOUT, **options)


def command(arguments):
    return " ".join(["tessera-llama", *map(str, arguments)])


def answer(*arguments):
    """The JSON object of a run that must succeed."""
    done = run(*arguments, "--json")
    expect(done.returncode == 0, command(arguments), "exits", done.returncode, done.stderr.decode(errors="replace"))
    return json.loads(done.stdout)


def refused(code, *arguments, says=(), **options):
    """A run that must fail with `code`, one line on standard error that says so, and nothing on standard output."""
    done = run(*arguments, **options)
    error = done.stderr.decode(errors="replace")
    expect(done.returncode == code, command(arguments), "exits", done.returncode, "not", code, error)
    expect(done.stdout == b"", command(arguments), "prints", done.stdout[:200])
    expect(error.startswith("tessera: ") and error.count("\n") == 1 and error.endswith("\n"), command(arguments), "says", repr(error))
    for part in [says] if isinstance(says, str) else says:
        expect(part in error, command(arguments), "says", repr(error), "without", repr(part))


def ids_text(ids):
    return ",".join(map(str, ids))


def read_npy(path):
    """Shape and values of an f32 .npy file in C order."""
    data = pathlib.Path(path).read_bytes()
    expect(data[:8] == b"\x93NUMPY\x01\x00", path, "is no .npy file of format 1.0")
    length, = struct.unpack_from("<H", data, 8)
    header = eval(data[10:10 + length], {"__builtins__": {}})
    expect(header["descr"] == "<f4" and not header["fortran_order"], path, "has header", header)
    count = (len(data) - 10 - length) // 4
    return tuple(header["shape"]), struct.unpack_from(f"<{count}f", data, 10 + length)


def largest_difference(a, b):
    expect(len(a) == len(b), "lengths", len(a), len(b))
    return max(abs(x - y) for x, y in zip(a, b))


def pack(values, dtype):
    """f32 values as the bytes of a tensor. bf16 values must have their lower half zero (see round_to())."""
    if dtype == "BF16":
        return b"".join(struct.pack("<f", v)[2:] for v in values)
    return struct.pack(f"<{len(values)}{'e' if dtype == 'F16' else 'f'}", *values)


def round_to(value, dtype):
    """A value that the dtype holds exactly; bf16 by cutting, which is as good as rounding for tests."""
    if dtype == "BF16":
        return struct.unpack("<f", b"\0\0" + struct.pack("<f", value)[2:])[0]
    letter = "<e" if dtype == "F16" else "<f"
    return struct.unpack(letter, struct.pack(letter, value))[0]


def write_safetensors(path, tensors):
    """`tensors`: name -> (dtype, shape, bytes)."""
    header, at = {"__metadata__": {"format": "pt"}}, 0
    for name, (dtype, shape, data) in tensors.items():
        header[name] = {"dtype": dtype, "shape": list(shape), "data_offsets": [at, at + len(data)]}
        at += len(data)
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    pathlib.Path(path).write_bytes(struct.pack("<Q", len(text)) + text + b"".join(data for _, _, data in tensors.values()))
