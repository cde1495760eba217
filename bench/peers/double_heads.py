"""Writes a Llama checkpoint with every key/value head twice: the same function, whose heads twice
as many ranks can divide.

usage: double_heads.py MODEL_DIR OUT_DIR
"""
import json
import pathlib
import sys

from safetensors.torch import load_file, save_file


def main(source, target):
    source, target = pathlib.Path(source), pathlib.Path(target)
    config = json.loads((source / "config.json").read_text())
    heads, size = config["num_key_value_heads"], config["head_dim"]
    tensors = load_file(source / "model.safetensors")
    for name, tensor in tensors.items():
        if "k_proj" in name or "v_proj" in name:
            by_head = tensor.reshape(heads, size, *tensor.shape[1:])
            tensors[name] = by_head.repeat_interleave(2, dim=0).reshape(2 * heads * size, *tensor.shape[1:]).contiguous()
    target.mkdir(parents=True, exist_ok=True)
    (target / "config.json").write_text(json.dumps({**config, "num_key_value_heads": 2 * heads}, indent=2) + "\n")
    save_file(tensors, target / "model.safetensors", metadata={"format": "pt"})


main(*sys.argv[1:])
