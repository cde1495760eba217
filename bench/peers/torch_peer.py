"""PyTorch DTensor on gloo, with a process for each rank, used as its documentation does; started as
torchrun starts ranks.

https://docs.pytorch.org/docs/stable/distributed.tensor.html and https://docs.pytorch.org/docs/stable/distributed.tensor.parallel.html
"""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import gloo
import peer

PLACEMENTS = {"S(0)": Shard(0), "S(1)": Shard(1), "R": Replicate(), "P": Partial()}


def measure(call, samples):
    return peer.measure(lambda _: call(), samples, together=dist.barrier, slowest=gloo.most)


def count(wrong):
    """The sum of a number over all ranks."""
    total = torch.tensor(int(wrong))
    dist.all_reduce(total)
    return total.item()


def part(whole, placement, mesh):
    """This rank's local tensor, as a copy."""
    if not isinstance(placement, Shard):
        return whole
    return whole.chunk(mesh.size(), placement.dim)[mesh.get_local_rank()].contiguous()


def move(mesh, case):
    shape, source, target = case["shape"], PLACEMENTS[case["from"]], PLACEMENTS[case["to"]]
    whole = peer.term(shape, mesh.get_local_rank()) if source.is_partial() else peer.reference(shape)
    local = part(torch.from_numpy(whole), source, mesh)
    # shape and stride are given, since shards may differ in size.
    x = DTensor.from_local(local, mesh, [source], run_check=False, shape=torch.Size(shape), stride=(shape[1], 1))
    seconds = measure(lambda: x.redistribute(mesh, [target]), case["samples"])
    local = x.redistribute(mesh, [target]).to_local()
    expected = torch.from_numpy(peer.reference(shape, mesh.size() if source.is_partial() else None))
    return {"seconds": seconds, "wrong": count((local != part(expected, target, mesh)).sum())}


def ternary(rows, columns, seed):
    """A matrix of -1, 0 and 1: products and sums of these sizes are exact in f32, in any order."""
    return torch.randint(-1, 2, (rows, columns), generator=torch.Generator().manual_seed(seed)).float()


class MLP(nn.Module):
    def __init__(self, hidden, intermediate):
        super().__init__()
        self.up = nn.Linear(hidden, intermediate, bias=False)
        self.down = nn.Linear(intermediate, hidden, bias=False)
        self.up.weight.data = ternary(intermediate, hidden, 1)
        self.down.weight.data = ternary(hidden, intermediate, 2)

    def forward(self, x):
        return self.down(self.up(x))


def whole_of(tensor):
    return tensor.full_tensor() if isinstance(tensor, DTensor) else tensor


def used(tensor):
    """Waits for a layer's result, which may be asynchronous, by reading an element."""
    tensor[0, 0].item()
    return tensor


def step(mlp, x, dy):
    """y and the gradients of x and of both weights, as whole tensors."""
    mlp.zero_grad()
    x.grad = None
    y = mlp(x)
    y.backward(dy)
    return [whole_of(t).detach() for t in (y, x.grad, mlp.up.weight.grad, mlp.down.weight.grad)]


def linear(mesh, case):
    tokens, hidden, intermediate = case["tokens"], case["hidden"], case["intermediate"]
    x, dy = ternary(tokens, hidden, 3).requires_grad_(), ternary(tokens, hidden, 4)
    expected = step(MLP(hidden, intermediate), x, dy)
    mlp = parallelize_module(MLP(hidden, intermediate), mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})

    def forward():
        return used(mlp(x))

    def backward(y):
        x.grad = None
        mlp.zero_grad()
        y.backward(dy, retain_graph=True)
        used(x.grad)

    y = forward()
    seconds = {"forward": measure(forward, case["samples"]), "backward": measure(lambda: backward(y), case["samples"])}
    up, down = mlp.up.weight.to_local().detach(), mlp.down.weight.to_local().detach()
    local_x, local_y = x.detach(), ternary(tokens, up.shape[0], 5)
    products = {"forward": measure(lambda: (local_x @ up.T, local_y @ down.T), case["samples"]),
                "backward": measure(lambda: (dy @ down, dy.T @ local_y, local_y @ up, local_y.T @ local_x), case["samples"])}
    wrong = sum(int((a != b).sum()) for a, b in zip(step(mlp, x, dy), expected))
    return {"seconds": seconds, "gemm_seconds": products, "wrong": count(wrong)}


def main():
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (dist.get_world_size(),))

    def answer(case):
        if case["kind"] == "linear":
            return linear(mesh, case)
        with torch.no_grad():
            return move(mesh, case)

    peer.serve(answer, speaks=dist.get_rank() == 0)
    dist.destroy_process_group()


main()
