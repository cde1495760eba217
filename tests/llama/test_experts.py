"""Mixtral and Qwen3-MoE, as transformers saves them in either form, against what transformers computes in f32. Weights are made by rule."""
import json
import os
import pathlib
import shutil

import made
from harness import answer, case, expect, ids_text, largest_difference, read_npy, refused, run_cases, write_safetensors

GOLDEN = pathlib.Path(__file__).resolve().parents[1] / "golden"
MODELS = GOLDEN / "expert_models"
# Experts are 5 or 6: ranks have several, one or none, and of 10 or 12 ranks two share one.
RANKS = (1, 4) if os.environ.get("TSR_TEST_THIN") else (1, 2, 3, 4, 5, 6, 7, 8)
SHARED = {"mixtral": 10, "mixtral-sliding": 12, "qwen3-moe": 12, "qwen3-moe-unnormed": 10}
PLANS = {"mixtral": "mixtral.json", "mixtral-sliding": "mixtral.json", "qwen3-moe": "qwen3_moe.json", "qwen3-moe-unnormed": "qwen3_moe.json"}


def expected_of(model):
    return json.loads((MODELS / model / "expected.json").read_text())


def write_model(directory, model, form, dtype="F32", files=1, change=None):
    """A checkpoint of one or several files, and its expected.json; `change` gets the tensors before they are written."""
    expected = expected_of(model)
    tensors = made.tensors(expected, form, dtype)
    if change:
        change(tensors)
    shutil.copy(MODELS / model / "config.json", directory / "config.json")
    names, index = list(tensors), {}
    for part in range(files):
        file = "model.safetensors" if files == 1 else f"model-{part + 1:05}-of-{files:05}.safetensors"
        write_safetensors(directory / file, {name: tensors[name] for name in names[part::files]})
        index.update({name: file for name in names[part::files]})
    if files > 1:
        (directory / "model.safetensors.index.json").write_text(json.dumps({"metadata": {}, "weight_map": index}))
    return expected


def compare(directory, model, expected, ranks, *more):
    """Logits within 1e-4 of the largest, and the same tokens."""
    got = answer(directory, "--ranks", ranks, "--prompt-ids", ids_text(expected["prompt_ids"]), "--tokens", len(expected["ids"]), "--logits",
                 directory / "l.npy", *more)
    shape, values = read_npy(directory / "l.npy")
    wanted_shape, wanted = read_npy(MODELS / model / "logits.npy")
    bound = 1e-4 * max(map(abs, wanted))
    expect(shape == wanted_shape, shape, "is not", wanted_shape)
    difference = largest_difference(values, wanted)
    expect(difference <= bound, ranks, "ranks: logits differ by", difference, "which is more than", bound)
    # A token's lead over the next best is more than logits may differ, and an expert's more than the rounding of what is about 1.
    expect(2 * bound < expected["least_lead"] and expected["least_router_lead"] > 2e-5, "the leads are too small to compare tokens")
    expect(got["ids"] == expected["ids"], ranks, "ranks:", got["ids"], "is not", expected["ids"])
    return got


# base_model_ep_plan of both configurations.
EXPERT_PARALLEL = {"model.layers.*.mlp.experts.gate_up_proj": "grouped_gemm", "model.layers.*.mlp.experts.down_proj": "grouped_gemm",
                   "model.layers.*.mlp.experts": "ep_dispatch_experts"}


def read_plan(model, prefix):
    """The rules for layers of transformers' plan, as config.json has them without `prefix`."""
    rules = json.loads((GOLDEN / "parallel_plans" / PLANS[model]).read_text())
    return {prefix + name.removeprefix("model."): style for name, style in rules.items() if name.startswith("model.layers.")}


for model in PLANS:
    @case(f"{model}, experts one by one, in f32 and three files: logits within 1e-4 of the largest and the same tokens on any number of ranks")
    def single(directory, model=model):
        expected = write_model(directory, model, "single", "F32", 3)
        for ranks in (*RANKS, SHARED[model]):
            expect(compare(directory, model, expected, ranks)["weights"] == "f32", "not f32")

    @case(f"{model}, stacked experts, in bf16: logits within 1e-4 of the largest and the same tokens on any number of ranks")
    def stacked(directory, model=model):
        expected = write_model(directory, model, "stacked", "BF16")
        for ranks in (*RANKS[2::4], SHARED[model]):
            expect(compare(directory, model, expected, ranks)["weights"] == "bf16", "not bf16")

    @case(f"{model}: cut as the plans of transformers say, tensor-parallel or expert-parallel, the same on any number of ranks")
    def plan(directory, model=model):
        expected = write_model(directory, model, "single", "BF16")
        for number, rules in enumerate((read_plan(model, "model."), read_plan(model, "model.") | EXPERT_PARALLEL)):
            (directory / "plan.json").write_text(json.dumps(rules))
            for ranks in RANKS[1 + number::3]:
                compare(directory, model, expected, ranks, "--tp-plan", directory / "plan.json")


@case("each expert is read once by all ranks together, in either form, and by the ranks that share it")
def bytes_read(directory):
    model = "mixtral"
    size = sum(len(data) for _, _, data in made.tensors(expected_of(model), "single", "F32").values())
    for form in ("single", "stacked"):
        write_model(directory, model, form)
        for ranks in (1, 3, 5, 10):
            read = answer(directory, "--ranks", ranks, "--prompt", "O", "--tokens", 1)["bytes_read"]
            whole, keys = 4 * (5 * 64 + 2 * 64 * 5), 4 * 2 * 2 * 32 * 64  # norms and routers, and k and v
            copies = ranks // 2 if ranks > 2 and ranks % 2 == 0 else 1
            wanted = size + (ranks - 1) * whole + (copies - 1) * keys
            expect(sum(read) == wanted, form, ranks, "ranks read", read, "which is not", wanted)


def change_config(directory, **changes):
    config = {**json.loads((directory / "config.json").read_text()), **changes}
    (directory / "config.json").write_text(json.dumps(config))


@case("config.json's own plan of a kind of models is followed where all of its layers have experts, too")
def own_plan(directory):
    shutil.copy(MODELS / "qwen3-moe" / "config.json", directory / "config.json")
    change_config(directory, mlp_only_layers=[])
    arguments = ("--random", directory / "config.json", "--seed", 3, "--prompt", "To be", "--tokens", 12)
    wanted = answer(*arguments)["ids"]
    change_config(directory, base_model_tp_plan=read_plan("qwen3-moe", ""))
    for ranks in (2, 5):
        got = answer(*arguments, "--ranks", ranks)["ids"]
        expect(got == wanted, ranks, "ranks give", got, "not", wanted)
    (directory / "plan.json").write_text(json.dumps({"model.layers.*.mlp.gate_proj": "colwise"}))
    refused(1, "--random", MODELS / "mixtral" / "config.json", "--tp-plan", directory / "plan.json", says="mlp.gate_proj")


@case("where experts alone are cut, by a plan, logits have the same bits on any number of ranks")
def same_bits(directory):
    rules = {f"model.layers.*.mlp.experts.{name}": "S(0;balanced)" for name in ("gate_up_proj", "down_proj")}
    (directory / "plan.json").write_text(json.dumps(rules))
    for model in ("mixtral", "qwen3-moe-unnormed"):
        logits = {}
        for ranks in (1, 3, 7):
            answer("--random", MODELS / model / "config.json", "--prompt", "To be", "--tokens", 2, "--tp-plan", directory / "plan.json", "--ranks", ranks,
                   "--logits", directory / "l.npy")
            logits[ranks] = (directory / "l.npy").read_bytes()
        expect(len(set(logits.values())) == 1, model, "has other bits on other numbers of ranks")


@case("random weights do not depend on how experts are cut")
def random_weights(directory):
    for model in ("mixtral", "qwen3-moe"):
        arguments = ("--random", MODELS / model / "config.json", "--seed", 5, "--prompt", "To be", "--tokens", 12)
        wanted = answer(*arguments)["ids"]
        for ranks in (3, 7, SHARED[model]):
            got = answer(*arguments, "--ranks", ranks)["ids"]
            expect(got == wanted, model, ranks, "ranks give", got, "not", wanted)


def drop(name):
    return lambda tensors: tensors.pop(name)


def put(name, dtype, shape):
    return lambda tensors: tensors.update({name: (dtype, shape, bytes((2 if dtype in ("BF16", "I16") else 4) * shape[0] * shape[1]))})


EXPERT = "model.layers.0.block_sparse_moe.experts.{}.{}.weight"


def uneven(tensors):
    """Gates have a row too few, and ups one too many, so that together they have as many as there must be."""
    for name, rows in ((EXPERT.format(1, "w1"), 35), (EXPERT.format(1, "w3"), 37)):
        put(name, "F32", (rows, 64))(tensors)


SPOILED = {
    "an expert that is missing": ("single", drop(EXPERT.format(3, "w3")), {}, EXPERT.format(3, "w3")),
    "all experts missing": ("stacked", drop("model.layers.1.mlp.experts.down_proj"), {}, "no tensor model.layers.1.mlp.experts.down_proj"),
    "an expert too many": ("single", put("model.layers.0.block_sparse_moe.gate.weight", "F32", (4, 64)), {"num_local_experts": 4}, "experts.4.w1.weight, but the layout ends with 3"),
    "stacked experts too many": ("stacked", None, {"num_local_experts": 4}, "(5x64)"),
    "an expert of another shape": ("single", put(EXPERT.format(2, "w2"), "F32", (64, 35)), {}, ("(64x35)", "(64x36)")),
    "gates and ups of different numbers of rows": ("single", uneven, {}, (EXPERT.format(1, "w1"), "(35x64)", "(36x64)")),
    "an expert of integers": ("single", put(EXPERT.format(1, "w1"), "I32", (36, 64)), {}, "is of dtype i32; this program reads"),
    "more experts for a token than there are": ("single", None, {"num_experts_per_tok": 6}, "num_experts_per_tok"),
    "another size in config.json": ("stacked", None, {"intermediate_size": 37}, "5x72x64"),
}
for sentence, (form, change, changes, says) in SPOILED.items():
    @case(f"{sentence}: refused with a sentence")
    def spoiled(directory, form=form, change=change, changes=changes, says=says):
        write_model(directory, "mixtral", form, change=change)
        change_config(directory, **changes)
        refused(1, directory, "--ranks", 3, "--prompt", "O", "--tokens", 1, says=says)


@case("experts in 8 bits are refused with a sentence, and --weights bf16 rounds those of f32")
def narrow(directory):
    expected = write_model(directory, "mixtral", "single")
    refused(1, directory, "--weights", "q8", "--prompt", "O", says=("--weights q8", "5 experts"))
    # The weights are those of bf16 already.
    expect(compare(directory, "mixtral", expected, 2, "--weights", "bf16")["weights"] == "bf16", "not bf16")


run_cases()
