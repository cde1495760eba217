#!/usr/bin/env python3
"""Makes tests/golden/models: small random Qwen3 and Mistral checkpoints as transformers saves them, with what transformers computes in f32.

usage: make_models.py DIRECTORY   (with torch and transformers 5.23)
"""
import json
import pathlib
import sys

import numpy
import torch
import transformers

SIZES = {"vocab_size": 61, "hidden_size": 24, "intermediate_size": 40, "num_hidden_layers": 3, "num_attention_heads": 4, "num_key_value_heads": 2,
         "head_dim": 10, "max_position_embeddings": 64, "rms_norm_eps": 1e-6, "bos_token_id": None, "eos_token_id": None, "pad_token_id": None,
         "attn_implementation": "eager"}
MODELS = {
    "qwen3": (transformers.Qwen3Config(**SIZES, tie_word_embeddings=True), transformers.Qwen3ForCausalLM),
    "qwen3-sliding": (transformers.Qwen3Config(**SIZES, tie_word_embeddings=False, use_sliding_window=True, sliding_window=5, max_window_layers=1),
                      transformers.Qwen3ForCausalLM),
    "mistral": (transformers.MistralConfig(**SIZES, sliding_window=6), transformers.MistralForCausalLM),
}
PROMPT = [3, 17, 60, 0, 5, 41, 41, 8, 22, 13, 59, 2]
TOKENS = 24


def make(name, directory):
    config, kind = MODELS[name]
    torch.manual_seed(len(name))
    model = kind(config).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            # Far enough from their start that a mistake in any tensor shows.
            parameter.add_(torch.randn_like(parameter) * (0.3 if parameter.ndim == 1 else 0.25))
    model = model.to(torch.bfloat16)
    model.save_pretrained(directory / name)
    (directory / name / "generation_config.json").unlink(missing_ok=True)
    # Loaded anew: a model that was bf16 keeps rounded frequencies of rotary positions.
    model = kind.from_pretrained(directory / name, dtype=torch.float32, attn_implementation="eager").eval()
    ids, leads = list(PROMPT), []
    with torch.no_grad():
        logits = model(torch.tensor([ids])).logits[0]
        for _ in range(TOKENS):
            last = model(torch.tensor([ids])).logits[0, -1]
            best = torch.topk(last, 2).values
            leads.append(float(best[0] - best[1]))
            ids.append(int(last.argmax()))
    numpy.save(directory / name / "logits.npy", logits.numpy())
    expected = {"prompt_ids": PROMPT, "ids": ids[len(PROMPT):], "least_lead": min(leads), "transformers": transformers.__version__,
                "torch": torch.__version__}
    (directory / name / "expected.json").write_text(json.dumps(expected) + "\n")


for model_name in MODELS:
    make(model_name, pathlib.Path(sys.argv[1]))
