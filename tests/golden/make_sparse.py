#!/usr/bin/env python3
"""Makes sparse.txt: tables after some steps of the sparse optimizers of PyTorch, torchrec and DGL, in f64. Run by hand, with PyTorch
installed, and these sources at hand: DGL's python/dgl/optim/pytorch/sparse_optim.py, torchrec's torchrec/optim/rowwise_adagrad.py.

    tests/golden/make_sparse.py SPARSE_OPTIM ROWWISE_ADAGRAD > tests/golden/sparse.txt

A case is "case KIND DUPLICATES STEPS" and numbers: learning rate, momentum, beta1, beta2, epsilon, weight decay, initial accumulator, and
whether epsilon is in the root. Then come "begin" and the table's elements; for each step "step", its ids, and "rows" with their gradients;
and "end" with the table's elements, and states by name. Learning rates are powers of two, so that a fused multiply-add gives what
two operations give; gradients are multiples of 1/16, so that the sums of their squares are exact."""
import importlib.util
import random
import sys
import types

import torch

ROWS, WIDTH, STEPS, IDS = 7, 4, 5, 6
numbers = random.Random(51)
torch.set_default_dtype(torch.float64)


def some(count):
    return torch.tensor([[numbers.randint(-32, 32) / 16 for _ in range(WIDTH)] for _ in range(count)])


def write(name, x):
    print(name, *(value.hex() if isinstance(value, float) else value for value in x.reshape(-1).tolist()))


def load(path, name):
    """Loads a source by itself: what it imports of its package is there, without content."""
    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def load_dgl(path):
    wanted = {
        "dgl": [], "dgl.optim": [], "dgl.optim.pytorch": [], "dgl.cuda": ["nccl"], "dgl.nn": [], "dgl.nn.pytorch": ["NodeEmbedding"],
        "dgl.partition": ["NDArrayPartition"],
        "dgl.utils": ["create_shared_mem_array", "gather_pinned_tensor_rows", "get_shared_mem_array", "pin_memory_inplace",
                      "scatter_pinned_tensor_rows"],
    }
    for name, contents in wanted.items():
        module = sys.modules[name] = types.ModuleType(name)
        module.__path__ = []
        for content in contents:
            setattr(module, content, None)
    return load(path, "dgl.optim.pytorch.sparse_optim")


dgl = load_dgl(sys.argv[1])
torchrec = load(sys.argv[2], "rowwise_adagrad")


def case(kind, make, step, duplicates="sum", steps="global", rate=0.125, momentum=0, beta1=0.9, beta2=0.999, epsilon=0, decay=0, begin=0,
         in_root=0):
    """`make(table)` returns an optimizer, `step(optimizer, table, ids, rows)` takes a step and returns the states by name."""
    print("case", kind, duplicates, steps, *(float(x).hex() for x in (rate, momentum, beta1, beta2, epsilon, decay, begin, in_root)))
    table = torch.nn.Parameter(some(ROWS))
    write("begin", table.detach())
    optimizer = make(table)
    states = {}
    for _ in range(STEPS):
        ids = torch.tensor([numbers.randrange(ROWS - 1) for _ in range(IDS)])
        rows = some(IDS)
        write("step", ids)
        write("rows", rows)
        states = step(optimizer, table, ids, rows)
    write("end", table.detach())
    for name, state in states.items():
        write(name, state)


def by_torch(*names, dense=False):
    def step(optimizer, table, ids, rows):
        gradient = torch.sparse_coo_tensor(ids[None], rows, table.shape).coalesce()
        table.grad = gradient.to_dense() if dense else gradient
        optimizer.step()
        states = optimizer.state[table]
        found = {}
        for name in names:
            state = states[name]
            state = torch.tensor(state) if not torch.is_tensor(state) else state.to_dense() if state.is_sparse else state
            found[name] = state.long() if name == "step" else state
        return found
    return step


def by_dgl(*names):
    def step(optimizer, table, ids, rows):
        optimizer["emb"].weight = table.data
        optimizer["optimizer"].update(ids, rows, optimizer["emb"])
        states = dict(zip(names, optimizer["emb"].optm_state))
        if "step" in states:
            states["step"] = states["step"].long()
        return states
    return step


def dgl_optimizer(kind, states, **settings):
    def make(table):
        optimizer = object.__new__(kind)
        optimizer._is_using_uva = {"table": False}
        optimizer._dtype = torch.float64
        for name, value in settings.items():
            setattr(optimizer, name, value)
        return {"optimizer": optimizer, "emb": types.SimpleNamespace(name="table", optm_state=states())}
    return make


def main():
    case("sgd", lambda x: torch.optim.SGD([x], 0.125), by_torch())
    case("sgd", lambda x: torch.optim.SGD([x], 0.125, momentum=0.9), by_torch("momentum_buffer"), momentum=0.9)
    case("sgd", lambda x: torch.optim.SGD([x], 0.125, momentum=0.9, weight_decay=0.25), by_torch("momentum_buffer", dense=True),
         momentum=0.9, decay=0.25)
    case("adagrad", lambda x: torch.optim.Adagrad([x], 0.125), by_torch("sum"), epsilon=1e-10)
    case("adagrad", lambda x: torch.optim.Adagrad([x], 0.5, initial_accumulator_value=0.25, eps=0.01), by_torch("sum"), rate=0.5, begin=0.25,
         epsilon=0.01)
    case("rowwise_adagrad", lambda x: torchrec.RowWiseAdagrad([x], 0.125), by_torch("sum", dense=True), epsilon=1e-10)
    case("adam", lambda x: torch.optim.SparseAdam([x], 0.125), by_torch("exp_avg", "exp_avg_sq", "step"), epsilon=1e-8)
    case("adam", lambda x: torch.optim.SparseAdam([x], 0.1, betas=(0.5, 0.75), eps=0.01), by_torch("exp_avg", "exp_avg_sq", "step"), rate=0.1,
         beta1=0.5, beta2=0.75, epsilon=0.01)
    shape = (ROWS, WIDTH)
    case("adagrad", dgl_optimizer(dgl.SparseAdagrad, lambda: (torch.zeros(shape),), _lr=0.125, _eps=1e-10), by_dgl("sum"), duplicates="mean",
         epsilon=1e-10, in_root=1)
    case("adam", dgl_optimizer(dgl.SparseAdam, lambda: (torch.zeros(ROWS), torch.zeros(shape), torch.zeros(shape)), _lr=0.125, _eps=1e-8,
                               _beta1=0.9, _beta2=0.999), by_dgl("step", "exp_avg", "exp_avg_sq"), duplicates="mean", steps="row",
         epsilon=1e-8)


main()
