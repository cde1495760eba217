"""JAX on CPU devices, in one process with a device for each rank, used as its documentation does.

https://docs.jax.dev/en/latest/notebooks/Distributed_arrays_and_automatic_parallelization.html and
https://docs.jax.dev/en/latest/notebooks/shard_map.html; a Partial tensor is the devices' terms
inside shard_map.
"""
import jax
import numpy
from jax.sharding import NamedSharding
from jax.sharding import PartitionSpec as Spec

import peer

SPECS = {"S(0)": Spec("x", None), "S(1)": Spec(None, "x"), "R": Spec()}


def sharded(array, mesh, spec):
    return jax.device_put(array, NamedSharding(mesh, spec))


def reduce_to(mesh, target):
    """A function from an array of shape (ranks * rows, columns), in which each device's rows are
    its term, to the sum in the target's layout."""
    if target == "R":
        body = lambda t: jax.lax.psum(t, "x")  # noqa: E731
    else:
        body = lambda t: jax.lax.psum_scatter(t, "x", scatter_dimension=0, tiled=True)  # noqa: E731
    return jax.jit(jax.shard_map(body, mesh=mesh, in_specs=Spec("x", None), out_specs=SPECS[target]))


def way_of(case, mesh):
    """A function from source to destination."""
    target = NamedSharding(mesh, SPECS[case["to"]])
    if case["way"] == "device_put":
        return lambda x: jax.device_put(x, target)
    if case["way"] == "jit":
        return jax.jit(lambda x: x, out_shardings=target)
    return reduce_to(mesh, case["to"])


def again(x):
    """A new array on the same memory. An array caches the host copy that device_put makes, so
    moving the same array again would cost less."""
    return jax.make_array_from_single_device_arrays(x.shape, x.sharding, [shard.data for shard in x.addressable_shards])


def move(mesh, case):
    shape, partial = case["shape"], case["from"] == "P"
    assert mesh.size == case["ranks"], f"{mesh.size} devices"
    if partial:
        x = sharded(numpy.concatenate([peer.term(shape, rank) for rank in range(mesh.size)]), mesh, Spec("x", None))
    else:
        x = sharded(peer.reference(shape), mesh, SPECS[case["from"]])
    run = way_of(case, mesh)
    seconds = peer.measure(lambda source: run(source).block_until_ready(), case["samples"], lambda calls: [again(x) for _ in range(calls)])
    y = run(x)
    assert y.sharding.is_equivalent_to(NamedSharding(mesh, SPECS[case["to"]]), 2), y.sharding
    expected = peer.reference(shape, mesh.size if partial else None)
    wrong = sum(int((numpy.asarray(shard.data) != expected[shard.index]).sum()) for shard in y.addressable_shards)
    return {"seconds": seconds, "wrong": wrong}


def main():
    mesh = jax.make_mesh((jax.device_count(),), ("x",))
    peer.serve(lambda case: move(mesh, case))


main()
