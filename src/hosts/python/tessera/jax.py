"""Tessera's redistributions, collectives and parallel linear layers in JAX programs.

    y = tessera.jax.redistribute(x, mesh, P('x', None), P(None, 'x'))

* On whole arrays, in or out of jax.jit: redistribute(), column_parallel(), row_parallel().
* On the parts of devices, inside jax.shard_map: all_reduce(), all_gather(), reduce_scatter(),
  all_to_all(), and the layers with an axis name.

All can be differentiated, compiled and mapped by jax.vmap, and no operand is gathered. Terms of
sums are added in ascending order of devices and rounded once: replicas have equal bits.
docs/howto/jax.md shows each function.

The calls are custom calls of libtessera-xla (tessera/xla.h), which the first call loads.
"""
import ctypes
import functools
import math
import operator
import os
import pathlib
import re
import sysconfig
import warnings

import jax
import numpy
from jax import lax
from jax.experimental.custom_partitioning import custom_partitioning
from jax.extend.core import Primitive
from jax.interpreters import batching, mlir
from jax.sharding import AxisType, ManualAxisType, NamedSharding
from jax.sharding import PartitionSpec as P

__all__ = ["load", "redistribute", "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "column_parallel",
           "row_parallel"]

LIBRARY = "libtessera-xla.so.0"
MOVES = ("redistribute", "all_reduce", "all_gather", "reduce_scatter", "all_to_all")
PLATFORMS = (("tsr_xla_", "cpu", ("instantiate", "execute")),
             ("tsr_xla_gpu_", "CUDA", ("instantiate", "prepare", "initialize", "execute")))
LAYERS = ("linear_column", "linear_column_backward", "linear_row", "linear_row_backward")


# ---- The library ----

def load(path=None, timeout=None):
    """Loads libtessera-xla and registers its handlers with JAX, once in a process.

    The library is at `path`, or at $TSR_XLA, or beside this module, or in a folder lib above it, or
    where the loader looks. `timeout`: how many seconds a device waits for the others, in programs
    that are traced from now on; 0 is for ever, and the default 60.
    """
    if timeout is not None:
        if not 0 <= timeout < math.inf:
            raise ValueError(f"timeout: {timeout} is not a number of seconds, 0 or more; 0 is for ever")
        _options["timeout_ms"] = round(1000 * timeout)
    if path:
        _load_file(os.fspath(path))
    elif not _load_file.cache_info().currsize:
        _load_file(os.environ.get("TSR_XLA") or _find())


_options = {}


def _find():
    here = pathlib.Path(__file__).resolve().parent
    libs = ("lib", "lib64", f"lib/{sysconfig.get_config_var('MULTIARCH')}")
    files = [here / LIBRARY, *(above / lib / LIBRARY for above in here.parents for lib in libs)]
    return next((str(file) for file in files if file.exists()), LIBRARY)


@functools.cache
def _load_file(path):
    try:
        library = ctypes.CDLL(path)
    except OSError as error:
        raise OSError(f"{error}: name libtessera-xla by tessera.jax.load(path), or in the environment variable "
                      "TSR_XLA; builds with -Dxla=.. have it") from None
    for prefix, platform, stages in PLATFORMS:
        for name in MOVES + LAYERS:
            handler = jax.ffi.pycapsule(ctypes.cast(library[prefix + name], ctypes.c_void_p).value)
            jax.ffi.register_ffi_target("tsr_xla_" + name, dict.fromkeys(stages, handler), platform=platform)
    return library


# ---- One primitive for all handlers ----
# Its attributes are those of tessera/xla.h but for the mesh, which is known when a program is lowered.

_call_p = Primitive("tessera")
_call_p.multiple_results = True
_call_p.def_abstract_eval(lambda *operands, results, **_: list(results))


@_call_p.def_impl
def _refuse_axes(*operands, **_):
    raise ValueError("axis_name: the axis is not one of a mesh. Parts are those of jax.shard_map; jax.vmap's own axis "
                     "names are for jax.lax")


def _call(handler, operands, results, in_place=False, **attributes):
    """The results of a handler, which have the types `results`."""
    load()
    return _call_p.bind(*operands, handler=handler, results=tuple(results), in_place=in_place,
                        attributes=tuple({**_options, **attributes}.items()))


def _mesh_of(context):
    return getattr(context.module_context.axis_context, "mesh", None) or _refuse_axes()


def _lower(context, *operands, handler, results, in_place, attributes):
    mesh = _mesh_of(context)
    if any(device.process_index != jax.process_index() for device in mesh.devices.flat):
        raise NotImplementedError(f"{mesh} has devices of other processes; tessera.jax moves between those of one")
    _warn_of_threads(jax.local_device_count())
    devices = numpy.array([device.id for device in mesh.devices.flat])
    return _lower_over(mesh, context, operands, handler, in_place, {"devices": devices, **dict(attributes)})


def _lower_on_gpus(context, *operands, handler, results, in_place, attributes):
    """On GPUs rank r is partition r, which JAX puts on device r of the mesh, of whichever process."""
    return _lower_over(_mesh_of(context), context, operands, handler, in_place, dict(attributes))


def _lower_over(mesh, context, operands, handler, in_place, attributes):
    text = ",".join(f"{_names([name])}={size}" for name, size in mesh.shape.items())
    rule = jax.ffi.ffi_lowering("tsr_xla_" + handler, operand_output_aliases={0: 0} if in_place else None)
    return rule(context, *operands, mesh=text, **attributes)


mlir.register_lowering(_call_p, _lower, platform="cpu")
mlir.register_lowering(_call_p, _lower_on_gpus, platform="cuda")


@functools.cache
def _warn_of_threads(devices):
    """Launches that wait, one for each device, may hold threads of XLA that the launch before them needs."""
    told = os.environ.get("PJRT_NPROC") or os.environ.get("NPROC") or ""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    threads = max(int(told) if told.isdigit() else processors, devices)
    if 1 < devices and threads < 2 * devices:
        warnings.warn(f"XLA has {threads} threads for {devices} devices, and stalls where 32 launches wait: set "
                      f"PJRT_NPROC={2 * devices} before JAX makes its client, or await a result at least every 16 "
                      "launches", stacklevel=2)


def _batch(operands, dims, *, handler, results, attributes, **options):
    """jax.vmap. A move takes all members at once, as a dim that comes first. So does a layer whose
    first operand alone has members; other calls of layers go one after the other."""
    operands = [x if dim is None else jax.numpy.moveaxis(x, dim, 0) for x, dim in zip(operands, dims)]
    call = functools.partial(_call_p.bind, handler=handler, **options)
    if handler in MOVES or (not handler.endswith("backward") and dims[0] is not None and set(dims[1:]) <= {None}):
        types = tuple(kind.update(shape=(len(operands[0]), *kind.shape)) for kind in results)
        shifted = tuple((name, _behind(name, value)) for name, value in attributes)
        made = call(*operands, results=types, attributes=shifted)
    else:
        mapped = [dim is not None for dim in dims]
        made = _one_by_one(lambda *member: call(*member, results=results, attributes=attributes), mapped, operands)
    return made, [0] * len(made)


def _behind(name, value):
    """An attribute where one more dim comes first."""
    if name in ("from", "to", "x", "y"):
        return re.sub(r"S\((\d+)", lambda found: f"S({int(found[1]) + 1}", value)
    return value + 1 if name in ("axis", "split_axis", "concat_axis") else value


def _one_by_one(function, mapped, operands):
    """The results of `function` for each member of the operands that are mapped, in dim 0."""
    def one(members):
        members = iter(members)
        return function(*[next(members) if has_members else x for x, has_members in zip(operands, mapped)])
    return lax.map(one, [x for x, has_members in zip(operands, mapped) if has_members])


batching.primitive_batchers[_call_p] = _batch


# ---- Types and axes ----
# Inside jax.shard_map with check_vma=True, a value's type says along which mesh axes it varies.

def _type(x, shape, dtype=None, varying=None):
    """The type of x, but for what is given."""
    kind = jax.typeof(x).update(shape=tuple(shape), dtype=dtype or x.dtype, weak_type=False)
    return kind if varying is None else kind.update(manual_axis_type=ManualAxisType(varying=frozenset(varying)))


def _varying(x):
    return jax.typeof(x).mat.varying


def _is_checked(axes):
    """True if types say along which axes values vary."""
    return axes[0] in _varying(lax.axis_index(axes[0]))


def _vary(x, axes):
    """x as a value that varies along `axes`."""
    missing = tuple(axis for axis in axes if axis not in _varying(x))
    return lax.pcast(x, missing, to="varying") if missing and _is_checked(missing) else x


def _axes(entry):
    """An entry of a PartitionSpec, or an axis name, as a tuple of axes."""
    return () if entry is None else (entry,) if isinstance(entry, str) else tuple(entry)


def _mesh_axes(axis_name):
    """The axes that a user names, which are those of a mesh."""
    axes = _axes(axis_name)
    for axis in axes:
        lax.axis_index(axis)  # a NameError for an axis that is not bound
    mesh = jax.sharding.get_abstract_mesh()  # an empty one inside custom_partitioning
    if not axes or mesh.axis_names and axes != _in_order(mesh, axes):
        raise ValueError(f"axis_name: {axis_name!r} is refused; a name, or a tuple of names, names axes of the mesh in "
                         f"its order: {', '.join(mesh.axis_names)}")
    return axes


def _names(axes):
    """Axes as dims of Tessera's meshes, which have letters, digits and _ in their names."""
    return ",".join(re.sub(r"^(?=\d)|\W", "_", axis, flags=re.ASCII) for axis in axes)


def _dim(name, dim, x):
    """A dim of x by its number, which counts from the end if it is negative."""
    if not -x.ndim <= operator.index(dim) < x.ndim:
        raise ValueError(f"{name}: {dim} is not a dim of x, which has {x.ndim}")
    return operator.index(dim) % x.ndim


def _in_order(mesh, axes):
    """Axes in the order of the mesh."""
    return tuple(axis for axis in mesh.axis_names if axis in axes)


def _parts(mesh, axes):
    """How many parts `axes` cut a dim into."""
    return int(numpy.prod([mesh.shape[axis] for axis in axes], dtype=int))


def _placements(mesh, spec):
    """A PartitionSpec as placements of Tessera, one for each mesh axis."""
    cuts = {axis: f"S({dim})[{order}]" for dim, axes in enumerate(spec) for order, axis in enumerate(_axes(axes))}
    return ",".join(cuts.get(axis, "R") for axis in mesh.axis_names)


# ---- Collectives, inside jax.shard_map ----

def all_reduce(x, axis_name, op="sum", in_place=False):
    """The sum of x over the devices along a mesh axis, or several in mesh order, as jax.lax.psum().

    `op`: "sum", "avg", "min", "max" or "prod"; sum and avg have gradients. `in_place`: the result
    takes the memory of x, which XLA copies first if x is needed later or is an argument that is not
    donated.
    """
    _check_op(op)
    axes = _mesh_axes(axis_name)
    return _all_reduce(_vary(x, axes), axes, op, in_place, _is_checked(axes))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3, 4))
def _all_reduce(x, axes, op="sum", in_place=False, checked=False):
    kind = _type(x, x.shape, varying=_varying(x) - set(axes))
    return _call("all_reduce", [x], [kind], in_place, dims=_names(axes), op=op)[0]


def _all_reduce_backward(axes, op, in_place, checked, _, dy):
    # Where types are not checked, JAX's dy is a term of the gradient on each device.
    return _gradient_of(op, _vary(dy, axes) if checked else _all_reduce(dy, axes), axes)


_all_reduce.defvjp(lambda x, *static: (_all_reduce(x, *static), None), _all_reduce_backward)


def _check_op(op):
    if op not in ("sum", "avg", "min", "max", "prod"):
        raise ValueError(f'op: "{op}" is not sum, avg, min, max or prod')


def _gradient_of(op, dx, axes):
    """The gradient of `op` by that of the sum."""
    if op not in ("sum", "avg"):
        raise NotImplementedError(f'op "{op}" has no gradient; "sum" and "avg" have one')
    return (dx / lax.axis_size(axes) if op == "avg" else dx,)


def all_gather(x, axis_name, axis=0):
    """The x of the devices along `axis_name` one after the other in dim `axis`, as
    jax.lax.all_gather(tiled=True)."""
    axes = _mesh_axes(axis_name)
    return _all_gather(_vary(x, axes), axes, _dim("axis", axis, x))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def _all_gather(x, axes, axis):
    shape = list(x.shape)
    shape[axis] *= lax.axis_size(axes)
    return _call("all_gather", [x], [_type(x, shape)], dims=_names(axes), axis=axis)[0]


_all_gather.defvjp(lambda x, *static: (_all_gather(x, *static), None),
                   lambda axes, axis, _, dy: (_reduce_scatter(dy, axes, axis, "sum"),))


def reduce_scatter(x, axis_name, axis=0, op="sum"):
    """Part i in dim `axis` of all_reduce(x), on device i along `axis_name`, as
    jax.lax.psum_scatter(tiled=True)."""
    _check_op(op)
    axes = _mesh_axes(axis_name)
    return _reduce_scatter(_vary(x, axes), axes, _dim("axis", axis, x), op)


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _reduce_scatter(x, axes, axis, op):
    kind = _type(x, _cut(x, axis, axes))
    return _call("reduce_scatter", [x], [kind], dims=_names(axes), axis=axis, op=op)[0]


_reduce_scatter.defvjp(lambda x, *static: (_reduce_scatter(x, *static), None),
                       lambda axes, axis, op, _, dy: _gradient_of(op, _all_gather(dy, axes, axis), axes))


def all_to_all(x, axis_name, split_axis, concat_axis):
    """Cuts x in dim `split_axis` into a part for each device along `axis_name`, and puts the parts
    that come in one after the other in dim `concat_axis`, as jax.lax.all_to_all(tiled=True)."""
    axes = _mesh_axes(axis_name)
    return _all_to_all(_vary(x, axes), axes, _dim("split_axis", split_axis, x), _dim("concat_axis", concat_axis, x))


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2, 3))
def _all_to_all(x, axes, split, concat):
    shape = _cut(x, split, axes)
    shape[concat] *= lax.axis_size(axes)
    return _call("all_to_all", [x], [_type(x, shape)], dims=_names(axes), split_axis=split, concat_axis=concat)[0]


_all_to_all.defvjp(lambda x, *static: (_all_to_all(x, *static), None),
                   lambda axes, split, concat, _, dy: (_all_to_all(dy, axes, concat, split),))


def _cut(x, dim, axes):
    """The shape of x, cut in `dim`."""
    shape, parts = list(x.shape), lax.axis_size(axes)
    if shape[dim] % parts:
        raise ValueError(f"x: dim {dim} of {x.shape} has length {shape[dim]}, which is not divisible by the {parts} "
                         f"devices along {', '.join(axes)}: pad it to {-(-shape[dim] // parts) * parts}")
    shape[dim] //= parts
    return shape


# ---- Redistributions of whole arrays ----

def redistribute(x, mesh, src, dst):
    """Moves the whole array x, which lies on `mesh` by the PartitionSpec `src`, to `dst`, in one
    exchange. `src` None: from wherever x is.

    The gradient moves back. ValueError: an axis does not cut a dim evenly, as XLA's arrays must be.
    """
    _check_outside("redistribute()", "all_reduce(), all_gather(), reduce_scatter() and all_to_all() take parts")
    dst = _spec(x, mesh, dst, "dst")
    if src is None and _is_explicit(x):
        src = jax.typeof(x).sharding.spec
    if src is None:
        return _move_from_anywhere(mesh, dst)(x)
    return _move(mesh, _spec(x, mesh, src, "src"), dst)(x)


def _spec(x, mesh, spec, name):
    """A PartitionSpec with a tuple of axes for each dim of x."""
    shape = jax.typeof(x).shape
    if len(spec) > len(shape) or getattr(spec, "unreduced", None):
        raise ValueError(f"{name}: {spec} does not cut an array of shape {shape}; terms of a sum are reduced by "
                         "all_reduce() or reduce_scatter() inside jax.shard_map")
    if P.UNCONSTRAINED in tuple(spec):
        raise ValueError(f"{name}: {spec} leaves a dim open; each has its axes, or None")
    if unknown := [axis for axes in spec for axis in _axes(axes) if axis not in mesh.shape]:
        raise ValueError(f"{name}: {spec} names {unknown[0]!r}, but the mesh has the axes {', '.join(mesh.axis_names)}")
    full = P(*spec, *[None] * (len(shape) - len(spec)))
    _check_even(mesh, full, shape, name)
    return full


def _check_even(mesh, spec, shape, name):
    for dim, axes in enumerate(spec):
        parts, length = _parts(mesh, _axes(axes)), shape[dim]
        even = -(-length // parts) * parts
        if length != even:
            raise ValueError(f"{name}: {spec} cuts dim {dim} of {tuple(shape)} into {parts} parts, but {length} is not "
                             f"divisible by {parts}, and XLA's parts are equal: pad it to {even}")


def _check_outside(name, advice):
    if jax.sharding.get_abstract_mesh().manual_axes:
        raise ValueError(f"{name} takes whole arrays, not the parts that jax.shard_map gives: {advice}")


def _is_explicit(x):
    """True if x's type says how x lies: its mesh has axes of the type Explicit."""
    return AxisType.Explicit in jax.typeof(x).sharding.mesh.axis_types


def _move_parts(mesh, src, dst, shape):
    """The move, as each device sees it."""
    made = [length // _parts(mesh, _axes(axes)) for length, axes in zip(shape, dst)]
    attributes = {"from": _placements(mesh, src), "to": _placements(mesh, dst)}
    return lambda part: _call("redistribute", [part], [_type(part, made)], **attributes)[0]


@functools.lru_cache(maxsize=4096)
def _move(mesh, src, dst):
    @jax.jit
    def whole(x):
        parts = _move_parts(mesh, src, dst, x.shape)
        return jax.shard_map(parts, mesh=mesh, in_specs=src, out_specs=dst, check_vma=False)(x)
    move = jax.custom_vjp(whole)
    move.defvjp(lambda x: (move(x), None), lambda _, dy: (_move(mesh, dst, src)(dy),))
    return move


@functools.lru_cache(maxsize=4096)
def _move_from_anywhere(mesh, dst):
    """The move of an array that the compiler has laid out; the gradient moves to where the array is."""
    def there(here, operands):
        src = operands[0].sharding.spec
        if dict(here.shape) != dict(mesh.shape):
            raise ValueError(f"mesh: {mesh} is not the mesh of x, {here}")
        parts = _move_parts(here, src, dst, operands[0].shape)
        return lambda x: [parts(x)], [src], [dst]

    before, after = _factors("a", len(dst)), _factors("b", len(dst))
    move = _partitioned(lambda x: [x], there, f"{before} -> {after}",
                        members=(all, lambda x: [_move_from_anywhere(mesh, P(None, *dst))(x)]))

    def call(x):
        return lax.with_sharding_constraint(move(x)[0], NamedSharding(mesh, dst))

    moved = jax.custom_vjp(call)
    moved.defvjp(lambda x: (call(x), x), lambda x, dy: tuple(_move_home(len(dst))(dy, x)))
    return moved


@functools.cache
def _move_home(ndim):
    """The move of dy to where x is."""
    def back(mesh, operands):
        src, home = (operand.sharding.spec for operand in operands)
        parts = _move_parts(mesh, src, home, operands[0].shape)
        return lambda dy, x: [parts(dy)], [src, home], [home]

    before, after = _factors("b", ndim), _factors("a", ndim)
    return _partitioned(lambda dy, x: [dy], back, f"{before}, {after} -> {after}",
                        members=(all, lambda dy, x: _move_home(ndim + 1)(dy, x)))


def _factors(letter, ndim):
    """The dims of an array in a sharding rule; those with another letter may be cut in another way."""
    return " ".join(f"{letter}{dim}" for dim in range(ndim))


def _partitioned(plain, divide, rule, members=None, **options):
    """A function of whole arrays with a list of results: `plain` on one device; on several,
    divide(mesh, operands) has the function of their parts, and the specs of operands and results.

    Under jax.vmap, `members` = (which, function): the function takes all members at once, in dim 0,
    where which(mapped) says so.
    """
    def partition(mesh, operands, results):
        if mesh.empty:
            raise ValueError("no mesh is known: give arrays that lie by a jax.sharding.NamedSharding")
        for operand in operands:
            _check_even(mesh, operand.sharding.spec, operand.shape, "an operand")
        function, given, made = divide(mesh, operands)
        given, made = ([NamedSharding(mesh, spec) for spec in specs] for specs in (given, made))
        return mesh, function, made, tuple(given)

    whole = custom_partitioning(plain)
    whole.def_partition(partition, sharding_rule=rule, **options)
    whole = jax.custom_batching.custom_vmap(whole)

    @whole.def_vmap
    def _(_, mapped, *operands):
        at_once = members and members[0](mapped)
        made = members[1](*operands) if at_once else _one_by_one(whole, mapped, operands)
        return made, [True] * len(made)

    return jax.jit(whole)


# ---- Layers ----

def column_parallel(x, w, b=None, axis_name=None):
    """y = x w^T + b, of x (.., in), and w (out, in) and b (out) that are cut in `out`; y is cut in
    its last dim. Nothing moves, but backward x's gradient is all-reduced.

    On whole arrays the axes that cut w are taken, and x's batch may be cut by others. Inside
    jax.shard_map `axis_name` names them.
    """
    return _layer("column", x, w, b, axis_name)


def row_parallel(x, w, b=None, axis_name=None):
    """y = x w^T + b, of x (.., in) and w (out, in) that are cut in `in`, and b (out) that is not; y is
    all-reduced. Nothing moves backward. Otherwise as column_parallel()."""
    return _layer("row", x, w, b, axis_name)


def _layer(form, x, w, b, axis_name):
    operands = [jax.numpy.asarray(operand) for operand in ([x, w] if b is None else [x, w, b])]
    x, w, *b = operands
    if x.ndim < 1 or w.ndim != 2 or x.shape[-1] != w.shape[1] or any(part.shape != w.shape[:1] for part in b):
        shapes = ", ".join(f"{name} {operand.shape}" for name, operand in zip("xwb", operands))
        raise ValueError(f"{shapes}: a layer takes x (.., in), w (out, in) and b (out)")
    if x.ndim == 1:
        return _layer(form, x[None], w, *(b or [None]), axis_name)[0]
    if axis_name is not None:
        return _layer_of_parts(form, _mesh_axes(axis_name), operands)
    _check_outside(f"{form}_parallel()", "name the axis that cuts w by axis_name")
    layer = _layer_of_arrays(form)
    if _is_explicit(w):
        _, (*_, y) = _layer_specs(form, *(jax.typeof(operand).sharding.spec for operand in operands[:2]))
        layer = jax.sharding.auto_axes(layer, out_sharding=NamedSharding(jax.typeof(w).sharding.mesh, y))
    return layer(operands)


def _forward(form, attributes, operands, varying=None):
    x, w = operands[:2]
    y = _type(x, (*x.shape[:-1], w.shape[0]), jax.numpy.result_type(*operands), varying)
    return _call("linear_" + form, operands, [y], **attributes)


def _backward(form, attributes, operands, dy):
    """The gradients of x, w and, if there is one, b."""
    return _call(f"linear_{form}_backward", [*operands[:2], dy], [_type(x, x.shape) for x in operands], **attributes)


def _layer_of_parts(form, axes, operands):
    x, w, *b = operands
    if _is_checked(axes):
        # x varies wherever an operand does: JAX sums its gradient there, and the handler those of w and b.
        others = [axis for axis in frozenset().union(*map(_varying, operands)) if axis not in axes]
        x, w = _vary(x, others if form == "column" else [*others, *axes]), _vary(w, axes)
        b = [_vary(part, axes) if form == "column" else part for part in b]
    return _linear(form, axes, _is_checked(axes), [x, w, *b])


@functools.partial(jax.custom_vjp, nondiff_argnums=(0, 1, 2))
def _linear(form, axes, checked, operands):
    varying = _varying(operands[0]) | _varying(operands[1])
    if form == "row":
        varying -= set(axes)
    return _forward(form, _attributes(form, axes, operands[0]), operands, varying)[0]


def _linear_backward(form, axes, checked, operands, dy):
    x, w, *b = operands
    # Where types are not checked, JAX sums the gradients of what is replicated, and gives each device a term of dy.
    whole = ["P" if not checked or set(axes) & _varying(part) else "R" for part in operands]
    if form == "row" and not checked:
        dy = _all_reduce(dy, axes)
    attributes = _attributes(form, axes, x)
    if form == "column":
        attributes["dx"] = _by_axis(axes, whole[0], "S(0)")
    attributes["dw"] = _by_axis(axes, "S(0)" if form == "column" else "S(1)", "P", _varying(x) - _varying(w))
    for part in b:
        attributes["db"] = _by_axis(axes, "S(0)" if form == "column" else whole[2], "P", _varying(x) - _varying(part))
    return (_backward(form, attributes, operands, dy),)


_linear.defvjp(lambda *given: (_linear(*given), given[-1]), _linear_backward)


def _attributes(form, axes, x):
    """The attributes of a layer's call, where `axes` cut the weight and all other axes the batch."""
    last = f"S({x.ndim - 1})"
    return {"dims": _names(axes), "x": _by_axis(axes, "R" if form == "column" else last, "S(0)"),
            "y": _by_axis(axes, last if form == "column" else "R", "S(0)")}


def _by_axis(axes, along, other, reduced=()):
    """Placements: `along` for `axes`, R for those in `reduced`, `other` elsewhere."""
    names = jax.sharding.get_abstract_mesh().axis_names
    return ",".join(along if name in axes else "R" if name in reduced else other for name in names)


def _layer_specs(form, x, w):
    """The axes that cut the weight, and the specs of x, w, b and y, by those of x and w: weights do not move."""
    cut = _axes(w[0 if form == "column" else 1])
    batch = [tuple(axis for axis in _axes(axes) if axis not in cut) for axes in x[:-1]]
    if form == "column":
        return cut, [P(*batch, ()), P(cut, ()), P(cut), P(*batch, cut)]
    return cut, [P(*batch, cut), P((), cut), P(()), P(*batch, ())]


@functools.cache
def _layer_of_arrays(form):
    """The layer on whole arrays, as a function of the list of its operands."""
    def divide(mesh, operands, has_bias):
        x, w = (operand.sharding.spec for operand in operands[:2])
        cut, specs = _layer_specs(form, x, w)
        # In which order axes cut a dim says which part is where, and not what becomes of it.
        x, y = (P(*(_in_order(mesh, _axes(axes)) for axes in specs[i])) for i in (0, 3))
        attributes = {"dims": _names(_in_order(mesh, cut)), "x": _placements(mesh, x), "y": _placements(mesh, y)}
        return attributes, specs[:2 + has_bias], specs[3]

    def forward(mesh, operands):
        attributes, given, y = divide(mesh, operands, len(operands) == 3)
        parts = (lambda *parts: _forward(form, attributes, parts)) if attributes["dims"] else product
        return parts, given, [y]

    def backward(mesh, operands):
        attributes, given, y = divide(mesh, operands, len(operands) == 4)
        batch = tuple(axis for axis in mesh.axis_names if any(axis in _axes(axes) for axes in given[0]))

        def parts(*parts):
            if attributes["dims"]:
                return _backward(form, attributes, parts[:-1], parts[-1])
            dx, *others = gradients(*parts)  # the weight is whole on each device
            return [dx, *(_all_reduce(part, batch) if batch else part for part in others)]
        return parts, [*given, y], given

    def product(*operands):
        return [operands[0] @ operands[1].T + (operands[2] if len(operands) == 3 else 0)]

    def gradients(*given):
        return list(jax.vjp(product, *given[:-1])[1]([given[-1]]))

    def gradients_of_members(x, w, *rest):
        # x's are a layer of the other form; each member has a gradient of w, which the compiler computes.
        *b, dy = rest
        dx = _layer_of_arrays("row" if form == "column" else "column")([dy, w.T])
        dw = jax.numpy.einsum("n...o,n...k->nok", dy, x)
        return [dx, dw, *(dy.sum(axis=range(1, dy.ndim - 1)) for _ in b)]

    replicated = {"need_replication_factors": ("k",) if form == "column" else ("o",)}
    reduced = {"reduction_factors": ("k",)} if form == "row" else {}
    calls = {}
    for count, b in ((2, ""), (3, ", o")):
        calls[count] = (
            _partitioned(product, forward, f"... k, o k{b} -> ... o", **replicated, **reduced,
                         members=(lambda mapped: mapped[0] and not any(mapped[1:]),
                                  lambda *given: calls[len(given)][0](*given))),
            _partitioned(gradients, backward, f"... k, o k{b}, ... o -> ... k, o k{b}", **replicated,
                         members=(lambda mapped: mapped[0] and mapped[-1] and not any(mapped[1:-1]),
                                  gradients_of_members)))

    def call(operands):
        return calls[len(operands)][0](*operands)[0]

    layer = jax.custom_vjp(call)
    layer.defvjp(lambda operands: (call(operands), operands),
                 lambda operands, dy: (calls[len(operands)][1](*operands, dy),))
    return layer
