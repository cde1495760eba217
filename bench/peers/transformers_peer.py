"""The tensor parallelism of transformers on gloo, with a process for each rank, used as its
documentation does; on one rank without it.

https://huggingface.co/docs/transformers/v5.17.0/tensor_parallelism
"""
import os
import time

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig

import cases
import gloo
import peer


def load(case):
    plan = {"distributed_config": DistributedConfig(tp_size=case["ranks"])} if case["ranks"] > 1 else {}
    return AutoModelForCausalLM.from_pretrained(case["model"], dtype=torch.float32, **plan).eval()


def generate(model, ids, tokens):
    begin = time.perf_counter()
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=tokens,
                         min_new_tokens=tokens, do_sample=False, pad_token_id=0)
    return time.perf_counter() - begin, out[0, len(ids):].tolist()


def decode(case):
    """Seconds of a token after the first one (a run of all tokens minus a run of one), on the
    slowest rank, and the greatest number of wrong tokens in a run of any rank."""
    model, ids, expected = load(case), case["prompt_ids"], case["ids"]
    tokens, seconds, wrong = len(expected), [], 0
    with torch.inference_mode():
        generate(model, ids, tokens)
        for _ in range(case["samples"]):
            first = generate(model, ids, 1)[0]
            taken, written = generate(model, ids, tokens)
            seconds.append(gloo.most((taken - first) / (tokens - 1)))
            wrong = max(wrong, cases.count_wrong_ids(written, expected))
    return {"seconds": seconds, "wrong": int(gloo.most(wrong))}


def main():
    torch.set_num_threads(1)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")
    peer.serve(decode, speaks=int(os.environ.get("RANK", 0)) == 0)


main()
