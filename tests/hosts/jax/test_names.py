#!/usr/bin/env python3
"""tessera.jax told axes, dims and options: names of any kind, and what is refused when a program is traced.

usage: test_names.py LIBTESSERA_XLA
"""
import os
import pathlib
import re
import sys

os.environ["JAX_NUM_CPU_DEVICES"] = "4"
os.environ["PJRT_NPROC"] = "8"
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "src/hosts/python"), str(ROOT / "tests/invariants")]
import jax  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P  # noqa: E402

import tap  # noqa: E402
import tessera.jax  # noqa: E402

X = numpy.arange(64, dtype="float32").reshape(8, 8)


def mesh_of(**axes):
    return Mesh(numpy.array(jax.devices()).reshape(*axes.values()), tuple(axes))


LINE, GRID = mesh_of(x=4), mesh_of(dp=2, tp=2)


def inside(function, mesh=LINE):
    axes = P(mesh.axis_names)
    return jax.jit(jax.shard_map(function, mesh=mesh, in_specs=axes, out_specs=axes))(X)


def refused(sentence, call):
    try:
        call()
    except ValueError as error:
        if not re.search(sentence, str(error)):
            raise AssertionError(f'"{error}" does not say "{sentence}"') from error
        return
    raise AssertionError(f'nothing was refused: "{sentence}"')


def names_of_axes_may_have_any_characters():
    for names in (("data-parallel",), ("1st axis", "2nd axis"), ("a" * 200,)):
        mesh = mesh_of(**dict(zip(names, (4,) if len(names) == 1 else (2, 2))))
        moved = tessera.jax.redistribute(X, mesh, P(names[0]), P(None, names[-1]))
        assert numpy.array_equal(moved, X)
        total = inside(lambda x, names=names: tessera.jax.all_reduce(x, names) + 0 * x, mesh)
        assert numpy.array_equal(total[:2], X.reshape(4, 2, 8).sum(axis=0))


def dims_are_those_of_the_operand():
    for call, name in ((lambda x, dim: tessera.jax.all_gather(x, "x", dim), "axis"),
                       (lambda x, dim: tessera.jax.reduce_scatter(x, "x", dim), "axis"),
                       (lambda x, dim: tessera.jax.all_to_all(x, "x", dim, 0), "split_axis"),
                       (lambda x, dim: tessera.jax.all_to_all(x, "x", 1, dim), "concat_axis")):
        for dim in (2, -3, 64):
            refused(f"{name}: {dim} is not a dim of x, which has 2", lambda: inside(lambda x: call(x, dim)))
        refused("is not a dim of x, which has 0", lambda: inside(lambda x: call(x[0, 0], 0)))
    assert inside(lambda x: tessera.jax.all_gather(x, "x", -1)).shape == (8, 32)


def axes_are_those_of_the_mesh():
    refused("axis_name: .* names axes of the mesh in its order: dp, tp",
            lambda: inside(lambda x: tessera.jax.all_reduce(x, ("tp", "dp")), GRID))
    refused("axis_name: .* names axes of the mesh", lambda: inside(lambda x: tessera.jax.all_gather(x, ())))
    refused("axis_name: .* names axes of the mesh", lambda: inside(lambda x: tessera.jax.column_parallel(x, x, axis_name=())))

    def members(x):
        return jax.vmap(lambda row: tessera.jax.all_reduce(row, "v"), axis_name="v")(x)
    refused("axis_name: .* names axes of the mesh in its order: x", lambda: inside(members))
    for call in (members, jax.jit(members)):
        refused("jax.vmap's own axis names", lambda: call(X))


def weights_may_be_cut_by_axes_in_any_order():
    x, w, weights = X % 5, X % 7, X % 3
    for form, spec in ((tessera.jax.column_parallel, P(("tp", "dp"))), (tessera.jax.row_parallel, P(None, ("tp", "dp")))):
        def loss(x, w, form=form):
            return (form(x, w) * weights).sum()
        lies = jax.device_put(w, NamedSharding(GRID, spec))
        assert numpy.array_equal(form(x, lies), x @ w.T)
        for mine, plain in zip(jax.jit(jax.grad(loss, (0, 1)))(x, lies), (weights @ w, weights.T @ x)):
            assert numpy.array_equal(mine, plain)


def specs_and_timeouts_are_checked():
    refused("src: .* leaves a dim open", lambda: tessera.jax.redistribute(X, LINE, P(P.UNCONSTRAINED), P()))
    for timeout in (-1, float("inf"), float("nan")):
        refused("timeout: .* seconds, 0 or more", lambda: tessera.jax.load(timeout=timeout))


TESTS = [names_of_axes_may_have_any_characters, dims_are_those_of_the_operand, axes_are_those_of_the_mesh, weights_may_be_cut_by_axes_in_any_order,
         specs_and_timeouts_are_checked]


tessera.jax.load(sys.argv[1])
tap.run_cases(*TESTS)
