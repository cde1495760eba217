#!/usr/bin/env python3
"""tessera.jax on four CPU devices: every function through jax.shard_map, custom_partitioning, jax.jit, jax.grad and jax.vmap.

usage: test_jax.py LIBTESSERA_XLA

Values are small integers where sums shall be exact in any order, so that results equal those of JAX bit for bit.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import warnings

os.environ["JAX_NUM_CPU_DEVICES"] = "4"
os.environ["PJRT_NPROC"] = "4"  # as few threads as XLA has where there are few processors
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "src/hosts/python"), str(ROOT / "tests/invariants")]
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax import lax  # noqa: E402
from jax.experimental.custom_partitioning import custom_partitioning  # noqa: E402
from jax.sharding import AxisType, Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import tap  # noqa: E402
import tessera.jax  # noqa: E402

jax.config.update("jax_enable_x64", True)

ORDER = [2, 0, 3, 1]  # meshes have their devices in this order, so that a device's number is not its place


TESTS = []


def test(function):
    TESTS.append(function)
    return function


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
    if "all-gather" in text:
        raise ValueError("an all-gather elsewhere:\n" + text)
    return False


# ---- Redistributions ----

SPECS = [P(), P("dp"), P(None, "tp"), P("dp", "tp"), P("tp", "dp"), P(("dp", "tp")), P(None, ("tp", "dp"))]


@test
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


@test
def redistributions_take_dtypes_and_meshes():
    for dtype in ("float64", "float16", "bfloat16", "int8", "uint32", "bool", "complex64"):
        whole = put(jnp.asarray(integers(4, 8)).astype(dtype), LINE, "x")
        same(dtype, tessera.jax.redistribute(whole, LINE, P("x"), P(None, "x")), whole)
    for devices, shape in (([3, 1], (2, 1)), ([1, 3], (1, 2)), ([2], (1, 1)), ([3, 0, 2], (1, 3))):
        some = Mesh(numpy.array(jax.devices())[devices].reshape(shape), ("a", "b"))
        same(f"on devices {devices}", tessera.jax.redistribute(put(integers(6, 6), some, "b"), some, P("b"), P("a", "b")), integers(6, 6))


@test
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


@test
def gradients_move_back():
    x, weight = put(integers(8, 12), GRID, "dp"), put(integers(8, 12, seed=1), GRID, "tp", "dp")
    for src in (P("dp"), None):
        dx = jax.jit(jax.grad(lambda x, src=src: (tessera.jax.redistribute(x, GRID, src, P("tp", "dp")) * weight).sum()))(x)
        same("dx", dx, weight)
        lies("dx", dx, GRID, P("dp"))


@test
def members_of_vmap_move_at_once():
    members, weight = integers(3, 8, 12), integers(3, 8, 12, seed=1)
    for src in (P("dp"), None):
        move = jax.vmap(lambda x, src=src: tessera.jax.redistribute(x, GRID, src, P("tp", "dp")))
        back = jax.grad(lambda x, move=move: (move(x) * weight).sum())
        x = put(members, GRID, None, "dp")
        for function, wanted in ((move, members), (back, weight)):
            same("y or dx", jax.jit(function)(x), wanted)
            text = jax.jit(function).lower(x).compile().as_text()
            if "while" in text or not text.count('custom_call_target="tsr_xla') in (1, 2):
                raise ValueError(f"members are moved one after the other, from {src}")


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


@test
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


@test
def operations_of_reductions():
    x = put(integers(8, 4), LINE, "x")
    for op, theirs in (("min", lax.pmin), ("max", lax.pmax)):
        mine = inside(lambda x, op=op: tessera.jax.all_reduce(x, "x", op), True, P())
        same(op, mine(x), inside(lambda x, f=theirs: f(x, "x"), True, P())(x))
        refused(f"the gradient of {op}", NotImplementedError, f'op "{op}" has no gradient', lambda f=mine: jax.grad(lambda x: f(x).sum())(x))
    same("prod", inside(lambda x: tessera.jax.all_reduce(x, "x", "prod"), True, P())(x), numpy.prod(numpy.asarray(x).reshape(4, 2, 4), axis=0))


@test
def collectives_go_along_several_axes():
    for axes in ("tp", ("dp", "tp")):
        for ours, theirs in ((lambda x, a: tessera.jax.all_reduce(x, a), lax.psum), (lambda x, a: tessera.jax.all_gather(x, a), lambda x, a: lax.all_gather(x, a, tiled=True)),
                             (lambda x, a: tessera.jax.reduce_scatter(x, a), lambda x, a: lax.psum_scatter(x, a, tiled=True))):
            same(f"along {axes}", *(inside(lambda x, f=f, a=axes: f(x, a), False, P(("dp", "tp")), GRID, P(("dp", "tp")))(integers(16, 2)) for f in (ours, theirs)))


@test
def members_of_vmap_meet_at_once():
    members = integers(3, 8, 4)
    for name, ours, theirs, out in COLLECTIVES:
        for check in (True, False):
            same(name, *(jax.jit(jax.vmap(inside(f, check, out), in_axes=2, out_axes=1))(jnp.moveaxis(members, 0, 2)) for f in (ours, theirs)))


@test
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


@test
def collectives_in_loops_and_functions():
    """The same call site in turns of a loop, and a compiled function that a program calls twice."""
    x = integers(8, 4)

    def turns(reduce):
        return inside(lambda x: lax.scan(lambda c, _: (c - lax.pcast(reduce(c), "x", to="varying") / 4 + 1, None), x, None, length=7)[0], True)
    same("after a loop", jax.jit(turns(lambda x: tessera.jax.all_reduce(x, "x")))(x), jax.jit(turns(lambda x: lax.psum(x, "x")))(x))
    twice = jax.jit(lambda x: tessera.jax.all_to_all(x, "x", 1, 0))
    same("of two calls", jax.jit(inside(lambda x: twice(x) + twice(2 * x), True))(x), jax.jit(inside(lambda x: 3 * lax.all_to_all(x, "x", 1, 0, tiled=True), True))(x))


@test
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


def check_products(form):
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


@test
def layers_are_products():
    for form in FORMS:
        check_products(form)


def check_members(form):
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


@test
def layers_map_over_members():
    for form in FORMS:
        check_members(form)


@test
def weights_get_gradients_of_members_without_a_gather():
    """The gradient of a mean over a vmap, with members cut over dp."""
    for form, (layer, _, w, _, _) in FORMS.items():
        x, w = put(integers(8, 8), GRID, "dp", "tp" if form == "row" else None), put(integers(6, 8, seed=1), GRID, *w)
        mine, other = (lambda x, w, f=f: (jax.vmap(f, in_axes=(0, None))(x, w) ** 2).sum() for f in (layer, plain))
        same(form, jax.jit(jax.grad(mine, argnums=(0, 1)))(x, w), jax.grad(other, argnums=(0, 1))(numpy.asarray(x), numpy.asarray(w)))
        if gathered(jax.grad(mine, argnums=(0, 1)), x, w):
            raise ValueError(f"an operand of {form} is gathered")


@test
def operands_are_not_gathered():
    """With the control: the same handler, called without shard_map and custom_partitioning, gets gathered operands."""
    x = put(integers(8, 4), LINE, "x", None)
    raw = jax.ffi.ffi_call("tsr_xla_all_reduce", jax.ShapeDtypeStruct(x.shape, x.dtype))
    if not gathered(lambda x: raw(x, mesh="x=4", devices=numpy.array(ORDER)), x):
        raise ValueError("the control: XLA does not gather the operand of a plain call")
    programs = [(name, inside(ours, True, out), [x]) for name, ours, _, out in COLLECTIVES]
    y = put(integers(8, 12), GRID, "dp", "tp")
    programs += [(f"redistribute from {src}", lambda y, src=src: tessera.jax.redistribute(y, GRID, src, P("tp", "dp")), [y]) for src in (None, P("dp", "tp"))]
    for form, (_, *specs, _) in FORMS.items():
        ways, _, _ = layers(form)
        for name, layer, mesh in ways:
            operands = [put(v, mesh, *s) for v, s in zip((integers(4, 3, 8), integers(6, 8), integers(6)), specs)]
            programs += [(f"{form}, {name}", layer, operands),
                         (f"gradients of {form}, {name}", jax.grad(lambda *o, f=layer: (f(*o) ** 2).sum(), argnums=(0, 1, 2)), operands)]
    for name, program, operands in programs:
        if gathered(program, *operands):
            raise ValueError(f"an operand of {name} is gathered")


@test
def a_trained_step_is_that_of_plain_jax():
    """An MLP of a column- and a row-parallel layer, with data-parallel rows: loss, gradients and updated weights, bit for bit."""
    x, goal = integers(8, 6), integers(8, 6, seed=1)
    weights = [integers(12, 6, seed=2), integers(12, seed=3), integers(6, 12, seed=4), integers(6, seed=5)]
    specs = [P("tp"), P("tp"), P(None, "tp"), P()]

    def step(up, down, weights, x, goal):
        def loss(weights):
            w1, b1, w2, b2 = weights
            return ((down(jax.nn.relu(up(x, w1, b1)), w2, b2) - goal) ** 2).sum() / 4
        value, gradients = jax.value_and_grad(loss)(weights)
        return value, gradients, [w - g / 1024 for w, g in zip(weights, gradients)]

    wanted = jax.jit(lambda *given: step(plain, plain, *given))(weights, x, goal)
    lent = [put(w, GRID, *s) for w, s in zip(weights, specs)]
    ways = {"arrays": lambda *given: step(tessera.jax.column_parallel, tessera.jax.row_parallel, *given)}
    parts = {}
    for form, (layer, x_spec, *rest, y) in FORMS.items():
        def whole(*operands, layer=layer, given=(P("dp", *x_spec[2:]), *rest), y=P("dp", *y[2:])):
            return jax.shard_map(lambda *parts: layer(*parts, axis_name="tp"), mesh=GRID, in_specs=given, out_specs=y)(*operands)
        parts[form] = whole
    ways["parts"] = lambda *given: step(parts["column"], parts["row"], *given)
    for name, way in ways.items():
        found = jax.jit(way)(lent, put(x, GRID, "dp"), put(goal, GRID, "dp"))
        same(f"a step on {name}", found, wanted)
        for new, spec in zip(found[2], specs):
            lies(f"a weight of {name}", new, GRID, spec)
    losses = []
    small = [w / 16 for w in lent]
    train = jax.jit(ways["arrays"], donate_argnums=0)
    for _ in range(30):
        value, _, small = train(small, put(x, GRID, "dp"), put(goal, GRID, "dp"))
        losses.append(float(value))
    if not losses[-1] < losses[0]:
        raise ValueError(f"thirty steps lead from {losses[0]} to {losses[-1]}")


@test
def weights_may_be_whole():
    """Layers whose weight no axis cuts, on several devices and on one."""
    operands = [integers(8, 8), integers(6, 8, seed=1), integers(6, seed=2)]
    for layer, *_ in FORMS.values():
        mine, other = (lambda *o, f=f: (f(*o) ** 2).sum() for f in (layer, plain))
        for lent in ([put(operands[0], GRID, "dp"), *(put(o, GRID) for o in operands[1:])], operands):
            same("y", jax.jit(layer)(*lent), plain(*operands))
            same("gradients", jax.jit(jax.grad(mine, argnums=(0, 1, 2)))(*lent), jax.grad(other, argnums=(0, 1, 2))(*operands))


@test
def products_of_floats_are_within_the_bound():
    """|y - exact| <= gamma(n + 1) |x| |w|^T + |b|, n the length of the sums, in any order: Higham's bound."""
    random = numpy.random.default_rng(7)
    x, w, b = (random.standard_normal(shape).astype("float32") for shape in ((64, 96), (32, 96), (32,)))
    n, u = 96 + 4, 2.0 ** -24
    bound = n * u / (1 - n * u) * (abs(x).astype("float64") @ abs(w).T.astype("float64") + abs(b))
    exact = x.astype("float64") @ w.T.astype("float64") + b
    for form, (layer, x_spec, w_spec, b_spec, _) in FORMS.items():
        y = jax.jit(layer)(put(x, GRID, "dp", *x_spec[2:]), put(w, GRID, *w_spec), put(b, GRID, *b_spec))
        if not (abs(numpy.asarray(y, "float64") - exact) <= bound).all():
            raise ValueError(f"{form} is not within the bound")


# ---- Launches ----

@test
def a_thousand_launches():
    launch = jax.jit(inside(lambda x: tessera.jax.all_to_all(tessera.jax.all_reduce(x, "x"), "x", 1, 0) / 4, False))
    x = put(integers(8, 4), LINE, "x")
    wanted = launch(x)
    made = []
    for turn in range(1000):
        made.append(launch(x))
        if turn % 16 == 15:  # XLA lets 32 launches wait, in threads of which there may be no more than devices
            jax.block_until_ready(made)
            for y in made:
                same(f"launch {turn}", y, wanted)
            made = []


@test
def launches_that_are_not_awaited():
    """A chain of launches, where XLA has twice as many threads as devices."""
    program = """
import sys; sys.path.insert(0, sys.argv[2])
import jax, numpy, tessera.jax
from jax.sharding import PartitionSpec as P
tessera.jax.load(sys.argv[1], timeout=20)
mesh = jax.sharding.Mesh(numpy.array(jax.devices()), ("x",))
f = jax.jit(jax.shard_map(lambda x: tessera.jax.all_reduce(x, "x", "avg") + 1, mesh=mesh, in_specs=P("x"), out_specs=P("x"), check_vma=False))
x = numpy.zeros((4, 8), "float32")
for _ in range(1000):
    x = f(x)
print(numpy.unique(x))
"""
    done = subprocess.run([sys.executable, "-c", program, os.path.abspath(sys.argv[1]), str(ROOT / "src/hosts/python")], capture_output=True, text=True,
                          env=dict(os.environ, PJRT_NPROC="8"), timeout=300)
    if done.stdout != "[1000.]\n" or "PJRT_NPROC" in done.stderr:
        raise ValueError(done.stdout + done.stderr[-2000:])


@test
def few_threads_are_warned_of():
    tessera.jax._warn_of_threads.cache_clear()
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        jax.jit(inside(lambda x: tessera.jax.all_reduce(x, "x", "prod"), False))(integers(8, 2))
    if [str(warning.message) for warning in told if "PJRT_NPROC=8" in str(warning.message)][1:] or not told:
        raise ValueError(f"{len(told)} warnings: {told}")


@test
def independent_calls_of_a_program():
    """Calls without an order between them, launched over and over, and by two programs that have them in another order."""
    def calls(order):
        moves = [lambda x: tessera.jax.all_reduce(x, "x"), lambda x: tessera.jax.all_to_all(x, "x", 1, 0).reshape(x.shape),
                 lambda x: tessera.jax.reduce_scatter(tessera.jax.all_gather(x, "x"), "x"), lambda x: tessera.jax.all_reduce(x + 1, "x", "max")]

        def parts(x):
            made = {at: moves[at](x * (at + 1)) for at in order}
            return [made[at] for at in range(len(moves))]
        return jax.jit(inside(parts, False, P("x")))
    x = put(integers(4 * 256, 64), LINE, "x")
    one, other = calls((0, 1, 2, 3)), calls((3, 1, 0, 2))
    wanted = one(x)
    for _ in range(10):
        made = [one(x), other(x), one(x), other(x)]
        for found in made:
            same("a result", found, wanted)


@test
def a_failing_device_is_named():
    """Rank 2 does not come, and the others say so; later launches go on."""
    x = put(integers(8, 4), LINE, "x")
    tessera.jax.load(timeout=0.5)
    try:
        def some(x):
            return lax.cond(lax.axis_index("x") == 2, lambda x: x, lambda x: tessera.jax.all_reduce(x, "x"), x)
        for _ in range(2):
            refused("a call without rank 2", jax.errors.JaxRuntimeError, r"tsr_xla_all_reduce on device \d \(rank \d\).*rank 2 did not come within 500 ms",
                    lambda: jax.jit(inside(some, False))(x))
    finally:
        tessera.jax.load(timeout=60)
    same("the next launch", inside(lambda x: tessera.jax.all_reduce(x, "x"), True, P())(x), inside(lambda x: lax.psum(x, "x"), True, P())(x))


@test
def donated_buffers_are_used():
    x = put(integers(8, 4), LINE, "x")
    wanted = inside(lambda x: lax.psum(x, "x"), False)(x)
    reduce = inside(lambda x: tessera.jax.all_reduce(x, "x", in_place=True), False)
    same("a result in a copy", jax.jit(reduce)(x), wanted)
    same("x, which is not donated", x, integers(8, 4))
    memory = [part.data.unsafe_buffer_pointer() for part in x.addressable_shards]
    y = jax.jit(reduce, donate_argnums=0)(x)
    same("a result in place", y, wanted)
    if not x.is_deleted() or memory != [part.data.unsafe_buffer_pointer() for part in y.addressable_shards]:
        raise ValueError("the result is not where x was")


# ---- What is refused ----

@test
def what_is_refused():
    x, w = integers(9, 6), integers(6, 9)
    move = tessera.jax.redistribute
    refused("uneven dst", ValueError, r"dst: .* cuts dim 0 of \(9, 6\) into 4 parts, but 9 is not divisible by 4, and XLA's parts are equal: pad it to 12",
            lambda: move(x, LINE, P(), P("x")))
    refused("uneven src", ValueError, r"src: .*pad it to 8", lambda: move(x, LINE, P(None, "x"), P()))
    refused("too many dims", ValueError, r"does not cut an array of shape \(9, 6\)", lambda: move(x, LINE, P(None, None, "x"), P()))
    refused("an axis", ValueError, r"src: .* names 'y', but the mesh has the axes x", lambda: move(x, LINE, P("y"), P()))
    refused("terms of a sum", ValueError, "all_reduce", lambda: move(x, LINE, P(unreduced={"x"}), P()))
    refused("uneven parts", ValueError, r"x: dim 1 of \(2, 6\) has length 6, which is not divisible by the 4 devices along x: pad it to 8",
            lambda: inside(lambda x: tessera.jax.reduce_scatter(x, "x", 1), True)(x[:8]))
    refused("an op", ValueError, 'op: "mean" is not sum, avg, min, max or prod', lambda: inside(lambda x: tessera.jax.all_reduce(x, "x", "mean"), True)(x[:8]))
    refused("features", ValueError, r"x \(9, 6\), w \(6, 9\): a layer takes x", lambda: tessera.jax.column_parallel(x, w))
    lent = put(integers(4, 8), GRID, None, "tp"), put(integers(6, 8), GRID, None, "tp")
    for call in (tessera.jax.row_parallel, lambda x, w: move(x, GRID, None, P("tp"))):
        refused("parts of a layer without an axis", ValueError, "takes whole arrays, not the parts",
                lambda f=call: jax.shard_map(f, mesh=GRID, in_specs=(P(None, "tp"),) * 2, out_specs=P(), check_vma=False)(*lent))
    refused("a batch that XLA pads", jax.errors.JaxRuntimeError, r"an operand: .* cuts dim 0 of \(3, 8\) into 2 parts, but 3 is not divisible by 2",
            lambda: jax.jit(lambda x, w: tessera.jax.row_parallel(lax.with_sharding_constraint(x, NamedSharding(GRID, P("dp", "tp"))), w))(
                integers(3, 8), lent[1]))
    refused("a bias", ValueError, r"b \(9,\): a layer takes", lambda: tessera.jax.row_parallel(w, w, integers(9)))


# ---- How the library is found ----

@test
def the_library_is_found():
    library = pathlib.Path(sys.argv[1]).resolve()
    ask = "import tessera.jax as t; t.load(); print('found')"
    with tempfile.TemporaryDirectory() as folder:
        prefix = pathlib.Path(folder)
        module = prefix / "share/tessera/python/tessera"
        shutil.copytree(ROOT / "src/hosts/python/tessera", module)
        environment = {name: value for name, value in os.environ.items() if name not in ("TSR_XLA", "LD_LIBRARY_PATH")}
        environment["PYTHONPATH"] = str(module.parent)

        def run(**more):
            done = subprocess.run([sys.executable, "-c", ask], capture_output=True, text=True, env=dict(environment, **more), timeout=100)
            return done.stdout.strip() or done.stderr.strip().splitlines()[-1]
        for what, found in (("at TSR_XLA", run(TSR_XLA=str(library))), ("where the loader looks", run(LD_LIBRARY_PATH=str(library.parent)))):
            if found != "found":
                raise ValueError(f"{what}: {found}")
        if "name libtessera-xla by tessera.jax.load(path), or in the environment variable TSR_XLA" not in run():
            raise ValueError("without a library: " + run())
        (prefix / "lib").symlink_to(library.parent)
        if run() != "found":
            raise ValueError("in the prefix's lib: " + run())


# ---- The page ----

@test
def the_page_does_what_it_says():
    """The blocks of Python of docs/howto/jax.md are one program; a block of text after one is what it prints."""
    page = (ROOT / "docs/howto/jax.md").read_text()
    blocks = re.findall(r"^```(python|text)\n(.*?)^```$", page, re.M | re.S)
    program = "".join(text for kind, text in blocks if kind == "python")
    environment = dict(os.environ, PYTHONPATH=str(ROOT / "src/hosts/python"), TSR_XLA=os.path.abspath(sys.argv[1]))
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=environment, timeout=100)
    wanted = "".join(text for kind, text in blocks if kind == "text")
    if done.stdout != wanted or not wanted:
        raise ValueError(f"it prints\n{done.stdout}{done.stderr[-2000:]}")


warnings.filterwarnings("ignore", message="XLA has 4 threads for 4 devices")
tessera.jax.load(sys.argv[1])
tap.run_cases(*TESTS)
