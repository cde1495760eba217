"""Ops of PyTorch: plain, in one process, and of DTensors on gloo, with a process for each rank.

usage: torch_ops_peer.py plain|dtensor

Plain ops make new results or, by the way "out", write into one that exists. The backward is
torch.autograd.grad() of a graph that is kept. Tensors have the values of `tessera bench ops`, and
results and gradients are compared with those of f64 on the first rows or heads, on which they
alone depend.

https://docs.pytorch.org/docs/stable/distributed.tensor.html and https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
"""
import contextlib
import math
import sys

import torch
import torch.distributed as dist
import torch.nn.functional as F
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate, Shard
from torch.distributed.tensor.parallel import loss_parallel

import gloo
import peer

CHECKED = 4  # rows, or elements
OPERANDS = 3  # the gradient of the result has the values of the operand of this number
aten = torch.ops.aten


def value(operand, shape):
    index = torch.arange(math.prod(shape))
    return (((index * 37 + operand * 11) % 101 - 50) / 32).reshape(shape)


def ids(rows, classes):
    return torch.arange(rows) * 7919 % classes


def normalized(norm):
    return lambda x, *weights: norm(x, x.shape[-1:], *weights, eps=1e-5)


# What an op is, of tensors and of DTensors.
OPS = {
    "add 64 bytes": torch.add, "add": torch.add, "silu_mul": lambda gate, up: F.silu(gate) * up, "gelu": F.gelu,
    "gelu tanh": lambda x: F.gelu(x, approximate="tanh"), "tanh": torch.tanh, "rms_norm": normalized(F.rms_norm),
    "layer_norm": normalized(F.layer_norm), "softmax": lambda x: torch.softmax(x, -1),
    "attention": lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None], is_causal=True)[0],
    "decode attention": lambda q, k, v: F.scaled_dot_product_attention(q[None], k[None], v[None])[0],
    "cross_entropy": lambda x, targets: F.cross_entropy(x, targets, reduction="none"),
}


def norm_into(y):
    statistics = [torch.empty(*y.shape[:-1], 1) for _ in range(2)]
    return lambda x, w, b: aten.native_layer_norm.out(x, x.shape[-1:], w, b, 1e-5, out0=y, out1=statistics[0], out2=statistics[1])[0]


# Forms that write into a result; of F.rms_norm(), attention and losses there is none.
INTO = {
    "add 64 bytes": lambda y: lambda a, b: torch.add(a, b, out=y), "add": lambda y: lambda a, b: torch.add(a, b, out=y),
    "silu_mul": lambda y: lambda gate, up: torch.mul(aten.silu.out(gate, out=y), up, out=y),
    "gelu": lambda y: lambda x: aten.gelu.out(x, out=y), "gelu tanh": lambda y: lambda x: aten.gelu.out(x, approximate="tanh", out=y),
    "tanh": lambda y: lambda x: torch.tanh(x, out=y), "softmax": lambda y: lambda x: torch.softmax(x, -1, out=y), "layer_norm": norm_into,
}


def operands(case):
    shapes = case["shapes"]
    if case["op"] == "cross_entropy":
        return [value(0, shapes[0]), ids(*shapes[0])]
    return [value(i, shape) for i, shape in enumerate(shapes)]


def slices(case, tensors):
    """What the first rows or heads of the result depend on, in f64."""
    count = 1 if "attention" in case["op"] else CHECKED
    whole = [i > 0 and case["op"] in ("rms_norm", "layer_norm") for i in range(len(tensors))]
    parts = [t if keep else t[:count] for t, keep in zip(tensors, whole)]
    return [t.double() if t.is_floating_point() else t for t in parts]


def differing(found, wanted, tolerance=1e-4):
    """The number of elements of the first rows that are not those of f64."""
    close = (found[:len(wanted)].double() - wanted).abs() <= tolerance * wanted.abs().clamp(min=1)
    return int((~close).sum())


def leaves(tensors):
    return [t.detach().requires_grad_() for t in tensors if t.is_floating_point()]


def graph(op, tensors):
    """The operands that take a gradient, and the result with its graph."""
    wanted = iter(given := leaves(tensors))
    return given, op(*[next(wanted) if t.is_floating_point() else t for t in tensors])


def whole_of(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def wrong_gradients(case, found, dout):
    given, y = graph(OPS[case["op"]], slices(case, operands(case)))
    wanted = torch.autograd.grad(y, given, dout[:len(y)].double())
    return sum(differing(whole_of(one), right) for one, right in zip(found, wanted))


def wrong_results(case, found):
    return differing(whole_of(found), OPS[case["op"]](*slices(case, operands(case))))


def measure(call, samples, together):
    return peer.measure(lambda _: call(), samples, together=together, slowest=gloo.most)


def answer(case, tensors, op, like, together=lambda: None):
    """Times `op` of the tensors and, if asked for, its backward. `like(tensor)` lays out the
    gradient of the result."""
    samples, seconds = case["samples"], {}
    with torch.no_grad():
        seconds["forward"] = measure(lambda: op(*tensors), samples, together)
        wrong = wrong_results(case, op(*tensors))
    if "backward" in case["passes"]:
        given, y = graph(OPS[case["op"]], tensors)
        dout = value(OPERANDS, y.shape)
        laid = like(dout)
        seconds["backward"] = measure(lambda: torch.autograd.grad(y, given, laid, retain_graph=True), samples, together)
        wrong += wrong_gradients(case, torch.autograd.grad(y, given, laid, retain_graph=True), dout)
    return {"seconds": seconds, "wrong": wrong}


def plain(case):
    tensors = operands(case)
    op = INTO[case["op"]](torch.empty_like(tensors[0])) if case["way"] == "out" else OPS[case["op"]]
    return answer(case, tensors, op, lambda dout: dout)


def part(whole, placement, mesh):
    """The DTensor of a tensor that every rank has."""
    local = whole.chunk(mesh.size(), placement.dim)[mesh.get_local_rank()].contiguous() if placement.is_shard() else whole
    return DTensor.from_local(local, mesh, [placement], run_check=False, shape=whole.shape, stride=whole.stride())


def distributed(mesh, case):
    is_loss = case["op"] == "cross_entropy"
    cuts = [Shard(1), Replicate()] if is_loss else [Shard(0) if len(shape) == len(case["shapes"][0]) else Replicate() for shape in case["shapes"]]
    tensors = [part(t, cut, mesh) for t, cut in zip(operands(case), cuts)]
    with loss_parallel() if is_loss else contextlib.nullcontext():
        return answer(case, tensors, OPS[case["op"]], lambda dout: part(dout, Replicate() if is_loss else Shard(0), mesh), dist.barrier)


def main():
    torch.set_num_threads(1)
    if sys.argv[1] == "plain":
        peer.serve(plain)
        return
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))
    peer.serve(lambda case: distributed(mesh, case), speaks=dist.get_rank() == 0)
    dist.destroy_process_group()


main()
