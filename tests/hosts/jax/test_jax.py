#!/usr/bin/env python3
"""tessera.jax on four CPU devices: every function through jax.shard_map, custom_partitioning, jax.jit, jax.grad and jax.vmap.

usage: test_jax.py LIBTESSERA_XLA

Values are small integers where sums shall be exact in any order, so that results equal those of JAX bit for bit.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

os.environ["JAX_NUM_CPU_DEVICES"] = "4"
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "src/hosts/python"))
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental.custom_partitioning import custom_partitioning  # noqa: E402
from jax.sharding import AxisType, Mesh, NamedSharding  # noqa: E402
from jax.sharding import PartitionSpec as P  # noqa: E402

import tessera.jax  # noqa: E402

ORDER = [2, 0, 3, 1]  # meshes have their devices in this order, so that a device's number is not its place


def mesh_of(**axes):
    return Mesh(numpy.array(jax.devices())[ORDER].reshape(*axes.values()), tuple(axes))


LINE, GRID = mesh_of(x=4), mesh_of(dp=2, tp=2)


def put(values, mesh, *spec):
    return jax.device_put(jnp.asarray(values), NamedSharding(mesh, P(*spec)))


def integers(*shape, seed=0, dtype="float32"):
    return numpy.random.default_rng(seed).integers(-4, 5, shape).astype(dtype)


def same(what, found, wanted):
    """Two trees have equal values, bit for bit."""
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(wanted), strict=True):
        one, other = numpy.asarray(one), numpy.asarray(other)
        if one.shape != other.shape or one.dtype != other.dtype or one.tobytes() != other.tobytes():
            raise ValueError(f"{what} is {one.dtype}{one.shape} {one.ravel()[:8]}.., not {other.dtype}{other.shape} {other.ravel()[:8]}..")


def lies(what, array, mesh, spec):
    if not array.sharding.is_equivalent_to(NamedSharding(mesh, spec), array.ndim):
        raise ValueError(f"{what} lies by {array.sharding}, not {spec}")


def refused(what, kind, sentence, call):
    try:
        jax.block_until_ready(call())
    except kind as error:
        if not re.search(sentence, str(error)):
            raise ValueError(f"{what} is refused with: {error}") from None
        return str(error)
    raise ValueError(f"{what} is not refused")


def gathered(function, *operands):
    """True if a custom call of the compiled function has an operand that was gathered; ValueError if it has none of our calls."""
    text = jax.jit(function).lower(*operands).compile().as_text()
    calls = re.findall(r"custom-call\(([^)]*)\), custom_call_target=\"tsr_xla", text)
    if not calls:
        raise ValueError("the program has no custom call of ours")
    if any("%all-gather" in operands for operands in calls):
        return True
    return "all-gather" in text and sys.exit("an all-gather elsewhere:\n" + text)


# ---- Redistributions ----

SPECS = [P(), P("dp"), P(None, "tp"), P("dp", "tp"), P("tp", "dp"), P(("dp", "tp")), P(None, ("tp", "dp"))]


def redistributions_move_exactly():
    whole = numpy.arange(8 * 12, dtype="float32").reshape(8, 12)
    for src in SPECS:
        x = put(whole, GRID, *src)
        for dst in SPECS:
            for name, y in (("y", tessera.jax.redistribute(x, GRID, src, dst)),
                            ("y of jit", jax.jit(lambda x, src=src, dst=dst: tessera.jax.redistribute(x, GRID, src, dst))(x))):
                same(f"{name} from {src} to {dst}", y, whole)
                lies(name, y, GRID, dst)
                for part in y.addressable_shards:
                    same(f"a part from {src} to {dst}", part.data, whole[part.index])


def redistributions_take_dtypes():
    for dtype in ("float64", "float16", "bfloat16", "int8", "uint32", "bool", "complex64"):
        whole = put(jnp.asarray(integers(4, 8)).astype(dtype), LINE, "x")
        same(dtype, tessera.jax.redistribute(whole, LINE, P("x"), P(None, "x")), whole)


def redistributions_start_anywhere():
    """src None: the compiler says where x is; an axis type that is explicit says it too."""
    whole = integers(8, 12)
    for src in SPECS:
        y = jax.jit(lambda x: tessera.jax.redistribute(x, GRID, None, P("tp", "dp")))(put(whole, GRID, *src))
        same(f"y from {src}", y, whole)
        lies("y", y, GRID, P("tp", "dp"))
    explicit = Mesh(GRID.devices, GRID.axis_names, axis_types=(AxisType.Explicit,) * 2)
    y = jax.jit(lambda x: tessera.jax.redistribute(x, explicit, None, P("tp", "dp")))(put(whole, explicit, "dp", None))
    same("y from an explicit spec", y, whole)
    lies("y", y, explicit, P("tp", "dp"))


def gradients_move_back():
    x, weight = put(integers(8, 12), GRID, "dp"), put(integers(8, 12, seed=1), GRID, "tp", "dp")
    for src in (P("dp"), None):
        dx = jax.jit(jax.grad(lambda x, src=src: (tessera.jax.redistribute(x, GRID, src, P("tp", "dp")) * weight).sum()))(x)
        same("dx", dx, weight)
        lies("dx", dx, GRID, P("dp"))


def members_of_vmap_move_at_once():
    members = integers(3, 8, 12)
    for src in (P("dp"), None):
        move = jax.jit(jax.vmap(lambda x, src=src: tessera.jax.redistribute(x, GRID, src, P("tp", "dp"))))
        same("y", move(put(members, GRID, None, "dp")), members)
    text = jax.jit(jax.vmap(lambda x: tessera.jax.redistribute(x, GRID, P("dp"), P("tp", "dp")))).lower(members).compile().as_text()
    if text.count("custom_call_target=\"tsr_xla") != 1 or "while" in text:
        raise ValueError("members are moved one after the other")


# ---- Collectives ----

def inside(function, check, out=P("x"), mesh=LINE, spec=P("x")):
    return jax.shard_map(function, mesh=mesh, in_specs=spec, out_specs=out, check_vma=check)


COLLECTIVES = [
    ("all_reduce", lambda x: tessera.jax.all_reduce(x, "x"), lambda x: lax.psum(x, "x"), P()),
    ("avg", lambda x: tessera.jax.all_reduce(x, "x", "avg"), lambda x: lax.pmean(x, "x"), P()),
    ("all_gather", lambda x: tessera.jax.all_gather(x, "x", 1), lambda x: lax.all_gather(x, "x", axis=1, tiled=True), P("x")),
    ("reduce_scatter", lambda x: tessera.jax.reduce_scatter(x, "x", 1), lambda x: lax.psum_scatter(x, "x", scatter_dimension=1, tiled=True), P("x")),
    ("all_to_all", lambda x: tessera.jax.all_to_all(x, "x", 1, 0), lambda x: lax.all_to_all(x, "x", 1, 0, tiled=True), P("x")),
]


def collectives_are_those_of_jax():
    """Values and gradients, with and without checked types, eagerly and compiled."""
    x, weights = put(integers(8, 4), LINE, "x"), integers(128, 16, seed=1)
    for name, ours, theirs, out in COLLECTIVES:
        for check in (True, False):
            mine, other = inside(ours, check, out), inside(theirs, check, out)
            y = jax.jit(mine)(x)
            same(name, y, jax.jit(other)(x))
            same(f"{name}, eager", mine(x), y)
            weight = weights[:y.shape[0], :y.shape[1]]
            for wrap in (jax.jit, lambda f: f):
                same(f"the gradient of {name}", *(wrap(jax.grad(lambda x, f=f: (f(x) * weight).sum()))(x) for f in (mine, other)))


def operations_of_reductions():
    x = put(integers(8, 4), LINE, "x")
    for op, theirs in (("min", lax.pmin), ("max", lax.pmax)):
        mine = inside(lambda x, op=op: tessera.jax.all_reduce(x, "x", op), True, P())
        same(op, mine(x), inside(lambda x, f=theirs: f(x, "x"), True, P())(x))
        refused(f"the gradient of {op}", NotImplementedError, f'op "{op}" has no gradient', lambda f=mine: jax.grad(lambda x: f(x).sum())(x))
    same("prod", inside(lambda x: tessera.jax.all_reduce(x, "x", "prod"), True, P())(x), numpy.prod(numpy.asarray(x).reshape(4, 2, 4), axis=0))


def collectives_go_along_several_axes():
    for axes in ("tp", ("dp", "tp")):
        for ours, theirs in ((lambda x, a: tessera.jax.all_reduce(x, a), lax.psum), (lambda x, a: tessera.jax.all_gather(x, a), lambda x, a: lax.all_gather(x, a, tiled=True)),
                             (lambda x, a: tessera.jax.reduce_scatter(x, a), lambda x, a: lax.psum_scatter(x, a, tiled=True))):
            same(f"along {axes}", *(inside(lambda x, f=f, a=axes: f(x, a), False, P(("dp", "tp")), GRID, P(("dp", "tp")))(integers(16, 2)) for f in (ours, theirs)))


def members_of_vmap_meet_at_once():
    members = integers(3, 8, 4)
    for name, ours, theirs, out in COLLECTIVES:
        for check in (True, False):
            same(name, *(jax.jit(jax.vmap(inside(f, check, out), in_axes=2, out_axes=1))(jnp.moveaxis(members, 0, 2)) for f in (ours, theirs)))


def sums_go_in_ascending_order():
    """Floats whose sum depends on the order; bf16 is added in f32 and rounded once."""
    x = numpy.random.default_rng(5).standard_normal((4, 1000)).astype("float32")
    total = ((x[0] + x[1]) + x[2]) + x[3]
    y = inside(lambda x: tessera.jax.all_reduce(x, "x"), True, P())(put(x, LINE, "x"))
    for part in y.addressable_shards:
        same("a replica", part.data, total[None])
    narrow = jnp.asarray(x).astype("bfloat16")
    wide = numpy.asarray(narrow.astype("float32"))
    same("bf16", inside(lambda x: tessera.jax.all_reduce(x, "x"), True, P())(put(narrow, LINE, "x")),
         jnp.asarray(((wide[0] + wide[1]) + wide[2]) + wide[3])[None].astype("bfloat16"))


def collectives_in_loops_and_functions():
    """The same call site in turns of a loop, and a compiled function that a program calls twice."""
    x = integers(8, 4)

    def turns(reduce):
        return inside(lambda x: lax.scan(lambda c, _: (c - lax.pcast(reduce(c), "x", to="varying") / 4 + 1, None), x, None, length=7)[0], True)
    same("after a loop", jax.jit(turns(lambda x: tessera.jax.all_reduce(x, "x")))(x), jax.jit(turns(lambda x: lax.psum(x, "x")))(x))
    twice = jax.jit(lambda x: tessera.jax.all_to_all(x, "x", 1, 0))
    same("of two calls", jax.jit(inside(lambda x: twice(x) + twice(2 * x), True))(x), jax.jit(inside(lambda x: 3 * lax.all_to_all(x, "x", 1, 0, tiled=True), True))(x))


def collectives_inside_custom_partitioning():
    """A function of the user's own, whose parts meet by our all_reduce."""
    @custom_partitioning
    def total(x):
        return x.sum(axis=0)

    def partition(mesh, operands, result):
        axes = operands[0].sharding.spec[0]
        return mesh, lambda x: tessera.jax.all_reduce(x.sum(axis=0), axes), result.sharding, (operands[0].sharding,)
    total.def_partition(partition, sharding_rule="i j -> j", reduction_factors=("i",))
    x = put(integers(8, 4), LINE, "x", None)
    same("a sum", jax.jit(total)(x), integers(8, 4).sum(axis=0))
    if gathered(total, x):
        raise ValueError("x is gathered")


# ---- Layers ----

FORMS = {"column": (tessera.jax.column_parallel, P("dp"), P("tp"), P("tp"), P("dp", None, "tp")),
         "row": (tessera.jax.row_parallel, P("dp", None, "tp"), P(None, "tp"), P(), P("dp"))}


def plain(x, w, b=None):
    return x @ w.T + (0 if b is None else b)


def layers(form):
    """(name, function, mesh) for each way in which a layer is called, and the specs of its operands and result."""
    layer, *specs, y = FORMS[form]
    explicit = Mesh(GRID.devices, GRID.axis_names, axis_types=(AxisType.Explicit,) * 2)
    ways = [("arrays", layer, GRID), ("explicit axes", layer, explicit)]
    for check in (True, False):
        ways.append((f"parts, check_vma={check}", lambda *operands, check=check: jax.shard_map(
            lambda *parts: layer(*parts, axis_name="tp"), mesh=GRID, in_specs=tuple(specs[:len(operands)]), out_specs=y, check_vma=check)(*operands), GRID))
    return ways, specs, y


def layers_are_products(form):
    operands = [integers(4, 3, 8), integers(6, 8, seed=1), integers(6, seed=2)]
    ways, specs, spec = layers(form)
    weight = integers(4, 3, 6, seed=3)
    for given in (operands, operands[:2]):
        wanted, back = plain(*given), jax.grad(lambda *o: (plain(*o) * weight).sum(), argnums=tuple(range(len(given))))(*given)
        for name, layer, mesh in ways:
            lent = [put(operand, mesh, *s) for operand, s in zip(given, specs)]
            for wrap in (jax.jit, lambda f: f):
                y = wrap(layer)(*lent)
                same(f"y of {form}, {name}", y, wanted)
                lies(f"y of {form}, {name}", y, mesh, spec)
            found = jax.jit(jax.grad(lambda *o, f=layer: (f(*o) * weight).sum(), argnums=tuple(range(len(given)))))(*lent)
            same(f"gradients of {form}, {name}", found, back)
            for gradient, s in zip(found, specs):
                lies(f"a gradient of {form}, {name}", gradient, mesh, s)


def column_parallel_is_a_product():
    layers_are_products("column")


def row_parallel_is_a_product():
    layers_are_products("row")


def layers_under_vmap(form):
    """Members of x, of w, and of both; values and gradients."""
    ways, specs, _ = layers(form)
    x, w, b = integers(5, 4, 8), integers(6, 8, seed=1), integers(6, seed=2)
    for mapped, given in (((0, None, None), (x, w, b)), ((None, 0, None), (x[0], numpy.stack([w, 2 * w]), b)),
                          ((0, 0, 0), (x[:2], numpy.stack([w, 2 * w]), numpy.stack([b, -b])))):
        for name, layer, mesh in ways:
            if "explicit" in name:
                continue
            fold = (lambda f: (lambda x, w, b: f(x[:, None], w, b)[:, 0]))
            mine, other = (jax.vmap(fold(f), in_axes=mapped) for f in (layer, plain))
            same(f"y of {form}, {name}, members {mapped}", jax.jit(mine)(*given), other(*given))
            same(f"gradients of {form}, {name}, members {mapped}", *(jax.jit(jax.grad(lambda *o, f=f: (f(*o) ** 2).sum(), argnums=(0, 1, 2)))(*given) for f in (mine, other)))


def column_parallel_under_vmap():
    layers_under_vmap("column")


def row_parallel_under_vmap():
    layers_under_vmap("row")


def main():
    tessera.jax.load(sys.argv[1])
    tests = [test for name, test in globals().items() if callable(test) and test.__module__ == "__main__" and name in TESTS]
    print(f"1..{len(tests)}")
    failed = 0
    for number, test in enumerate(tests, 1):
        try:
            test()
            print(f"ok {number} - {test.__name__}", flush=True)
        except Exception as error:  # noqa: BLE001: every kind of failure is told, and the others are still run
            failed += 1
            print(f"# {type(error).__name__}: {str(error)[:2000]}\nnot ok {number} - {test.__name__}", flush=True)
    return 1 if failed else 0


TESTS = """redistributions_move_exactly redistributions_take_dtypes redistributions_start_anywhere gradients_move_back members_of_vmap_move_at_once
collectives_are_those_of_jax operations_of_reductions collectives_go_along_several_axes members_of_vmap_meet_at_once sums_go_in_ascending_order
collectives_in_loops_and_functions collectives_inside_custom_partitioning column_parallel_is_a_product row_parallel_is_a_product
column_parallel_under_vmap row_parallel_under_vmap""".split()
sys.exit(main())
