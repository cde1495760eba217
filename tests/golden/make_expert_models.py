#!/usr/bin/env python3
"""Makes tests/golden/expert_models: small Mixtral and Qwen3-MoE models whose weights are made by rule (tests/llama/made.py), as lists of the tensors
that transformers saves, in either form, and what transformers computes in f32.

usage: make_expert_models.py DIRECTORY   (with torch and transformers 5.23)
"""
import json
import pathlib
import sys
import tempfile

import numpy
import safetensors.torch
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llama"))
import made

SIZES = {"vocab_size": 256, "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 64,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "attn_implementation": "eager"}
MODELS = {
    "mixtral": (transformers.MixtralConfig(**{**SIZES, "num_hidden_layers": 2}, intermediate_size=36, num_local_experts=5, num_experts_per_tok=2),
                transformers.MixtralForCausalLM),
    "mixtral-sliding": (transformers.MixtralConfig(**{**SIZES, "num_hidden_layers": 2}, intermediate_size=20, num_local_experts=6, num_experts_per_tok=3,
                                                   head_dim=10, sliding_window=6, tie_word_embeddings=True), transformers.MixtralForCausalLM),
    # Layer 0 is dense by mlp_only_layers.
    "qwen3-moe": (transformers.Qwen3MoeConfig(**SIZES, intermediate_size=44, moe_intermediate_size=28, num_experts=6, num_experts_per_tok=2, head_dim=10,
                                              norm_topk_prob=True, mlp_only_layers=[0]), transformers.Qwen3MoeForCausalLM),
    # Layers 0 and 2 are dense by decoder_sparse_step.
    "qwen3-moe-unnormed": (transformers.Qwen3MoeConfig(**SIZES, intermediate_size=44, moe_intermediate_size=28, num_experts=5, num_experts_per_tok=3,
                                                       head_dim=16, norm_topk_prob=False, decoder_sparse_step=2, attention_bias=True,
                                                       use_sliding_window=True, sliding_window=5), transformers.Qwen3MoeForCausalLM),
}
PROMPT = list(b"To be, or not to be: ")
TOKENS = 24


def shapes_of(directory, model, original):
    """name -> shape of what is saved, with single experts, as they are published, or stacked."""
    model.save_pretrained(directory, save_original_format=original)
    return {name: list(tensor.shape) for name, tensor in safetensors.torch.load_file(directory / "model.safetensors").items()}


def check(directory, forms, form):
    """Compares what is saved with the rule."""
    saved = safetensors.torch.load_file(directory / "model.safetensors")
    for name, (_, shape, data) in made.tensors(forms, form, "F32").items():
        assert saved[name].numpy().tobytes() == data and list(saved[name].shape) == shape, name


def fill(directory, forms):
    """Writes weights by rule, in the place of those that are there."""
    tensors = {name: torch.frombuffer(bytearray(data), dtype=torch.float32).reshape(shape)
               for name, (_, shape, data) in made.tensors(forms, "single", "F32").items()}
    safetensors.torch.save_file(tensors, directory / "model.safetensors", metadata={"format": "pt"})


def leads(model, ids, count):
    """Greedy tokens after `ids`, and the least leads of a token and of a chosen expert over the next best."""
    ids, least, routed = list(ids), [], []
    k = model.config.num_experts_per_tok
    for _ in range(count):
        made_now = model(torch.tensor([ids]), output_router_logits=True)
        best = torch.topk(made_now.logits[0, -1], 2).values
        least.append(float(best[0] - best[1]))
        for router in made_now.router_logits:
            experts = torch.topk(router.float().softmax(-1), k + 1, dim=-1).values
            routed.append(float((experts[:, -2] - experts[:, -1]).min()))
        ids.append(int(made_now.logits[0, -1].argmax()))
    return ids[-count:], min(least), min(routed)


def make(name, out):
    config, kind = MODELS[name]
    out.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        folder = pathlib.Path(folder)
        forms = {"stacked": shapes_of(folder, kind(config), False), "single": shapes_of(folder, kind(config), True)}
        fill(folder, forms)
        model = kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager").eval()
        logits = model(torch.tensor([PROMPT])).logits[0]
        ids, least, routed = leads(model, PROMPT, TOKENS)
        for form in forms:
            model.save_pretrained(folder, save_original_format=form == "single")
            check(folder, forms, form)
        (out / "config.json").write_bytes((folder / "config.json").read_bytes())
    numpy.save(out / "logits.npy", logits.numpy())
    expected = {"prompt_ids": PROMPT, "ids": ids, "least_lead": least, "least_router_lead": routed, "transformers": transformers.__version__,
                "torch": torch.__version__}
    lines = [f'  "{key}": {json.dumps(value)}' for key, value in expected.items()]
    for form, shapes in forms.items():
        tensors = ",\n".join(f'   "{tensor}": {json.dumps(shape)}' for tensor, shape in sorted(shapes.items()))
        lines.append(f'  "{form}": {{\n{tensors}\n  }}')
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(name, least, routed, float(logits.abs().max()))


for model_name in MODELS:
    make(model_name, pathlib.Path(sys.argv[1]) / model_name)
