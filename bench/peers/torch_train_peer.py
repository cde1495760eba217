"""Steps of a training in PyTorch: transformers' Llama from a config.json, AdamW in its fused form,
whole batches of random tokens. With one process, on as many threads as ranks; with more, by
DistributedDataParallel on gloo, a thread and an equal part of the batch for each.

usage: torch_train_peer.py THREADS

https://docs.pytorch.org/docs/stable/generated/torch.nn.parallel.DistributedDataParallel.html
"""
import os
import sys
import time

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from transformers import AutoConfig, AutoModelForCausalLM

import cases
import gloo
import peer


def make(case):
    torch.manual_seed(0)
    config = AutoConfig.from_pretrained(case["model"])
    config.use_cache = False
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).train()
    return config.vocab_size, DistributedDataParallel(model) if dist.is_initialized() else model


def steps(case):
    """Seconds of a step after the first ones, on the slowest rank. The last loss tells whether the
    model has learnt the few tokens that it sees at each step: "wrong" is 1 if it has not."""
    vocabulary, model = make(case)
    ranks = dist.get_world_size() if dist.is_initialized() else 1
    ids = torch.randint(vocabulary, (case["batch"] // ranks, case["length"]), generator=torch.Generator().manual_seed(0))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, fused=True)
    losses, seconds = [], []
    for _ in range(cases.WARM_STEPS + case["samples"]):
        begin = time.perf_counter()
        loss = model(input_ids=ids, labels=ids).loss
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        losses.append(loss.item())
        seconds.append(gloo.most(time.perf_counter() - begin))
    return {"seconds": seconds[cases.WARM_STEPS:], "wrong": int(losses[-1] >= losses[0])}


def main():
    torch.set_num_threads(int(sys.argv[1]))
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")
    peer.serve(steps, speaks=int(os.environ.get("RANK", 0)) == 0)


main()
