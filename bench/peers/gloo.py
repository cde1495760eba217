"""Reductions over all ranks of torch.distributed on gloo, or in a single process without it."""
import torch
import torch.distributed as dist


def most(number):
    """The maximum over all ranks, as of seconds."""
    if not dist.is_initialized():
        return number
    found = torch.tensor(number, dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.item()
