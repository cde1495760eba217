"""A run that nobody measured: small figures whose report can be worked out by hand."""
import json

MACHINE = {"kind": "machine", "date": "2026-01-02", "processor": "Abacus <1>", "cores": 2, "memory_gib": 8.0,
           "system": "Linux 6", "libc": "glibc 2",
           "versions": {"tessera": "tessera 0.1.0", "mpi": None, "torch": "2.0"}}
SECONDS = {"tessera": 1e-6, "mpi": 3e-6, "jax": 74e-6, "pytorch": 600e-6, "memcpy": 0.5e-6}


def spread(median):
    return {"median": median, "min": 0.9 * median, "max": 1.5 * median}


def move(implementation, source, target, size, seconds, **more):
    return {"kind": "move", "from": source, "to": target, "bytes": size, "payload_bytes": size * (2 if target == "R" else 1), "ranks": 2,
            "implementation": implementation, "way": "a", "rounds": 3, "samples": 3, "wrong": 0, "others": 0.25,
            "seconds": spread(seconds), **more}


def lines():
    """Times grow with the square root of the size, from those above at 4 KiB."""
    for size in (1 << 12, 1 << 20, 1 << 28):
        for source, target in (("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")):
            for name, seconds in SECONDS.items():
                yield move(name, source, target, size, seconds * (size / 4096) ** 0.5)
    yield move("mpi", "S(0)", "S(1)", 1 << 28, 1.0, way="slow")
    layers = {"kind": "linear", "tokens": 8, "hidden": 16, "intermediate": 32, "ranks": 2, "implementation": "tessera", "way": "threads",
              "rounds": 3, "samples": 3, "wrong": None, "others": 0.5}
    for one, seconds in (("forward", 2e-3), ("backward", 4e-3)):
        yield {**layers, "pass": one, "seconds": spread(seconds), "gemm_seconds": spread(1e-3)}
    decode = {"kind": "decode", "ranks": 2, "rounds": 3, "samples": 3, "wrong": 0, "others": 0.0}
    yield {**decode, "implementation": "tessera", "way": "threads", "kv_heads": 6, "seconds": spread(1e-4)}
    yield {**decode, "implementation": "transformers", "way": "tp_plan", "kv_heads": 6, "seconds": spread(2e-2)}
    yield {"kind": "decode", "ranks": 2, "implementation": "transformers", "way": "tp_plan", "kv_heads": 3, "refused": "RuntimeError: no"}


def write(path, chosen=None):
    chosen = [MACHINE, *lines()] if chosen is None else chosen
    path.write_text("".join(json.dumps(line) + "\n" for line in chosen))
    return path
