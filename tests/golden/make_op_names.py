#!/usr/bin/env python3
"""Makes pytorch_op_names.txt: the ops for which PyTorch's DTensor has sharding rules, each with the number of its overloads. Run by hand,
with PyTorch installed:

    tests/golden/make_op_names.py > tests/golden/pytorch_op_names.txt

Ops of the namespace aten stand by their name, others as `prims::name`."""
import collections

from torch.distributed.tensor import DTensor

propagator = DTensor._op_dispatcher.sharding_propagator
overloads = {str(op) for table in (propagator.op_single_dim_strategy_funcs, propagator.op_strategy_funcs) for op in table}
names = collections.Counter()
for overload in overloads:
    space, name = overload.split(".")[:2]
    names[name if space == "aten" else f"{space}::{name}"] += 1
for name in sorted(names, key=lambda name: (name.startswith("prims::"), name)):
    print(name, names[name])
