"""A Llama, Mistral or Qwen3 in plain Python and double precision, written apart from the program that it tests: slow, short, for tiny models."""
import math
import random

from harness import round_to

LINEAR = {"self_attn.q_proj": "attention_bias", "self_attn.k_proj": "attention_bias", "self_attn.v_proj": "attention_bias",
          "self_attn.o_proj": "attention_bias", "mlp.gate_proj": "mlp_bias", "mlp.up_proj": "mlp_bias", "mlp.down_proj": "mlp_bias"}


def head_dim(config):
    return config.get("head_dim") or config["hidden_size"] // config["num_attention_heads"]


def kv_heads(config):
    return config.get("num_key_value_heads") or config["num_attention_heads"]


def shapes(config):
    """name -> shape, in the order of a checkpoint."""
    hidden, middle, vocab = config["hidden_size"], config["intermediate_size"], config["vocab_size"]
    queries, keys = config["num_attention_heads"] * head_dim(config), kv_heads(config) * head_dim(config)
    sizes = {"self_attn.q_proj": (queries, hidden), "self_attn.k_proj": (keys, hidden), "self_attn.v_proj": (keys, hidden),
             "self_attn.o_proj": (hidden, queries), "mlp.gate_proj": (middle, hidden), "mlp.up_proj": (middle, hidden),
             "mlp.down_proj": (hidden, middle)}
    found = {"model.embed_tokens.weight": (vocab, hidden)}
    for layer in range(config["num_hidden_layers"]):
        prefix = f"model.layers.{layer}."
        found[prefix + "input_layernorm.weight"] = (hidden,)
        found[prefix + "post_attention_layernorm.weight"] = (hidden,)
        for name, bias in LINEAR.items():
            found[f"{prefix}{name}.weight"] = sizes[name]
            if config.get(bias):
                found[f"{prefix}{name}.bias"] = sizes[name][:1]
        if config["model_type"] == "qwen3":
            found[prefix + "self_attn.q_norm.weight"] = found[prefix + "self_attn.k_norm.weight"] = (head_dim(config),)
    found["model.norm.weight"] = (hidden,)
    if not config.get("tie_word_embeddings"):
        found["lm_head.weight"] = (vocab, hidden)
    return found


def make_weights(config, dtype, seed):
    """name -> (shape, flat values that `dtype` holds exactly)."""
    draw = random.Random(seed)
    weights = {}
    for name, shape in shapes(config).items():
        count, spread = math.prod(shape), 1 / math.sqrt(shape[-1]) if len(shape) > 1 else 0.2
        center = 1 if "norm" in name else 0
        weights[name] = shape, [round_to(center + draw.uniform(-2, 2) * spread, dtype) for _ in range(count)]
    return weights


def window(config, layer):
    """Positions that a layer sees, or None for all."""
    types = config.get("layer_types")
    used = config["model_type"] == "mistral" or (config["model_type"] == "qwen3" and config.get("use_sliding_window"))
    slides = types[layer] == "sliding_attention" if types else layer >= (config.get("max_window_layers") or 0)
    return config.get("sliding_window") if used and slides else None


def frequencies(config):
    rope = config.get("rope_parameters") or config.get("rope_scaling") or {}
    theta = rope.get("rope_theta") or config.get("rope_theta") or 10000
    kind = rope.get("rope_type") or rope.get("type") or "default"
    plain = [theta ** (-2 * i / head_dim(config)) for i in range(head_dim(config) // 2)]
    if kind == "default":
        return plain
    if kind == "linear":
        return [f / rope["factor"] for f in plain]
    low, high, length = rope["low_freq_factor"], rope["high_freq_factor"], rope["original_max_position_embeddings"]

    def llama3(f):
        wave = 2 * math.pi / f
        if wave < length / high:
            return f
        if wave > length / low:
            return f / rope["factor"]
        smooth = (length / wave - low) / (high - low)
        return (1 - smooth) * f / rope["factor"] + smooth * f
    return [llama3(f) for f in plain]


def norm(x, weight, epsilon):
    scale = 1 / math.sqrt(sum(v * v for v in x) / len(x) + epsilon)
    return [w * v * scale for w, v in zip(weight, x)]


def rotate(head, angles):
    half = len(angles)
    turned = [0.0] * (2 * half)
    for i, angle in enumerate(angles):
        c, s = math.cos(angle), math.sin(angle)
        turned[i] = head[i] * c - head[half + i] * s
        turned[half + i] = head[half + i] * c + head[i] * s
    return turned


class Reference:
    """Feeds one token at a time and gives the logits after it."""

    def __init__(self, config, weights):
        self.config = config
        self.weights = {name: values for name, (_, values) in weights.items()}
        self.rows = {name: [values[r * shape[1]:(r + 1) * shape[1]] for r in range(shape[0])]
                     for name, (shape, values) in weights.items() if len(shape) == 2}
        self.frequencies = frequencies(config)
        self.cache = [([], []) for _ in range(config["num_hidden_layers"])]

    def linear(self, name, x):
        y = [sum(w * v for w, v in zip(row, x)) for row in self.rows[name + ".weight"]]
        bias = self.weights.get(name + ".bias")
        return [a + b for a, b in zip(y, bias)] if bias else y

    def heads(self, flat):
        dim = head_dim(self.config)
        return [flat[i:i + dim] for i in range(0, len(flat), dim)]

    def project(self, prefix, name, x, angles):
        heads = self.heads(self.linear(f"{prefix}{name}_proj", x))
        if self.config["model_type"] == "qwen3":
            heads = [norm(h, self.weights[f"{prefix}{name}_norm.weight"], self.config.get("rms_norm_eps", 1e-6)) for h in heads]
        return [rotate(h, angles) for h in heads]

    def attention(self, prefix, x, cache, position, seen):
        angles = [position * f for f in self.frequencies]
        queries = self.project(prefix, "q", x, angles)
        cache[0].append(self.project(prefix, "k", x, angles))
        cache[1].append(self.heads(self.linear(prefix + "v_proj", x)))
        group, out = len(queries) // kv_heads(self.config), []
        first = 0 if seen is None else max(0, position + 1 - seen)
        for h, query in enumerate(queries):
            scores = [sum(a * b for a, b in zip(query, keys[h // group])) / math.sqrt(len(query)) for keys in cache[0][first:]]
            weights = [math.exp(s - max(scores)) for s in scores]
            out += [sum(w * values[h // group][d] for w, values in zip(weights, cache[1][first:])) / sum(weights) for d in range(len(query))]
        return self.linear(prefix + "o_proj", out)

    def mlp(self, prefix, x):
        gate, up = self.linear(prefix + "gate_proj", x), self.linear(prefix + "up_proj", x)
        return self.linear(prefix + "down_proj", [g / (1 + math.exp(-g)) * u for g, u in zip(gate, up)])

    def feed(self, token):
        epsilon = self.config.get("rms_norm_eps", 1e-6)
        x = list(self.rows["model.embed_tokens.weight"][token])
        for layer, cache in enumerate(self.cache):
            prefix = f"model.layers.{layer}."
            y = norm(x, self.weights[prefix + "input_layernorm.weight"], epsilon)
            x = [a + b for a, b in zip(x, self.attention(prefix + "self_attn.", y, cache, len(cache[0]), window(self.config, layer)))]
            y = norm(x, self.weights[prefix + "post_attention_layernorm.weight"], epsilon)
            x = [a + b for a, b in zip(x, self.mlp(prefix + "mlp.", y))]
        output = "model.embed_tokens" if self.config.get("tie_word_embeddings") else "lm_head"
        return self.linear(output, norm(x, self.weights["model.norm.weight"], epsilon))

    def generate(self, prompt, count):
        """The prompt's logits, `count` greedy tokens, and the smallest lead that one of them had over the next best."""
        logits = [self.feed(token) for token in prompt]
        ids, gap, last = [], math.inf, logits[-1]
        while len(ids) < count:
            ranked = sorted(last, reverse=True)
            gap = min(gap, ranked[0] - ranked[1])
            ids.append(last.index(ranked[0]))
            if len(ids) < count:
                last = self.feed(ids[-1])
        return logits, ids, gap
