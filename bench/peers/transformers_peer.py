"""transformers' tensor parallelism (`tp_plan="auto"`) on gloo, one process a rank, as its documentation uses it; one rank: no parallelism.

https://huggingface.co/docs/transformers/en/perf_infer_gpu_multi
"""
import os
import time

import torch
import torch.distributed as dist
from transformers import AutoModelForCausalLM
from transformers.distributed import DistributedConfig

import peer


def load(case):
    plan = {"distributed_config": DistributedConfig(tp_plan="auto")} if case["ranks"] > 1 else {}
    return AutoModelForCausalLM.from_pretrained(case["model"], dtype=torch.float32, **plan).eval()


def generate(model, ids, tokens):
    begin = time.perf_counter()
    out = model.generate(torch.tensor([ids]), attention_mask=torch.ones(1, len(ids), dtype=torch.long), max_new_tokens=tokens,
                         min_new_tokens=tokens, do_sample=False, pad_token_id=0)
    return time.perf_counter() - begin, out[0, len(ids):].tolist()


def decode(case):
    """Seconds a token after the first one: a run of all tokens less a run of one, and how many tokens are not the expected ones."""
    model, ids, expected = load(case), case["prompt_ids"], case["ids"]
    tokens, seconds = len(expected), []
    with torch.inference_mode():
        generate(model, ids, tokens)
        for _ in range(case["samples"]):
            first = generate(model, ids, 1)[0]
            taken, written = generate(model, ids, tokens)
            seconds.append((taken - first) / (tokens - 1))
    return {"seconds": seconds, "wrong": sum(a != b for a, b in zip(written, expected))}


def answer(case):
    try:
        return decode(case)
    except (RuntimeError, ValueError) as error:
        return {"refused": f"{type(error).__name__}: {str(error).splitlines()[0]}"}


def main():
    torch.set_num_threads(1)
    if int(os.environ.get("WORLD_SIZE", 1)) > 1:
        dist.init_process_group("gloo")
    peer.serve(answer, speaks=int(os.environ.get("RANK", 0)) == 0)


main()
