#!/usr/bin/env python3
"""Compares sharding texts with jaxlib and PyTorch themselves, on seeded layouts.

usage: sharding.py LIBTESSERA_CORE [LAYOUTS]

For each layout: our HLO text is the one that JAX's NamedSharding gives, XLA and Shardy parse our texts
to theirs, each rank owns what JAX and PyTorch say that it owns, and their texts give the layout back.
"""
import ctypes
import itertools
import os
import random
import sys

os.environ["JAX_NUM_CPU_DEVICES"] = "24"
import jax  # noqa: E402
import numpy  # noqa: E402
from jax._src.interpreters import mlir  # noqa: E402
from jax._src.lib import xla_client  # noqa: E402
from jax._src.lib.mlir import ir  # noqa: E402
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec  # noqa: E402
from torch.distributed.tensor import Partial, Replicate, Shard  # noqa: E402
from torch.distributed.tensor._utils import _compute_local_shape_and_global_offset  # noqa: E402

FORMATS = ["tessera", "hlo1", "hlo", "hlo3", "sdy", "jax", "torch", "sbp", "tf", "mlir"]
TSR_OK, TSR_F32 = 0, 1
int64 = ctypes.c_int64


class Tessera:
    """The calls of libtessera-core that this needs."""

    def __init__(self, path):
        self.library = ctypes.CDLL(path)
        self.library.tsr_status_message.restype = ctypes.c_char_p
        self.f32 = ctypes.c_int()
        assert self.library.tsr_dtype_parse(b"f32", ctypes.byref(self.f32)) == TSR_OK

    def check(self, status):
        if status != TSR_OK:
            raise ValueError(self.library.tsr_status_message().decode())

    def mesh(self, text):
        mesh = ctypes.c_void_p()
        self.check(self.library.tsr_mesh_parse(None, None, text.encode(), ctypes.byref(mesh)))
        return mesh

    def parse(self, form, text, mesh, shape):
        layout = ctypes.c_void_p()
        self.check(self.library.tsr_sharding_parse(FORMATS.index(form), text.encode(), mesh, len(shape), (int64 * max(len(shape), 1))(*shape),
                                                   self.f32, ctypes.byref(layout)))
        return layout

    def print(self, layout, form):
        length, text = ctypes.c_size_t(), ctypes.create_string_buffer(4096)
        self.check(self.library.tsr_sharding_print(layout, FORMATS.index(form), text, ctypes.c_size_t(4096), ctypes.byref(length)))
        return text.value.decode()

    def local(self, layout, coordinate, ndim):
        shape, offset = (int64 * 8)(), (int64 * 8)()
        self.check(self.library.tsr_layout_local(layout, (int64 * 8)(*coordinate), shape, offset))
        return tuple(shape[:ndim]), tuple(offset[:ndim])

    def equal(self, a, b):
        return self.library.tsr_layout_equal(a, b) == 1

    def free(self, layout):
        self.library.tsr_layout_destroy(layout)


def seeded(number):
    """A mesh, a tensor's shape, the axes that cut each of its dims, and the axes of terms."""
    draw = random.Random(number)
    while True:
        sizes = [draw.choice([1, 2, 2, 3, 4]) for _ in range(draw.randint(1, 4))]
        if 1 < numpy.prod(sizes) <= 24:
            break
    ndim = draw.randint(0, 3)
    cuts, summed = [[] for _ in range(ndim)], []
    for axis in draw.sample(range(len(sizes)), len(sizes)):
        kind = draw.randrange(4)
        if kind == 0:
            summed.append(axis)
        elif kind > 1 and ndim:
            cuts[draw.randrange(ndim)].append(axis)
    parts = [int(numpy.prod([sizes[axis] for axis in cut])) for cut in cuts]
    even = draw.random() < 0.5
    shape = [part * draw.randint(1, 3) if even else draw.randint(1, 20) for part in parts]
    return sizes, shape, cuts, summed, even


def names(axes):
    return tuple("abcd"[axis] for axis in axes)


def spec_of(cuts, summed):
    entries = [None if not cut else names(cut)[0] if len(cut) == 1 else names(cut) for cut in cuts]
    return PartitionSpec(*entries, unreduced=set(names(summed))) if summed else PartitionSpec(*entries)


def same(what, ours, theirs):
    if ours != theirs:
        raise ValueError(f"{what}: ours is {ours}, theirs {theirs}")


def v2(text):
    sharding = xla_client.HloSharding.from_string(text)
    return xla_client.HloSharding.v3_to_v2_sharding(sharding)


def compare_jax(tessera, context, case):
    sizes, shape, cuts, summed, even = case
    text = ",".join(f"{name}={size}" for name, size in zip("abcd", sizes))
    mesh = tessera.mesh(text)
    count = int(numpy.prod(sizes))
    devices = numpy.array(jax.devices()[:count]).reshape(sizes)
    theirs = NamedSharding(Mesh(devices, names(range(len(sizes))), axis_types=(AxisType.Explicit,) * len(sizes)), spec_of(cuts, summed))
    ours = tessera.parse("jax", repr(theirs.spec), mesh, shape)
    hlo = str(theirs._to_xla_hlo_sharding(len(shape)))
    same("hlo", tessera.print(ours, "hlo"), hlo)
    for form in ("hlo1", "hlo"):
        again = tessera.parse(form, tessera.print(ours, form), mesh, shape)
        assert tessera.equal(ours, again), form
        same(form, repr(xla_client.HloSharding.from_string(tessera.print(ours, form)) == xla_client.HloSharding.from_string(hlo)), "True")
        tessera.free(again)
    with context:
        written = tessera.print(ours, "sdy")
        same("sdy", written, str(ir.Attribute.parse(written)))
        attribute = str(theirs._to_sdy_sharding(len(shape)).build({}))
    again = tessera.parse("sdy", attribute, mesh, shape)
    assert tessera.equal(ours, again), attribute
    tessera.free(again)
    written = tessera.print(ours, "hlo3")
    same("hlo3", str(v2(written)), hlo)
    again = tessera.parse("hlo3", written, mesh, shape)
    assert tessera.equal(ours, again), written
    tessera.free(again)
    if even and not summed:
        owned = theirs.devices_indices_map(tuple(shape))
        for rank, coordinate in enumerate(itertools.product(*map(range, sizes))):
            index = [slice(*part.indices(length)[:2]) for part, length in zip(owned[devices.flat[rank]], shape)]
            same(f"rank {rank}", tessera.local(ours, coordinate, len(shape)),
                 (tuple(part.stop - part.start for part in index), tuple(part.start for part in index)))
    tessera.free(ours)


def compare_torch(tessera, case):
    sizes, shape, cuts, summed, _ = case
    mesh = tessera.mesh("x".join(map(str, sizes)))
    placements = [Replicate()] * len(sizes)
    for dim, cut in enumerate(cuts):
        for axis in cut:
            placements[axis] = Shard(dim)
    for axis in summed:
        placements[axis] = Partial()
    ours = tessera.parse("torch", repr(tuple(placements)), mesh, shape)
    written = tessera.print(ours, "torch")
    again = tessera.parse("torch", written, mesh, shape)
    assert tessera.equal(ours, again), written
    for coordinate in itertools.product(*map(range, sizes)):
        length, offset = _compute_local_shape_and_global_offset(tuple(shape), tuple(sizes), list(coordinate), placements)
        mine = tessera.local(ours, coordinate, len(shape))
        same(f"torch {placements} {coordinate} shape", mine[0], tuple(length))
        if 0 not in length:
            same(f"torch {placements} {coordinate} offset", mine[1], tuple(offset))
    tessera.free(ours)
    tessera.free(again)


def main():
    tessera, context, layouts = Tessera(sys.argv[1]), mlir.make_ir_context(), int(sys.argv[2]) if len(sys.argv) > 2 else 10000
    failed = {"jax": 0, "torch": 0}
    for number in range(layouts):
        case = seeded(number)
        for name, compare in (("jax", lambda: compare_jax(tessera, context, case)), ("torch", lambda: compare_torch(tessera, case))):
            try:
                compare()
            except Exception as error:  # noqa: BLE001: each kind of failure is told, and the others are still run
                failed[name] += 1
                if failed[name] <= 5:
                    print(f"# layout {number} {case}: {type(error).__name__}: {error}", flush=True)
    print("1..2")
    for number, name in enumerate(failed, 1):
        print(f"{'not ok' if failed[name] else 'ok'} {number} - {name}: {layouts} layouts, {failed[name]} differ")
    return 1 if any(failed.values()) else 0


sys.exit(main())
