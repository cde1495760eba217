"""Tessera's sharded tensors in Python hosts. `tessera.jax` has moves and layers for JAX programs."""
