"""Prints tests/golden/random.txt: random numbers of jax.random (jax 0.10.2) and torch.func._random (torch 2.15).

    python tests/golden/make_random.py > tests/golden/random.txt

Lines are "split GENERATOR KEY KEY INDEX KEY KEY", and "GENERATOR KEY KEY OP DTYPE A B COUNT FIRST BITS ..": elements of
a tensor of COUNT from FIRST on, as the hexadecimal bits of each. A and B are the op's parameters.
"""
import jax
import numpy as np
import torch
import torch.func._random as philox

jax.config.update("jax_enable_x64", True)
assert jax.config.jax_threefry_partitionable

SLICES = [(21, 0, 21), (100003, 99991, 12)]
OPS = [
    ("bits", "i32", 0, 0),
    ("bits", "i64", 0, 0),
    ("uniform", "f32", 0, 1),
    ("uniform", "f32", -0.3, 0.7),
    ("uniform", "f64", 0, 1),
    ("uniform", "f64", -0.3, 0.7),
    ("uniform", "f16", 0, 1),
    ("uniform", "bf16", 0, 1),
    ("normal", "f32", 0, 1),
    ("normal", "f64", 0, 1),
    ("randint", "i32", -5, 12),
    ("randint", "i32", 0, 1 << 20),
    ("randint", "i64", -(10**12), 10**12),
    ("bernoulli", "bool", 0.3, 0),
]
JAX = {"f64": "float64", "f32": "float32", "f16": "float16", "bf16": "bfloat16", "i32": "int32", "i64": "int64"}


def by_jax(key, op, dtype, a, b, count):
    if op == "bits":
        return np.asarray(jax.random.bits(key, (count,), "u" + JAX[dtype]))
    if op == "normal":
        return np.asarray(jax.random.normal(key, (count,), JAX[dtype]))
    if op == "bernoulli":
        return np.asarray(jax.random.bernoulli(key, np.float32(a), (count,)))
    return np.asarray(getattr(jax.random, op)(key, (count,), minval=a, maxval=b, dtype=JAX[dtype]))


def by_torch(key, op, dtype, a, b, count):
    kind = getattr(torch, JAX.get(dtype, "float32"))
    if op == "bits":
        x = philox.bits(key, count, dtype=kind)
    elif op == "normal":
        x = philox.normal(key, count, dtype=kind)
    elif op == "bernoulli":
        return (philox.uniform(key, count, dtype=kind) < np.float32(a)).numpy()
    else:
        x = getattr(philox, op)(key, count, low=a, high=b, dtype=kind)
    return x.view(torch.int16).numpy() if dtype == "bf16" else x.numpy()


def print_elements(generator, words, make):
    for op, dtype, a, b in OPS:
        for count, first, length in SLICES:
            x = make(op, dtype, a, b, count)[first : first + length]
            bits = x.view("u%d" % x.dtype.itemsize)
            print(generator, *words, op, dtype, a, b, count, first, *("%x" % int(element) for element in bits))


def main():
    for seed in (0, 42, (1 << 40) + 7):
        key = jax.random.key(seed)
        words = [int(word) for word in jax.random.key_data(key)]
        for index, child in enumerate(jax.random.split(key, 3)):
            print("split threefry", *words, index, *(int(word) for word in jax.random.key_data(child)))
        child = [int(word) for word in jax.random.key_data(jax.random.fold_in(key, 123456789))]
        print("split threefry", *words, 123456789, *child)
        print_elements("threefry", words, lambda *arguments, key=key: by_jax(key, *arguments))
    for seed in (0, 42, (1 << 63) + 7):
        key = philox.key(seed)
        words = [int(word) for word in key.numpy()]
        for index, child in enumerate(philox.split(key, 3)):
            print("split philox", *words, index, *(int(word) for word in child.numpy()))
        child = philox.fold_in(key, 123456789)
        print("split philox", *words, 123456789, *(int(word) for word in child.numpy()))
        # A key that was folded in begins anywhere in its stream.
        words = [int(word) for word in child.numpy()]
        print_elements("philox", words, lambda *arguments, key=child: by_torch(key, *arguments))


main()
