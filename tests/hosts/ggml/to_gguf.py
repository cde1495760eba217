#!/usr/bin/env python3
"""Writes a Llama of a folder with config.json and model.safetensors as a GGUF file for llama.cpp, in
f32. Its tokens are bytes, without a vocabulary of their own.

usage: to_gguf.py FOLDER OUT.gguf
"""
import json
import pathlib
import struct
import sys

U32, F32, STRING = 4, 6, 8
NAMES = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm", "self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k",
         "self_attn.v_proj": "attn_v", "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
         "mlp.down_proj": "ffn_down", "model.embed_tokens": "token_embd", "model.norm": "output_norm", "lm_head": "output"}
ALIGNMENT = 32


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def entry(key, kind, value):
    return text(key) + struct.pack("<I", kind) + (text(value) if kind == STRING else struct.pack("<f" if kind == F32 else "<I", value))


def settings(config):
    heads = config["num_attention_heads"]
    return [entry("general.architecture", STRING, "llama"),
            entry("llama.block_count", U32, config["num_hidden_layers"]),
            entry("llama.context_length", U32, config["max_position_embeddings"]),
            entry("llama.embedding_length", U32, config["hidden_size"]),
            entry("llama.feed_forward_length", U32, config["intermediate_size"]),
            entry("llama.attention.head_count", U32, heads),
            entry("llama.attention.head_count_kv", U32, config["num_key_value_heads"]),
            entry("llama.attention.layer_norm_rms_epsilon", F32, config["rms_norm_eps"]),
            entry("llama.rope.dimension_count", U32, config.get("head_dim", config["hidden_size"] // heads)),
            entry("llama.rope.freq_base", F32, config["rope_parameters"]["rope_theta"]),
            entry("llama.vocab_size", U32, config["vocab_size"]),
            entry("tokenizer.ggml.model", STRING, "none")]


def read(path):
    """The tensors of a file as (shape, f32 bytes), by name."""
    data = path.read_bytes()
    size = struct.unpack("<Q", data[:8])[0]
    for name, header in json.loads(data[8:8 + size]).items():
        if name == "__metadata__":
            continue
        begin, end = header["data_offsets"]
        values = data[8 + size + begin:8 + size + end]
        if header["dtype"] == "BF16":
            wide = bytearray(2 * len(values))
            wide[2::4], wide[3::4] = values[::2], values[1::2]
            values = bytes(wide)
        elif header["dtype"] != "F32":
            sys.exit(f"{name}: expected BF16 or F32, found {header['dtype']}")
        yield name, header["shape"], values


def interleave(shape, values, head):
    """The rows of a query or key projection as llama.cpp rotates them: pairs beside each other, not half a head apart."""
    row = 4 * shape[1]
    order = [base + half * head // 2 + pair for base in range(0, shape[0], head) for pair in range(head // 2) for half in range(2)]
    return b"".join(values[at * row:(at + 1) * row] for at in order)


def named(name):
    stem = name.removesuffix(".weight")
    if stem.startswith("model.layers."):
        layer, stem = stem.removeprefix("model.layers.").split(".", 1)
        return f"blk.{layer}.{NAMES[stem]}.weight"
    return NAMES[stem] + ".weight"


def main(folder, out):
    config = json.loads((folder / "config.json").read_text())
    head = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    infos, blocks, offset = [], [], 0
    for name, shape, values in read(folder / "model.safetensors"):
        if "q_proj" in name or "k_proj" in name:
            values = interleave(shape, values, head)
        infos.append(text(named(name)) + struct.pack("<I", len(shape)) + struct.pack(f"<{len(shape)}Q", *reversed(shape)) + struct.pack("<IQ", 0, offset))
        blocks.append(values + bytes(-len(values) % ALIGNMENT))
        offset += len(blocks[-1])
    pairs = settings(config)
    header = b"GGUF" + struct.pack("<IQQ", 3, len(infos), len(pairs)) + b"".join(pairs) + b"".join(infos)
    out.write_bytes(header + bytes(-len(header) % ALIGNMENT) + b"".join(blocks))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))
