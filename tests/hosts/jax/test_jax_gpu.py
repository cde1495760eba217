#!/usr/bin/env python3
"""What tessera.jax makes of programs for GPUs, without one: JAX takes the handlers, and lowers the programs for CUDA.

usage: test_jax_gpu.py LIBTESSERA_XLA
"""
import os
import pathlib
import sys

os.environ["JAX_NUM_CPU_DEVICES"] = "4"
os.environ["PJRT_NPROC"] = "8"
ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path[:0] = [str(ROOT / "src/hosts/python"), str(ROOT / "tests/invariants")]
import jax  # noqa: E402
import jax.numpy as jnp  # noqa: E402
import numpy  # noqa: E402
from jax.sharding import Mesh, PartitionSpec as P  # noqa: E402

import tap  # noqa: E402
import tessera.jax  # noqa: E402

# Partition r is rank r, whichever device that is.
MESH = Mesh(numpy.array(jax.devices())[[2, 0, 3, 1]].reshape(2, 2), ("dp", "tp"))


def calls_of(function, specs, *operands):
    """The lines with custom calls in the program of a function of parts."""
    program = jax.jit(jax.shard_map(function, mesh=MESH, in_specs=specs[:-1], out_specs=specs[-1]))
    text = program.trace(*operands).lower(lowering_platforms=("cuda",)).as_text()
    return [line for line in text.splitlines() if "custom_call @tsr_xla_" in line]


def collectives_are_lowered_for_cuda():
    x = jnp.ones((4, 8), "float32")
    for name, function, spec in (("all_reduce", lambda x: tessera.jax.all_reduce(x, "tp"), P(None, None)),
                                 ("reduce_scatter", lambda x: tessera.jax.reduce_scatter(x, "tp"), P("tp", None))):
        call, = calls_of(function, (P(None, "tp"), spec), x)
        assert f"@tsr_xla_{name}(" in call and 'mesh = "dp=2,tp=2"' in call and 'dims = "tp"' in call, call
        assert "devices" not in call, call


def layers_are_lowered_for_cuda():
    x, w = jnp.ones((4, 8), "float32"), jnp.ones((6, 8), "float32")
    specs = P("dp", None), P("tp", None), P("dp", "tp")
    call, = calls_of(lambda x, w: tessera.jax.column_parallel(x, w, axis_name="tp"), specs, x, w)
    assert "@tsr_xla_linear_column(" in call and "devices" not in call, call


tessera.jax.load(sys.argv[1])
tap.run_cases(collectives_are_lowered_for_cuda, layers_are_lowered_for_cuda)
