#!/usr/bin/env python3
"""Makes pytorch_ops.jsonl: answers of PyTorch for ops, forward and backward, in f64. Run by hand, with PyTorch installed:

    tests/golden/make_ops.py > tests/golden/pytorch_ops.jsonl

A line is a case: the op and its attributes as `tessera ops` takes them, the operands (null: left out), the results, the gradient of the
first result (null: none is taken), and the gradients of the operands (null: the operand has none). Tensors have shape, dtype and values in
row-major order. Operands are multiples of 1/16, which every program reads alike."""
import json
import random

import torch
import torch.nn.functional as F

numbers = random.Random(17)
DTYPES = {torch.float64: "f64", torch.int64: "i64", torch.bool: "bool", torch.float32: "f32"}


def shaped(shape, values, dtype=torch.float64):
    return torch.tensor(values, dtype=dtype).reshape(shape)


def count(shape):
    total = 1
    for size in shape:
        total *= size
    return total


def some(*shape, low=-32, high=32):
    return shaped(shape, [numbers.randint(low, high) / 16 for _ in range(count(shape))])


def positive(*shape):
    return some(*shape, low=4, high=48)


def distinct(*shape):
    order = list(range(count(shape)))
    numbers.shuffle(order)
    return shaped(shape, [(n - len(order) // 2) / 8 for n in order])


def ids(bound, *shape):
    return shaped(shape, [numbers.randrange(bound) for _ in range(count(shape))], torch.int64)


def mask(*shape):
    return shaped(shape, [numbers.random() < 0.5 for _ in range(count(shape))], torch.bool)


def tensor_of(x):
    if x is None:
        return None
    return {"shape": list(x.shape), "dtype": DTYPES[x.dtype], "values": x.detach().reshape(-1).tolist()}


def case(op, function, *operands, gradient=True, **attributes):
    """Prints a case; `function` takes the operands."""
    taken = [x.clone().requires_grad_(x.is_floating_point() and gradient) if x is not None else None for x in operands]
    results = function(*taken)
    results = results if isinstance(results, tuple) else (results,)
    dout, gradients = None, [None] * len(taken)
    if gradient and results[0].is_floating_point() and results[0].requires_grad:
        dout = some(*results[0].shape)
        wanted = [x for x in taken if x is not None and x.requires_grad]
        found = iter(torch.autograd.grad(results[0], wanted, dout, allow_unused=True))
        gradients = [tensor_of(next(found)) if x is not None and x.requires_grad else None for x in taken]
    print(json.dumps({"op": op, "attributes": attributes, "operands": [tensor_of(x) for x in operands],
                      "results": [tensor_of(x) for x in results], "dout": tensor_of(dout), "gradients": gradients}))


def pointwise():
    pairs = [(some(5, 6), some(5, 6)), (some(4, 3, 5), some(5)), (some(6, 1), some(3, 1, 7))]
    for op, function in {"add": torch.add, "sub": torch.sub, "mul": torch.mul}.items():
        for x, y in pairs:
            case(op, function, x, y)
    case("div", torch.div, some(5, 6), positive(6))
    case("pow", torch.pow, positive(4, 5), some(5))
    for op, function in {"neg": torch.neg, "exp": torch.exp, "tanh": torch.tanh, "sigmoid": torch.sigmoid, "silu": F.silu,
                         "relu": torch.relu, "abs": torch.abs}.items():
        case(op, function, some(5, 7))
    for op, function in {"log": torch.log, "sqrt": torch.sqrt, "rsqrt": torch.rsqrt}.items():
        case(op, function, positive(5, 7))
    for form in ("none", "tanh"):
        case("gelu", lambda x, form=form: F.gelu(x, approximate=form), some(5, 7), approximate=form)
    case("silu_mul", lambda gate, up: F.silu(gate) * up, some(5, 7), some(5, 7))
    case("where", torch.where, mask(5, 6), some(5, 6), some(6))
    case("scale", lambda x: x * 1.25, some(5, 6), factor="1.25")
    case("cast", lambda x: x.to(torch.int64), some(5, 6), gradient=False, dtype="i64")
    case("clamp", lambda x: torch.clamp(x, -0.75, 1.0), some(5, 6), min="-0.75", max="1.0")
    case("masked_fill", lambda x, m: x.masked_fill(m, -2.5), some(5, 6), mask(5, 6), value="-2.5")
    for op in ("eq", "ne", "lt", "le", "gt", "ge"):
        case(op, getattr(torch, op), some(5, 6, low=-2, high=2), some(5, 6, low=-2, high=2), gradient=False)


def reductions():
    for op, function in {"sum": torch.sum, "mean": torch.mean, "logsumexp": torch.logsumexp}.items():
        case(op, lambda x, f=function: f(x, (1,)), some(4, 7, 3), dim="1")
        case(op, lambda x, f=function: f(x, (0, 2), keepdim=True), some(4, 7, 3), dim="0,2", keep="1")
    for op, function in {"max": torch.amax, "min": torch.amin}.items():
        case(op, lambda x, f=function: f(x, (1,)), distinct(4, 7, 3), dim="1")
        case(op, lambda x, f=function: f(x, (1,)), some(4, 7, low=-2, high=2), dim="1")
    case("prod", lambda x: torch.prod(x, 1), positive(4, 5, 3), dim="1")
    case("norm", lambda x: torch.linalg.vector_norm(x, 2, (1,)), some(4, 7), dim="1")
    for op in ("argmax", "argmin"):
        case(op, lambda x, op=op: getattr(torch, op)(x, 1), distinct(4, 7, 3), gradient=False, dim="1")
    case("any", lambda x: torch.any(x, 1), mask(4, 3), gradient=False, dim="1")
    case("all", lambda x: torch.all(x, 1), mask(4, 3), gradient=False, dim="1")
    case("cumsum", lambda x: torch.cumsum(x, 1), some(4, 7, 3), dim="1")


def norms():
    for op, function in {"softmax": F.softmax, "log_softmax": F.log_softmax}.items():
        case(op, lambda x, f=function: f(x, 1), some(4, 7, 3), dim="1")
        case(op, lambda x, f=function: f(x, -1), some(4, 9))
    case("rms_norm", lambda x, w: F.rms_norm(x, (8,), w, 1e-5), some(5, 8), some(8), epsilon="1e-5")
    case("layer_norm", lambda x, w, b: F.layer_norm(x, (8,), w, b, 1e-5), some(5, 8), some(8), some(8), epsilon="1e-5")
    case("layer_norm", lambda x, w, b: F.layer_norm(x, (8,), w, b, 1e-5), some(2, 3, 8), some(8), None, epsilon="1e-5")


def products():
    case("matmul", torch.matmul, some(5, 7), some(7, 6))
    case("matmul", torch.matmul, some(3, 4, 7), some(7, 5))
    case("matmul", torch.matmul, some(2, 1, 4, 5), some(3, 5, 2))
    case("linear", F.linear, some(4, 7), some(5, 7), some(5))
    case("linear", lambda x, w, b: F.linear(x, w), some(2, 3, 7), some(5, 7), None)
    for equation, shapes in {"ij,jk->ik": ((4, 5), (5, 3)), "bij,bkj->bik": ((2, 3, 5), (2, 4, 5)), "ij,i->j": ((4, 5), (4,)),
                             "bhqd,bhkd->bhqk": ((2, 2, 3, 4), (2, 2, 5, 4))}.items():
        a, b = shapes
        case("einsum", lambda x, y, e=equation: torch.einsum(e, x, y), some(*a), some(*b), equation=equation)


def attend(q, k, v, **options):
    groups = q.shape[-3] // k.shape[-3]
    return F.scaled_dot_product_attention(q, k.repeat_interleave(groups, -3), v.repeat_interleave(groups, -3), **options)


def rotate(x, positions, base):
    half = x.shape[-1] // 2
    frequencies = base ** (-torch.arange(half, dtype=torch.float64) / half)
    angles = positions.to(torch.float64)[:, None] * frequencies
    cos, sin = (torch.cat((f(angles), f(angles)), -1)[:, None, :] for f in (torch.cos, torch.sin))
    return x * cos + torch.cat((-x[..., half:], x[..., :half]), -1) * sin


def transformers():
    case("attention", attend, some(2, 4, 5, 4), some(2, 4, 5, 4), some(2, 4, 5, 3))
    case("attention", lambda q, k, v: attend(q, k, v, is_causal=True), some(4, 6, 4), some(2, 6, 4), some(2, 6, 4), causal="1")
    case("attention", lambda q, k, v: attend(q, k, v, scale=0.25), some(2, 3, 4), some(2, 7, 4), some(2, 7, 4), scale="0.25")
    case("rope", lambda x, p: rotate(x, p, 10000.0), some(2, 5, 3, 6), shaped((5,), [0, 1, 2, 7, 100], torch.int64), base="10000")


def rows_by_id():
    case("embedding", lambda w, i: F.embedding(i, w), some(9, 4), ids(9, 2, 5))
    case("gather", lambda x, i: torch.gather(x, 1, i), some(4, 7), ids(7, 4, 3), dim="1")
    case("index_select", lambda x, i: torch.index_select(x, 0, i), some(6, 4), ids(6, 5), dim="0")
    case("scatter_add", lambda x, i, s: torch.scatter_add(x, 1, i, s), some(4, 7), ids(7, 4, 5), some(4, 5), dim="1")
    case("one_hot", lambda i: F.one_hot(i, 6), ids(6, 3, 4), gradient=False, classes="6")
    case("topk", lambda x: tuple(torch.topk(x, 3, 1)), distinct(4, 7), k="3", dim="1")
    case("sort", lambda x: tuple(torch.sort(x, 1, descending=True)), distinct(4, 7), dim="1", descending="1")
    case("bincount", lambda i: torch.bincount(i, minlength=8), ids(8, 12), gradient=False, length="8")


def losses():
    targets = ids(9, 6)
    for reduction in ("mean", "sum", "none"):
        case("cross_entropy", lambda x, t, r=reduction: F.cross_entropy(x, t, reduction=r), some(6, 9), targets, reduction=reduction)
    case("cross_entropy", lambda x, t: F.cross_entropy(x, t, label_smoothing=0.125), some(6, 9), targets, label_smoothing="0.125")
    case("cross_entropy", lambda x, t: F.cross_entropy(x, t, ignore_index=3), some(7, 5),
         shaped((7,), [0, 3, 4, 1, 3, 2, 0], torch.int64), ignore_index="3")


def views():
    x = some(4, 6)
    case("reshape", lambda x: x.reshape(2, 2, 6), x, shape="2x2x6")
    case("reshape", lambda x: x.reshape(24), x, shape="24")
    case("transpose", lambda x: x.transpose(0, 1), x, dim0="0", dim1="1")
    case("permute", lambda x: x.permute(2, 0, 1), some(2, 3, 4), dims="2,0,1")
    case("slice", lambda x: x[:, 1:5], x, dim="1", start="1", end="5")
    case("concat", lambda x, y, *rest: torch.cat((x, y), 1), x, some(4, 3), dim="1")
    case("squeeze", lambda x: x.squeeze(1), some(4, 1, 6), dim="1")
    case("expand", lambda x: x.expand(4, 3, 6), some(4, 1, 6), shape="4x3x6")
    case("flip", lambda x: x.flip(1), x, dim="1")


for group in (pointwise, reductions, norms, products, transformers, rows_by_id, losses, views):
    group()
