#!/usr/bin/env python3
"""Makes parallel_plans/: plans of transformers, and where it puts parameters by them. Run by hand, with PyTorch and transformers installed:

    tests/golden/make_parallel_plans.py tests/golden/parallel_plans

For each model NAME.json has its plan, and NAME.txt a line for each parameter of a small model: name, shape, and placement along the one
mesh dim, in Tessera's text."""
import json
import pathlib
import sys

import torch
import torch.distributed as dist
import transformers
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import DTensor, Replicate
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers.distributed.tensor_parallel import apply_tensor_parallelism

SMALL = dict(hidden_size=24, intermediate_size=42, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2, head_dim=4, vocab_size=45,
             pad_token_id=0)
EXPERTS = dict(num_local_experts=3, num_experts=3, num_experts_per_tok=2, moe_intermediate_size=10)
MODELS = {
    "llama": transformers.LlamaConfig(**SMALL, attention_bias=True, mlp_bias=True),
    "mistral": transformers.MistralConfig(**SMALL),
    "mixtral": transformers.MixtralConfig(**SMALL, **EXPERTS),
    "phi3": transformers.Phi3Config(**SMALL),
    "qwen3": transformers.Qwen3Config(**SMALL, attention_bias=True),
    "qwen3_moe": transformers.Qwen3MoeConfig(**SMALL, **EXPERTS),
}


def text_of(parameter):
    if not isinstance(parameter, DTensor) or parameter.placements == (Replicate(),):
        return "R"
    (placement,) = parameter.placements
    dim = placement.dim % parameter.ndim
    factor = getattr(placement, "split_factor", 1)
    return f"S({dim};interleave={factor})" if factor > 1 else f"S({dim})"


def main(folder):
    folder = pathlib.Path(folder)
    dist.init_process_group("fake", rank=0, world_size=2, store=FakeStore())
    mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("tp",))
    for name, config in MODELS.items():
        with torch.device("meta"):
            model = transformers.AutoModelForCausalLM.from_config(config)
        (folder / f"{name}.json").write_text(json.dumps(model.tp_plan, indent=2) + "\n")
        apply_tensor_parallelism(model, mesh, model._expand_parallel_plan(model.tp_plan))
        lines = [f"{key} {'x'.join(map(str, value.shape))} {text_of(value)}" for key, value in model.named_parameters()]
        (folder / f"{name}.txt").write_text("\n".join(lines) + "\n")


main(*sys.argv[1:])
