#!/usr/bin/env python3
"""Makes tests/golden/training: small models whose weights and tokens are made by rule (tests/llama/made.py), and the losses and norms of gradients of 20
steps of PyTorch's optimizers on what transformers computes in f32.

usage: make_training.py DIRECTORY   (with torch and transformers 5.23)
"""
import json
import pathlib
import sys
import tempfile

import safetensors.torch
import torch
import transformers

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "llama"))
import made

SIZES = {"hidden_size": 48, "intermediate_size": 88, "num_hidden_layers": 2, "num_attention_heads": 6, "num_key_value_heads": 3, "max_position_embeddings": 64,
         "bos_token_id": None, "eos_token_id": None, "pad_token_id": None, "attn_implementation": "eager"}
MODELS = {
    "llama": (transformers.LlamaConfig(**SIZES, vocab_size=256, head_dim=8, attention_bias=True, tie_word_embeddings=False), transformers.LlamaForCausalLM),
    "qwen3": (transformers.Qwen3Config(**SIZES, vocab_size=96, head_dim=12, use_sliding_window=True, sliding_window=7, max_window_layers=1,
                                       tie_word_embeddings=True), transformers.Qwen3ForCausalLM),
    # The loss that balances experts counts.
    "mixtral": (transformers.MixtralConfig(**{**SIZES, "intermediate_size": 36}, vocab_size=256, num_local_experts=5, num_experts_per_tok=2, sliding_window=9,
                                           output_router_logits=True, router_aux_loss_coef=0.05), transformers.MixtralForCausalLM),
    # Layer 0 is dense.
    "qwen3-moe": (transformers.Qwen3MoeConfig(**SIZES, vocab_size=256, moe_intermediate_size=28, num_experts=6, num_experts_per_tok=3, head_dim=10,
                                              norm_topk_prob=False, mlp_only_layers=[0], tie_word_embeddings=True), transformers.Qwen3MoeForCausalLM),
}
BATCH, LENGTH, STEPS, TOKENS = 5, 16, 20, 1500
# What the command line says, and the optimizer that it means.
RUNS = {
    "adamw": (["--optimizer", "adamw", "--lr", "0.002", "--clip", "1", "--warm-up", "5", "--betas", "0.9,0.95", "--weight-decay", "0.1"],
              lambda w: torch.optim.AdamW(w, lr=0.002, betas=(0.9, 0.95), weight_decay=0.1), 1.0, 5),
    "sgd": (["--optimizer", "sgd", "--lr", "0.05", "--weight-decay", "0.001"], lambda w: torch.optim.SGD(w, lr=0.05, weight_decay=0.001), float("inf"), 0),
}


def batch(tokens, step):
    begins = [(step * BATCH + row) * LENGTH % (len(tokens) - LENGTH - 1) for row in range(BATCH)]
    windows = torch.tensor([tokens[begin:begin + LENGTH + 1] for begin in begins])
    return windows[:, :-1], windows[:, 1:]


def train(model, tokens, make, clip, warm_up):
    optimizer = make(model.parameters())
    rate = optimizer.param_groups[0]["lr"]
    told = []
    for step in range(STEPS):
        optimizer.param_groups[0]["lr"] = rate * min(1.0, (step + 1) / warm_up if warm_up else 1.0)
        inputs, targets = batch(tokens, step)
        made_now = model(inputs)
        loss = torch.nn.functional.cross_entropy(made_now.logits.flatten(0, 1), targets.flatten())
        router = getattr(made_now, "aux_loss", None)
        optimizer.zero_grad()
        (loss if router is None else loss + model.config.router_aux_loss_coef * router).backward()
        norm = torch.nn.utils.clip_grad_norm_(model.parameters(), clip)
        optimizer.step()
        told.append((float(loss.detach()), float(norm), float(router.detach()) if router is not None else None))
    return told


def load(folder, config, kind):
    """A model with weights by rule, and the shapes of what is saved."""
    kind(config).save_pretrained(folder)
    shapes = {name: list(tensor.shape) for name, tensor in safetensors.torch.load_file(folder / "model.safetensors").items()}
    tensors = {name: torch.frombuffer(bytearray(made.pack(name, shape, "F32")), dtype=torch.float32).reshape(shape) for name, shape in shapes.items()}
    safetensors.torch.save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return kind.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager"), shapes


def make(name, out):
    config, kind = MODELS[name]
    out.mkdir(parents=True, exist_ok=True)
    runs = {}
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        for run, (options, optimizer, clip, warm_up) in RUNS.items():
            model, shapes = load(folder, config, kind)
            told = train(model.train(), made.tokens(TOKENS, config.vocab_size), optimizer, clip, warm_up)
            runs[run] = {"options": options, "losses": [loss for loss, _, _ in told], "norms": [norm for _, norm, _ in told]}
            if told[0][2] is not None:
                runs[run]["router_losses"] = [router for _, _, router in told]
            print(name, run, told[0], told[-1])
        (out / "config.json").write_bytes((folder / "config.json").read_bytes())
    expected = {"batch": BATCH, "length": LENGTH, "tokens": TOKENS, "transformers": transformers.__version__, "torch": torch.__version__, **runs}
    lines = [f'  "{key}": {json.dumps(value)}' for key, value in expected.items()]
    tensors = ",\n".join(f'   "{tensor}": {json.dumps(shape)}' for tensor, shape in sorted(shapes.items()))
    lines.append(f'  "single": {{\n{tensors}\n  }}')
    (out / "expected.json").write_text("{\n" + ",\n".join(lines) + "\n}\n")


torch.set_num_threads(1)
for model_name in MODELS:
    make(model_name, pathlib.Path(sys.argv[1]) / model_name)
