"""Checkpoints of every kind that is supported, tiny and random, against the reference in plain Python."""
import json
import os

from harness import answer, case, expect, ids_text, largest_difference, pack, read_npy, round_to, run_cases, write_safetensors
from reference import Reference, make_weights

BASE = {"model_type": "llama", "vocab_size": 41, "hidden_size": 24, "intermediate_size": 37, "num_hidden_layers": 2,
        "num_attention_heads": 6, "num_key_value_heads": 3, "hidden_act": "silu", "rms_norm_eps": 1e-5, "max_position_embeddings": 64,
        "tie_word_embeddings": False}
LLAMA3 = {"rope_type": "llama3", "factor": 4.0, "low_freq_factor": 1.0, "high_freq_factor": 4.0, "original_max_position_embeddings": 16}

# name -> (what differs from BASE, dtype, files)
KINDS = {
    "as most are": ({}, "F32", 1),
    "tied embeddings": ({"tie_word_embeddings": True}, "F32", 1),
    "attention_bias": ({"attention_bias": True}, "F32", 1),
    "mlp_bias": ({"mlp_bias": True}, "F32", 1),
    "both biases, tied": ({"attention_bias": True, "mlp_bias": True, "tie_word_embeddings": True}, "F32", 1),
    "head_dim apart from hidden/heads": ({"head_dim": 10}, "F32", 1),
    "hidden that heads don't divide": ({"hidden_size": 20, "head_dim": 6}, "F32", 1),
    "one key/value head": ({"num_key_value_heads": 1}, "F32", 1),
    "as many key/value heads as queries": ({"num_key_value_heads": None}, "F32", 1),
    "two key/value heads": ({"num_key_value_heads": 2}, "F32", 1),
    "one head of everything": ({"num_attention_heads": 1, "num_key_value_heads": 1, "head_dim": 4}, "F32", 1),
    "f16 weights": ({}, "F16", 1),
    "bf16 weights": ({}, "BF16", 1),
    "three files": ({}, "BF16", 3),
    "rope_theta at the top": ({"rope_theta": 500.0}, "F32", 1),
    "rope_theta inside rope_parameters": ({"rope_parameters": {"rope_theta": 500.0, "rope_type": "default"}}, "F32", 1),
    "rope_theta inside rope_scaling": ({"rope_scaling": {"rope_theta": 500.0, "type": "linear", "factor": 2}}, "F32", 1),
    "linear rope": ({"rope_scaling": {"type": "linear", "factor": 2.5}}, "F32", 1),
    "llama3 rope in rope_scaling": ({"rope_scaling": LLAMA3, "rope_theta": 300.0}, "F32", 1),
    "llama3 rope in rope_parameters": ({"rope_parameters": dict(LLAMA3, rope_theta=300.0), "head_dim": 12}, "F32", 1),
    "mistral, all positions": ({"model_type": "mistral", "sliding_window": None}, "F32", 1),
    "mistral, a sliding window": ({"model_type": "mistral", "sliding_window": 4}, "BF16", 1),
    "qwen3": ({"model_type": "qwen3", "head_dim": 8, "tie_word_embeddings": True, "sliding_window": None}, "F32", 1),
    "qwen3, biases, head_dim apart, one key/value head": ({"model_type": "qwen3", "head_dim": 10, "attention_bias": True,
                                                           "num_key_value_heads": 1}, "BF16", 1),
    "qwen3, a window from layer 1 on": ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 3, "max_window_layers": 1},
                                        "F32", 1),
    "qwen3, a window by layer_types": ({"model_type": "qwen3", "use_sliding_window": True, "sliding_window": 3,
                                        "layer_types": ["sliding_attention", "full_attention"]}, "F32", 1),
    "fewer rows of everything than ranks": ({"vocab_size": 3, "intermediate_size": 2, "num_attention_heads": 2, "num_key_value_heads": 1,
                                             "hidden_size": 8}, "F32", 1),
}
RANKS = (1, 2, 3, 4, 6, 8)
PROMPT = [2, 0, 1, 2, 2, 1, 0, 0, 1, 2, 1]
TOKENS = 14


def write_checkpoint(directory, config, weights, dtype, files):
    (directory / "config.json").write_text(json.dumps(config))
    tensors = {name: (dtype, shape, pack(values, dtype)) for name, (shape, values) in weights.items()}
    if files == 1:
        write_safetensors(directory / "model.safetensors", tensors)
        return
    names, index = list(tensors), {}
    for part in range(files):
        file = f"model-{part + 1:05}-of-{files:05}.safetensors"
        write_safetensors(directory / file, {name: tensors[name] for name in names[part::files]})
        index.update({name: file for name in names[part::files]})
    (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": index}))


def ranks_of(index):
    """All numbers of ranks; under sanitizers two of them, which change from one kind to the next."""
    return RANKS[index % 3::3] if os.environ.get("TSR_TEST_THIN") else RANKS


def compare(directory, config, dtype, files, numbers):
    weights = make_weights(config, dtype, json.dumps(config))
    write_checkpoint(directory, config, weights, dtype, files)
    logits, ids, gap = Reference(config, weights).generate(PROMPT, TOKENS)
    flat = [value for row in logits for value in row]
    bound = 1e-4 * max(map(abs, flat))
    # The program computes in f32 and the reference in f64, so tokens are compared only where the lead exceeds the rounding.
    expect(gap > bound / 10, "the draw of weights leaves two tokens too close to tell:", gap)
    for ranks in numbers:
        arguments = (directory, "--ranks", ranks, "--prompt-ids", ids_text(PROMPT))
        got = answer(*arguments, "--tokens", TOKENS, "--logits", directory / "logits.npy")
        shape, values = read_npy(directory / "logits.npy")
        expect(shape == (len(PROMPT), config["vocab_size"]), shape)
        difference = largest_difference(values, flat)
        expect(difference <= bound, f"{ranks} ranks: logits differ by {difference}, more than {bound}")
        expect(got["ids"] == ids, f"{ranks} ranks: {got['ids']} is not {ids}")
        expect(got["text"] is None, got["text"])


for index, (sentence, (changes, dtype, files)) in enumerate(KINDS.items()):
    @case(f"{sentence}: logits and tokens are the reference's on any number of ranks")
    def kind(directory, changes=changes, dtype=dtype, files=files, numbers=ranks_of(index)):
        compare(directory, {**BASE, **changes}, dtype, files, numbers)


@case("tensors that no Llama needs, and f32 norms beside bf16 weights, are no obstacle")
def mixed(directory):
    weights = make_weights(BASE, "BF16", 5)
    tensors = {name: ("F32", shape, pack(values, "F32")) if "norm" in name else ("BF16", shape, pack(values, "BF16"))
               for name, (shape, values) in weights.items()}
    tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = ("F32", (2,), pack([1.0, 0.1], "F32"))
    tensors["steps"] = ("I64", (), bytes(8))
    (directory / "config.json").write_text(json.dumps(BASE))
    write_safetensors(directory / "model.safetensors", tensors)
    wanted = Reference(BASE, weights).generate(PROMPT, 3)[1]
    expect(answer(directory, "--ranks", 2, "--prompt-ids", ids_text(PROMPT), "--tokens", 3)["ids"] == wanted, "other tokens")


@case("matrices of several dtypes are kept in f32, and bf16 rounds them where it is asked for")
def several(directory):
    weights = make_weights(BASE, "BF16", 7)
    tensors = {name: ("F32" if "up_proj" in name else "F16" if "q_proj" in name else "BF16", shape, values)
               for name, (shape, values) in weights.items()}
    rounded = {name: (shape, [round_to(value, dtype) for value in values]) for name, (dtype, shape, values) in tensors.items()}
    (directory / "config.json").write_text(json.dumps(BASE))
    write_safetensors(directory / "model.safetensors", {name: (dtype, shape, pack(rounded[name][1], dtype)) for name, (dtype, shape, _) in tensors.items()})
    wanted = Reference(BASE, rounded).generate(PROMPT, 3)[1]
    got = answer(directory, "--ranks", 2, "--prompt-ids", ids_text(PROMPT), "--tokens", 3)
    expect(got["weights"] == "f32" and got["ids"] == wanted, got)
    expect(answer(directory, "--weights", "bf16", "--prompt-ids", ids_text(PROMPT), "--tokens", 3)["weights"] == "bf16", "not bf16")


@case("eos_token_id ends the text, as a number and in a list, and is part of it")
def end(directory):
    weights = make_weights(BASE, "F32", 5)
    write_checkpoint(directory, BASE, weights, "F32", 1)
    free = answer(directory, "--prompt-ids", "1,2", "--tokens", 12)["ids"]
    last = next(i for i, token in enumerate(free) if i > 1)
    wanted = free[:free.index(free[last]) + 1]
    for value in (free[last], [99, free[last]]):
        write_checkpoint(directory, {**BASE, "eos_token_id": value}, weights, "F32", 1)
        got = answer(directory, "--ranks", 3, "--prompt-ids", "1,2", "--tokens", 12)["ids"]
        expect(got == wanted, got, "is not", wanted)


run_cases()
