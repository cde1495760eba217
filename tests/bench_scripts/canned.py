"""Made-up figures of a run, whose report can be worked out by hand."""
import json

MACHINE = {"kind": "machine", "date": "2026-01-02", "commit": "0123456789ab", "compiler": "cc 12", "buildtype": "release",
           "processor": "Abacus <1>", "cores": 2, "memory_gib": 8.0,
           "system": "Linux 6", "libc": "glibc 2",
           "versions": {"tessera": "tessera 0.1.0", "mpi": None, "torch": "2.0"}}
SECONDS = {"tessera": 1e-6, "tessera-new": 1.25e-6, "tessera-mpi": 2e-6, "mpi": 3e-6, "jax": 74e-6, "pytorch": 600e-6, "memcpy": 0.5e-6,
           "tessera-impi": 2e-6, "impi": 12e-6}
#: What the tool calls the limit, of the rate at which a plain copy makes the payload.
LIMITS = {("S(0)", "S(1)"): 1, ("S(0)", "R"): 4 / 3, ("P", "S(0)"): 2 / 3, ("P", "R"): 1}


def spread(median):
    """A spread with a noise of 2 %."""
    return {"median": median, "min": 0.9 * median, "max": 1.5 * median, "rounds": [0.98 * median, median, 1.02 * median]}


def move(implementation, source, target, size, seconds, **more):
    return {"kind": "move", "from": source, "to": target, "bytes": size, "payload_bytes": size * (2 if target == "R" else 1), "ranks": 2,
            "implementation": implementation, "way": "a", "rounds": 3, "samples": 3, "asked": 3, "wrong": 0, "others": 0.05,
            "began": "2026-01-02T03:04:05", "ended": "2026-01-02T03:04:06", "seconds": spread(seconds), **more}


def limit(source, target, size, copy_seconds):
    """The limit for a best plain copy of `seconds`."""
    peak = size * (2 if target == "R" else 1) / copy_seconds
    whole = {"peak": peak, "limit": LIMITS[source, target] * peak}
    return {**{f"{name}_bandwidth": rate for name, rate in whole.items()},
            **{f"{name}_rounds": [0.99 * rate, rate, 1.01 * rate] for name, rate in whole.items()}}


def lines():
    """Lines of several sizes: times grow with the square root of the size, from those above at 4
    KiB."""
    for size in (1 << 12, 1 << 20, 1 << 28):
        for source, target in (("S(0)", "S(1)"), ("S(0)", "R"), ("P", "S(0)"), ("P", "R")):
            scale = (size / 4096) ** 0.5
            for name, seconds in SECONDS.items():
                measured = limit(source, target, size, SECONDS["memcpy"] * scale) if name == "tessera" else {}
                yield move(name, source, target, size, seconds * scale, **measured)
    yield move("mpi", "S(0)", "S(1)", 1 << 28, 1.0, way="slow")
    yield move("mpi-by-hand", "P", "R", 4096, 4e-6, way="alltoall+add+allgather", others=0.4)
    yield {"kind": "move", "from": "P", "to": "R", "bytes": 4096, "ranks": 2, "implementation": "impi", "way": "b",
           "refused": "there is none, or | another"}
    layers = {"kind": "linear", "tokens": 8, "hidden": 16, "intermediate": 32, "ranks": 2, "implementation": "tessera", "way": "threads",
              "rounds": 3, "samples": 3, "wrong": None, "others": 0.5}
    for one, seconds in (("forward", 2e-3), ("backward", 4e-3)):
        yield {**layers, "pass": one, "seconds": spread(seconds), "gemm_seconds": spread(1e-3)}
    yield {**layers, "implementation": "pytorch", "way": "b", "pass": "forward", "seconds": spread(1e-3), "gemm_seconds": spread(5e-4),
           "began": "2026-01-02T03:10:00", "ended": "2026-01-02T03:10:07", "asked": 5}
    decode = {"kind": "decode", "ranks": 2, "rounds": 3, "samples": 3, "wrong": 0, "others": 0.0}
    yield {**decode, "implementation": "tessera", "way": "threads", "kv_heads": 6, "seconds": spread(1e-4)}
    yield {**decode, "implementation": "transformers", "way": "tp_plan", "kv_heads": 6, "seconds": spread(2e-2)}
    yield {**decode, "ranks": 1, "implementation": "transformers", "way": "plain", "kv_heads": 6, "seconds": spread(3e-3)}
    yield {"kind": "decode", "ranks": 2, "implementation": "transformers", "way": "tp_plan", "kv_heads": 3, "refused": "RuntimeError: no"}


def ops():
    """Lines of ops, which a run may have or not."""
    def op(name, sizes, implementation, seconds, ranks=1, one="forward", **more):
        return {"kind": "ops", "op": name, "sizes": sizes, "pass": one, "ranks": ranks, "implementation": implementation, "way": "a",
                "rounds": 3, "samples": 3, "asked": 3, "wrong": 0, "others": 0.0, "seconds": spread(seconds), **more}

    yield op("add 64 bytes", "16", "tessera", 200e-9)
    yield op("add 64 bytes", "16", "pytorch", 12e-6)
    yield op("softmax", "4x8", "tessera", 1e-3, of_peak={"median": 0.8, "rounds": [0.79, 0.8, 0.81]})
    yield op("softmax", "4x8", "pytorch", 2e-3)
    yield op("softmax", "4x8", "pytorch-plain", 5e-4)
    yield op("softmax", "4x8", "pytorch-plain", 9e-4, way="slow")
    yield op("softmax", "4x8", "tessera", 5e-4, ranks=2)
    yield op("attention", "8x4x64", "tessera", 1e-3, one="backward")
    yield op("attention", "8x4x64", "pytorch-plain", 1.5e-3, one="backward")
    yield op("cross_entropy", "4x9", "tessera", 1e-3)
    yield op("cross_entropy", "4x9", "tessera", 5e-4, ranks=2)


def blocks():
    """Lines of blocks, which a run may have or not."""
    def block(tokens, implementation, seconds, ranks=2, **more):
        return {"kind": "program", "program": "llama-block", "tokens": tokens, "hidden": 256, "heads": 4, "kv_heads": 2, "intermediate": 1024,
                "ranks": ranks, "implementation": implementation, "way": "a", "rounds": 3, "samples": 3, "asked": 3, "wrong": 0, "others": 0.0,
                "seconds": spread(seconds), **more}

    yield block(64, "tessera", 1e-3)
    yield block(64, "pytorch", 2e-3)
    yield block(64, "tessera", 2e-3, ranks=1)
    yield block(64, "pytorch-plain", 1e-3, ranks=1)
    yield block(1, "tessera", 1e-4)
    yield block(1, "pytorch", 3e-3)
    yield block(7, "tessera", 1e-4)


def rows():
    """Lines of rows by id, which a run may have or not."""
    def one(implementation, seconds, ranks=2, op="gather", ids=10000, skew="uniform", **more):
        return {"kind": "rows", "op": op, "rows": 1000, "columns": 64, "ids": ids, "skew": skew, "ranks": ranks, "implementation": implementation,
                "way": "a", "rounds": 3, "samples": 3, "asked": 3, "wrong": 0, "others": 0.0, "seconds": spread(seconds), **more}

    yield one("tessera", 1e-3, of_copy={"median": 0.9, "rounds": [0.89, 0.9, 0.91]})
    yield one("pytorch-gloo", 30e-3)
    yield one("mpi-by-hand", 0.5e-3)
    yield one("tessera-mpi", 2e-3)
    yield one("tessera-mpi", 4e-3, ranks=4)
    yield one("mpi-by-hand", 12e-3, ranks=4)
    yield one("tessera", 2e-3, op="add", of_copy={"median": 0.5, "rounds": [0.49, 0.5, 0.51]})
    yield one("pytorch-gloo", 30e-3, op="add")
    yield one("tessera", 2e-3, op="add", skew="zipf", of_copy={"median": 0.5, "rounds": [0.49, 0.5, 0.51]})
    yield one("tessera", 2e-6, ids=8)


def write(path, chosen=None):
    chosen = [MACHINE, *lines()] if chosen is None else chosen
    path.write_text("".join(json.dumps(line) + "\n" for line in chosen))
    return path
