#!/usr/bin/env python3
"""The collectives of TVM's Disco over rank threads, compared with NumPy.

usage: check_disco.py LIBTESSERA_TVM.so
"""
import ctypes
import importlib.util
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "invariants"))
import numpy  # noqa: E402
import tap  # noqa: E402
import tvm_ffi  # noqa: E402

# TVM 0.27 looks for Disco's functions before it loads the library that has them.
libraries = pathlib.Path(importlib.util.find_spec("tvm").origin).parent / "lib"
ctypes.CDLL(str(libraries / "libtvm_runtime.so"), ctypes.RTLD_GLOBAL)
ctypes.CDLL(str(libraries / "libtvm_runtime_extra.so"))

import tvm.runtime  # noqa: E402
from tvm.runtime import disco  # noqa: E402

WORKERS, GROUPS = 4, 2
module = tvm_ffi.load_module(sys.argv[1])
module.register_ccl()
init_ccl = tvm_ffi.get_global_func("runtime.disco.tessera.init_ccl")


def session(workers=WORKERS, groups=GROUPS):
    made = disco.ThreadedSession(num_workers=workers, num_groups=groups)
    init_ccl(made, tvm_ffi.Shape([]))
    return made


def spread(made, arrays):
    """A tensor of which each worker has an array; None leaves a worker's alone."""
    some = next(array for array in arrays if array is not None)
    spread_out = made.empty(some.shape, str(some.dtype))
    for worker, array in enumerate(arrays):
        if array is not None:
            spread_out.debug_copy_from(worker, array)
    return spread_out


def expect(spread_out, wanted):
    for worker, array in enumerate(wanted):
        found = spread_out.debug_get_from_remote(worker).numpy()
        if array is not None and found.tobytes() != numpy.ascontiguousarray(array).tobytes():
            raise ValueError(f"worker {worker} has {found}, not {array}")


def draw(seed, shape, dtype="float32", count=WORKERS):
    random = numpy.random.default_rng(seed)
    return [random.integers(-9, 9, shape).astype(dtype) for _ in range(count)]


def groups_of(arrays, in_group):
    """The arrays of each worker's group."""
    size = WORKERS // GROUPS if in_group else WORKERS
    return [arrays[worker // size * size:worker // size * size + size] for worker in range(WORKERS)]


def allreduce():
    made = session()
    words = {"sum": sum, "prod": numpy.prod, "min": numpy.min, "max": numpy.max, "avg": numpy.mean}
    for dtype in ("float32", "float64", "int32"):
        for op, function in words.items():
            if op == "avg" and dtype == "int32":
                continue
            for in_group in (False, True):
                arrays = draw(1, (3, 5), dtype)
                send, receive = spread(made, arrays), made.empty((3, 5), dtype)
                made.allreduce(send, receive, op, in_group)
                expect(receive, [numpy.asarray(function(group) if op == "sum" else function(group, axis=0), dtype) for group in groups_of(arrays, in_group)])
                made.allreduce(send, send, op, in_group)
                expect(send, [numpy.asarray(function(group) if op == "sum" else function(group, axis=0), dtype) for group in groups_of(arrays, in_group)])


def allgather():
    made = session()
    for in_group in (False, True):
        arrays = draw(2, (2, 3))
        receive = made.empty((2 * (WORKERS // GROUPS if in_group else WORKERS), 3), "float32")
        made.allgather(spread(made, arrays), receive, in_group)
        expect(receive, [numpy.concatenate(group) for group in groups_of(arrays, in_group)])


def broadcast_scatter_gather():
    made = session()
    for in_group in (False, True):
        size = WORKERS // GROUPS if in_group else WORKERS
        arrays = draw(3, (2, 2))
        receive = made.empty((2, 2), "float32")
        made.broadcast_from_worker0(spread(made, arrays), receive, in_group)
        expect(receive, [group[0] for group in groups_of(arrays, in_group)])
        wholes = draw(4, (size, 2, 2))
        made.scatter_from_worker0(spread(made, wholes), receive, in_group)
        expect(receive, [wholes[worker // size * size][worker % size] for worker in range(WORKERS)])
        gathered = made.empty((size, 2, 2), "float32")
        made.gather_to_worker0(spread(made, arrays), gathered, in_group)
        expect(gathered, [numpy.stack(group) if worker % size == 0 else None for worker, group in enumerate(groups_of(arrays, in_group))])
    # From and to the controller's own arrays.
    whole = draw(5, (WORKERS, 3))[0]
    expect(made.scatter(whole, in_group=False), list(whole))
    expect(made.broadcast(whole, in_group=False), [whole] * WORKERS)


@tvm_ffi.register_global_func("tests.disco.hand_on")
def hand_on(buffer):
    """Workers call different functions: from group to group, from the last to the first, and on."""
    worker = tvm_ffi.get_global_func("runtime.disco.worker_rank")()
    disco_function = {name: tvm_ffi.get_global_func("runtime.disco." + name)
                      for name in ("send_to_next_group", "recv_from_prev_group", "send_to_worker", "recv_from_worker", "recv_from_worker0")}
    disco_function["send_to_next_group" if worker < 2 else "recv_from_prev_group"](buffer)
    if worker == 3:
        disco_function["send_to_worker"](buffer, 0)
    elif worker == 0:
        disco_function["recv_from_worker"](buffer, 3)
        disco_function["send_to_worker"](buffer, 2)
    elif worker == 2:
        disco_function["recv_from_worker0"](buffer)


def messages():
    made = session()
    arrays = draw(6, (7,))
    buffer = spread(made, arrays)
    made.get_global_func("tests.disco.hand_on")(buffer)
    expect(buffer, [arrays[1], arrays[1], arrays[1], arrays[1]])


def several_sessions():
    for workers, groups in ((1, 1), (2, 1), (6, 3)):
        made = session(workers, groups)
        arrays = draw(8, (4,), count=workers)
        receive = made.empty((4,), "float32")
        for _ in range(50):
            made.allreduce(spread(made, arrays), receive, "sum", False)
        expect(receive, [sum(arrays)] * workers)
        made.shutdown()


def other_sessions_are_refused():
    tap.refused(TypeError, "must be runtime.disco.ThreadedSession", init_ccl, tvm_ffi.Shape([1]), tvm_ffi.Shape([]))
    tap.refused(RuntimeError, "not a worker", tvm_ffi.get_global_func("runtime.disco.tessera.recv_from_worker0"), numpy.zeros(3))


tap.run_cases(allreduce, allgather, broadcast_scatter_gather, messages, several_sessions, other_sessions_are_refused)
