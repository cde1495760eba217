#!/usr/bin/env python3
"""Calls the module of TVM-FFI with tensors of NumPy, PyTorch and JAX.

usage: check_module.py LIBTESSERA_TVM.so
"""
import ctypes
import os
import pathlib
import random
import sys
import threading

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "invariants"))
import jax  # noqa: E402
import jax_tvm_ffi  # noqa: E402
import numpy  # noqa: E402
import tap  # noqa: E402
import torch  # noqa: E402
import tvm_ffi  # noqa: E402

module = tvm_ffi.load_module(sys.argv[1])
RANKS = 4


def parts(layout, whole):
    """Each rank's part of a tensor."""
    boxes = ((module.local_offset(layout, rank), module.local_shape(layout, rank)) for rank in range(RANKS))
    return [whole[tuple(slice(begin, begin + length) for begin, length in zip(*box))] for box in boxes]


def same(found, wanted):
    for rank, (one, other) in enumerate(zip(found, wanted)):
        if numpy.asarray(one).tobytes() != numpy.ascontiguousarray(other).tobytes():
            raise ValueError(f"rank {rank} has {one}, not {other}")


def numbers(shape, dtype="float32"):
    return numpy.arange(int(numpy.prod(shape)), dtype=dtype).reshape(shape)


def layouts(mesh, shape, dtype, source, destination):
    return module.layout(mesh, shape, dtype, source), module.layout(mesh, shape, dtype, destination)


def on_threads(move, sources, destinations):
    threads = [threading.Thread(target=module.run_rank, args=(move, rank, sources[rank], destinations[rank])) for rank in range(RANKS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def moves_of_numpy():
    draw, ranks = random.Random(7), module.ranks(RANKS)
    for _ in range(50):
        shape = tuple(draw.randint(1, 9) for _ in range(2))
        words = [",".join(draw.choice(("R", "S(0)", "S(1)", "S(0;balanced)")) for _ in range(2)) for _ in range(2)]
        dtype = draw.choice(("float64", "float32", "int16", "bool"))
        source, destination = layouts("2x2", shape, dtype, *words)
        whole = numbers(shape).astype(dtype)
        given, wanted = parts(source, whole), parts(destination, whole)
        for one_call in (True, False):
            room = [numpy.zeros_like(part) for part in wanted]
            move = module.move(ranks, source, destination)
            if one_call:
                module.run(move, given, room)
            else:
                on_threads(move, given, room)
            same(room, wanted)


def moves_of_pytorch():
    ranks = module.ranks(RANKS)
    source, destination = layouts("2x2", (8, 6), torch.bfloat16, "S(0),R", "S(1),S(0)")
    whole = torch.arange(48).reshape(8, 6).to(torch.bfloat16)
    given = parts(source, whole)  # strided views are read in place
    room = [torch.zeros((6, 8), dtype=torch.bfloat16).T[:part.shape[0], :part.shape[1]] for part in parts(destination, whole)]
    module.redistribute(ranks, source, destination, given, room)
    for rank, wanted in enumerate(parts(destination, whole)):
        if not torch.equal(room[rank], wanted):
            raise ValueError(f"rank {rank} has {room[rank]}, not {wanted}")
    # A sum over ranks: terms of P become the whole on every rank.
    source, destination = layouts("4", (5,), "f32", "P", "R")
    terms, sums = [torch.full((5,), float(rank)) for rank in range(RANKS)], [torch.empty(5) for _ in range(RANKS)]
    on_threads(module.move(ranks, source, destination), terms, sums)
    same(sums, [numpy.full(5, 6, "float32")] * RANKS)


def moves_inside_jax():
    """Four devices of one compiled program meet in a custom call, whose rank is an operand."""
    ranks = module.ranks(RANKS)
    source, destination = layouts("x=4", (8, 12), "f32", "S(0)", "S(1)")
    jax_tvm_ffi.register_ffi_target("tessera_rows_to_columns", module.bind(module.move(ranks, source, destination)), platform="cpu")
    mesh = jax.make_mesh((RANKS,), ("x",))
    rows, columns = jax.sharding.PartitionSpec("x", None), jax.sharding.PartitionSpec(None, "x")

    def turn(part):
        call = jax.ffi.ffi_call("tessera_rows_to_columns", jax.ShapeDtypeStruct((8, 3), part.dtype), has_side_effect=True)
        return call(jax.lax.axis_index("x").reshape(1), part)

    turned = jax.jit(jax.shard_map(turn, mesh=mesh, in_specs=rows, out_specs=columns, check_vma=False))
    whole = numbers((8, 12))
    for step in range(20):
        same([turned(jax.device_put(whole + step, jax.NamedSharding(mesh, rows)))], [whole + step])


def texts_and_plans():
    layout = module.layout("dp=2,tp=2", (6, 8), torch.float16, "PartitionSpec('dp', 'tp')", "jax")
    for text, name in (("S(0),S(1)", "tessera"), ("{devices=[2,2]<=[4]}", "hlo"), ("(Shard(dim=0), Shard(dim=1))", "torch")):
        if module.print_layout(layout, name) != text:
            raise ValueError(f"{name}: {module.print_layout(layout, name)}")
    source, destination = layouts("4", (8, 8), "f32", "S(0)", "R")
    plan = module.plan(source, destination, 2)
    again = module.load_plan(bytes(module.save_plan(plan)), 2)
    for one in (plan, again):
        if tuple(module.plan_bytes(one)) != (192, 192) or tuple(module.plan_messages(one)) != (3, 3):
            raise ValueError(module.describe_plan(one))


pointer, python = ctypes.c_void_p, ctypes.pythonapi
core = ctypes.CDLL("libtessera-core.so.0")  # which the module has loaded
core.tsr_dlpack_exchange_api.restype = pointer
core.tsr_dlpack_object_create.argtypes, core.tsr_dlpack_object_destroy.argtypes = [pointer, pointer, pointer], [pointer]
core.tsr_status_message.restype = ctypes.c_char_p
python.PyCapsule_New.restype, python.PyCapsule_New.argtypes = ctypes.py_object, [pointer, ctypes.c_char_p, pointer]
python.PyCapsule_GetPointer.restype, python.PyCapsule_GetPointer.argtypes = pointer, [ctypes.py_object, ctypes.c_char_p]
python.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
EXCHANGE, USED = ctypes.c_char_p(b"dlpack_exchange_api"), ctypes.c_char_p(b"used_dltensor_versioned")


class Table(ctypes.Structure):
    """DLPackExchangeAPI; the two functions of an object are wrapped below."""
    of_object = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, pointer)
    _fields_ = [("version", ctypes.c_uint32 * 2), ("previous", pointer), ("allocate", pointer), ("managed_from_object", of_object),
                ("managed_to_object", pointer), ("tensor_from_object", of_object), ("current_stream", pointer)]


def wrapped(name):
    """The library's function, of a Held instead of its tsr_dlpack_object."""
    address = ctypes.cast(getattr(Table.from_address(core.tsr_dlpack_exchange_api()), name), pointer).value
    function = ctypes.PYFUNCTYPE(ctypes.c_int, pointer, pointer)(address)
    return Table.of_object(lambda held, out: calls.append(name) or function(held.handle, out))


calls = []
own_table = Table.from_buffer_copy(ctypes.string_at(core.tsr_dlpack_exchange_api(), ctypes.sizeof(Table)))
own_table.managed_from_object, own_table.tensor_from_object = wrapped("managed_from_object"), wrapped("tensor_from_object")


class Held:
    """A binding's tensor, which holds a tsr_dlpack_object; consumers find the table on the type."""
    __dlpack_c_exchange_api__ = python.PyCapsule_New(ctypes.addressof(own_table), EXCHANGE, None)

    def __init__(self, array):
        capsule = array.__dlpack__(max_version=(1, 0))
        self.handle = pointer()
        if core.tsr_dlpack_object_create(None, python.PyCapsule_GetPointer(capsule, b"dltensor_versioned"), ctypes.byref(self.handle)):
            raise ValueError(core.tsr_status_message().decode())
        python.PyCapsule_SetName(capsule, USED)

    def __del__(self):
        core.tsr_dlpack_object_destroy(self.handle)


def objects_are_read_through_our_table():
    ranks = module.ranks(RANKS)
    source, destination = layouts("4", (8, 8), "f32", "S(0)", "S(1)")
    whole = numbers((8, 8))
    given, room = parts(source, whole), [numpy.zeros((8, 2), "float32") for _ in range(RANKS)]
    move = module.move(ranks, source, destination)
    held = [Held(part) for part in given], [Held(part) for part in room]
    module.run(move, *held)
    same(room, parts(destination, whole))
    on_threads(move, [Held(part * 2) for part in given], held[1])
    same(room, [part * 2 for part in parts(destination, whole)])
    if "managed_from_object" not in calls and "tensor_from_object" not in calls:
        raise ValueError("TVM-FFI has not used the table")


def errors_have_pythons_kinds():
    ranks = module.ranks(RANKS)
    source, destination = layouts("4", (8, 8), "f32", "S(0)", "R")
    move = module.move(ranks, source, destination)
    given, room = [numpy.zeros((2, 8), "float32") for _ in range(RANKS)], [numpy.zeros((8, 8), "float32") for _ in range(RANKS)]
    tap.refused(ValueError, "shard dim 2", module.layout, "4", (8, 8), "f32", "S(2)")
    tap.refused(TypeError, "layout: argument 1, mesh, is int", module.layout, 4, (8, 8), "f32", "R")
    tap.refused(ValueError, "rank 1: src is of f64", module.run, move, [given[0], given[1].astype("float64"), *given[2:]], room)
    tap.refused(TypeError, "sources[2] is ffi.SmallStr", module.run, move, [given[0], given[1], "x", given[3]], room)
    tap.refused(ValueError, "3 destinations: there must be one for each of 4 ranks", module.run, move, given, room[:3])
    tap.refused(RuntimeError, "knows sums of terms alone", module.print_layout, module.layout("4", (8,), "f32", "P(max)"), "hlo")
    module.run(move, given, room)


tap.run_cases(texts_and_plans, moves_of_numpy, moves_of_pytorch, moves_inside_jax, objects_are_read_through_our_table, errors_have_pythons_kinds)
