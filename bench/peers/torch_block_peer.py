"""A block of a Llama in PyTorch: plain, in one process, and by PyTorch's tensor parallelism on gloo,
with a process for each rank, used as its documentation does.

usage: torch_block_peer.py plain|parallel

The block and its values are those of `tessera bench program llama-block`, and its last row is
compared with that of f64.

https://docs.pytorch.org/tutorials/intermediate/TP_tutorial.html and https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
"""
import math
import sys

import numpy
import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import gloo
import peer

# Values that are given, in the order of tools/bench/program/models.h.
GIVEN = ["x", "gate", "up", "down", "norm", "q", "k", "v", "o", "mlp_norm"]
UNSCALED = ("x", "norm", "mlp_norm")
ROPE_BASE, EPSILON = 10000.0, 1e-5
# As in tools/bench/program/side.c, relative to the largest of 1 and the size of the result: sums of f32 over at most 2^14 terms of random
# signs, a dozen one after the other, round by less than 2^-24 * 2^7 * 12; whatever lies in a wrong place is off by about 1.
TOLERANCE = 2.0**-12


def mix(x):
    """SplitMix64's last step, of numpy's uint64, which wrap."""
    x = (x ^ x >> numpy.uint64(30)) * numpy.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ x >> numpy.uint64(27)) * numpy.uint64(0x94D049BB133111EB)
    return x ^ x >> numpy.uint64(31)


def value(name, shape):
    """model_value() of tools/bench/program/models.c, which f32 holds exactly."""
    index = numpy.arange(math.prod(shape), dtype=numpy.uint64)
    mixed = mix((index * numpy.uint64(16) + numpy.uint64(GIVEN.index(name) + 1)) * numpy.uint64(0x9E3779B97F4A7C15))
    values = (mixed >> numpy.uint64(41)).astype(numpy.float64) / (1 << 22) - 1
    scale = 1 if name in UNSCALED else 2.0**-math.floor(math.log2(shape[-1]) / 2 + 0.5)
    return torch.from_numpy(values * scale).reshape(shape)


def angles(tokens, dim):
    """The angle by which rotary positions turn each element of a head, for each token."""
    half = torch.arange(tokens)[:, None] * ROPE_BASE ** (-2 * torch.arange(dim // 2, dtype=torch.float64) / dim)
    return torch.cat([half, half], -1)[:, None]


class Block(nn.Module):
    """The angles of rotary positions are computed once, as models usually do. Heads are told by the
    projections, so that a rank's are those of its parts."""

    def __init__(self, case):
        super().__init__()
        hidden, intermediate = case["hidden"], case["intermediate"]
        self.dim = hidden // case["heads"]
        keys = case["kv_heads"] * self.dim
        self.norm, self.mlp_norm = (nn.RMSNorm(hidden, EPSILON) for _ in range(2))
        self.q, self.k, self.v, self.o = (nn.Linear(hidden, out, bias=False) for out in (hidden, keys, keys, hidden))
        self.gate, self.up = (nn.Linear(hidden, intermediate, bias=False) for _ in range(2))
        self.down = nn.Linear(intermediate, hidden, bias=False)
        turned = angles(case["tokens"], self.dim)
        self.register_buffer("cos", turned.cos())
        self.register_buffer("sin", turned.sin())

    def heads(self, x):
        return x.view(*x.shape[:2], -1, self.dim)

    def rope(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def attention(self, x):
        q, k, v = self.rope(self.heads(self.q(x))), self.rope(self.heads(self.k(x))), self.heads(self.v(x))
        mixed = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in (q, k, v)), is_causal=True, enable_gqa=True)
        return self.o(mixed.transpose(1, 2).flatten(2))

    def mlp(self, x):
        return self.down(F.silu(self.gate(x)) * self.up(x))

    def forward(self, x):
        x = x + self.attention(self.norm(x))
        return x + self.mlp(self.mlp_norm(x))


def make(case, dtype):
    """The block and its input."""
    block = Block(case).double().eval()
    for name in GIVEN[1:]:
        weight = getattr(block, name).weight
        weight.copy_(value(name, weight.shape))
    return block.to(dtype), value("x", (1, case["tokens"], case["hidden"])).to(dtype)


def parallelized(block, mesh, case):
    for what in ("heads", "kv_heads"):
        if case[what] % mesh.size():
            raise ValueError(f"{case[what]} {what} do not divide by {mesh.size()} ranks")
    plan = {**dict.fromkeys(("q", "k", "v", "gate", "up"), ColwiseParallel()), **dict.fromkeys(("o", "down"), RowwiseParallel())}
    return parallelize_module(block, mesh, plan)


def differing(found, wanted):
    """The number of elements that are not those of f64."""
    return int((~((found.double() - wanted).abs() <= TOLERANCE * wanted.abs().clamp(min=1))).sum())


def answer(case, lay=lambda block: block, together=lambda: None):
    """Times the block, with its weights laid out by `lay`."""
    block, x = make(case, torch.float32)
    block = lay(block)
    seconds = peer.measure(lambda _: block(x), case["samples"], together=together, slowest=gloo.most)
    whole, input_ = make(case, torch.float64)
    return {"seconds": seconds, "wrong": int(gloo.most(differing(block(x)[0, -1], whole(input_)[0, -1])))}


def serve(given, speaks=True):
    with torch.no_grad():
        peer.serve(given, speaks)


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "plain":
        serve(answer)
        return
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    serve(lambda case: answer(case, lambda block: parallelized(block, mesh, case), dist.barrier), dist.get_rank() == 0)
    dist.destroy_process_group()


main()
