"""Weights by rule, so that a checkpoint need not be kept: byte i of SHAKE-256 of a tensor's name is its element i. Standard library only."""
import hashlib
import math
import struct

# The parts of one expert in a stacked tensor, by the end of its name: as Qwen3-MoE calls them, and as Mixtral does.
PARTS = {".mlp.experts.gate_up_proj": ((".mlp.experts.{}.gate_proj.weight", ".mlp.experts.{}.up_proj.weight"),
                                       (".block_sparse_moe.experts.{}.w1.weight", ".block_sparse_moe.experts.{}.w3.weight")),
         ".mlp.experts.down_proj": ((".mlp.experts.{}.down_proj.weight",), (".block_sparse_moe.experts.{}.w2.weight",))}


def value(name, byte):
    """An element of the tensor `name`, which f32, f16 and bf16 hold exactly: norms are about 1, and all else about 0."""
    if "norm" in name:
        return (128 + (byte & 254)) / 256
    return (byte - 256 * (byte > 127)) / (2048 if name.endswith("bias") else 512)


def pack(name, shape, dtype):
    """The tensor's bytes, of dtype F32 or BF16, as files hold them."""
    encoded = [struct.pack("<f", value(name, byte))[2 if dtype == "BF16" else 0:] for byte in range(256)]
    return b"".join(map(encoded.__getitem__, hashlib.shake_256(name.encode()).digest(math.prod(shape))))


def pack_stacked(name, shape, single, dtype):
    """The bytes of a tensor of the stacked form, which has the elements of those of `single`, name -> shape."""
    for end, kinds in PARTS.items():
        if name.endswith(end):
            start = name.removesuffix(end)
            parts = next(parts for parts in kinds if start + parts[0].format(0) in single)
            names = [start + part.format(expert) for expert in range(shape[0]) for part in parts]
            return b"".join(pack(part, single[part], dtype) for part in names)
    original = name.replace(".mlp.gate.", ".block_sparse_moe.gate.")
    return pack(original if original in single else name, shape, dtype)


def tensors(expected, form, dtype):
    """name -> (dtype, shape, bytes) of a model's checkpoint, in one of the forms of its expected.json, "single" or "stacked"."""
    single = expected["single"]
    return {name: (dtype, shape, pack(name, shape, dtype) if form == "single" else pack_stacked(name, shape, single, dtype))
            for name, shape in expected[form].items()}


def tokens(count, vocabulary):
    """Tokens to train on: of each two that follow one another the second is often the same."""
    drawn = hashlib.shake_256(b"tokens").digest(2 * count)
    made = [7]
    while len(made) < count:
        chance, other = drawn[2 * len(made)], drawn[2 * len(made) + 1]
        made.append((5 * made[-1] + 3) % vocabulary if chance < 192 else other % vocabulary)
    return made
