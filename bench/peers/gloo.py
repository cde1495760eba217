"""What a rank of torch.distributed on gloo asks of all of them; a process alone is all of them."""
import torch
import torch.distributed as dist


def most(number):
    """The greatest that any rank has: the seconds of the slowest one."""
    if not dist.is_initialized():
        return number
    found = torch.tensor(number, dtype=torch.float64)
    dist.all_reduce(found, dist.ReduceOp.MAX)
    return found.item()
