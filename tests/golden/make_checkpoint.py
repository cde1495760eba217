#!/usr/bin/env python3
"""Makes tests/golden/dcp, a checkpoint that PyTorch's torch.distributed.checkpoint wrote on 4 ranks
with HuggingFaceStorageWriter: one safetensors file a rank, with DCP_SHARDING_INFO. Needs PyTorch and
safetensors. With `--check FOLDER`, loads a checkpoint of the same tensors that Tessera saved with
options.dcp, by HuggingFaceStorageReader, and says whether each element is right.

The tensors: rows (5, 6) as S(0),R; columns (4, 7) as S(1),S(0); bias (3) as R,R; each has the numbers
from 0 on, in f32, bf16 and f64."""

import os
import pathlib
import shutil
import sys

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint import HuggingFaceStorageReader, HuggingFaceStorageWriter
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Replicate, Shard, distribute_tensor

HERE = pathlib.Path(__file__).resolve().parent
RANKS = 4
TENSORS = {
    "rows": ((5, 6), torch.float32, [Shard(0), Replicate()]),
    "columns": ((4, 7), torch.bfloat16, [Shard(1), Shard(0)]),
    "bias": ((3,), torch.float64, [Replicate(), Replicate()]),
}


def whole(name):
    shape, dtype, _ = TENSORS[name]
    return torch.arange(torch.Size(shape).numel()).reshape(shape).to(dtype)


def save(rank, folder):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT="29511", RANK=str(rank), WORLD_SIZE=str(RANKS))
    dist.init_process_group("gloo")
    mesh = init_device_mesh("cpu", (2, 2))
    state = {name: distribute_tensor(whole(name), mesh, placements) for name, (_, _, placements) in TENSORS.items()}
    dcp.save(state, storage_writer=HuggingFaceStorageWriter(path=str(folder), save_distributed=True))
    dist.destroy_process_group()


def check(folder):
    state = {name: torch.zeros(shape, dtype=dtype) for name, (shape, dtype, _) in TENSORS.items()}
    dcp.load(state, storage_reader=HuggingFaceStorageReader(path=str(folder)), no_dist=True)
    wrong = [name for name in TENSORS if not torch.equal(state[name], whole(name))]
    print(f"wrong: {', '.join(wrong)}" if wrong else f"PyTorch {torch.__version__} reads it")
    return 1 if wrong else 0


def main():
    if sys.argv[1:2] == ["--check"]:
        return check(sys.argv[2])
    folder = HERE / "dcp"
    shutil.rmtree(folder, ignore_errors=True)
    torch.multiprocessing.spawn(save, (folder,), nprocs=RANKS)
    return 0


if __name__ == "__main__":
    sys.exit(main())
