"""Weights cut by plans for models: the same tokens as without, whatever the plan leaves whole."""
import json
import os

from harness import SHAKESPEARE, answer, case, expect, refused, run_cases

ATTENTION = {f"model.layers.*.self_attn.{name}_proj": "colwise" for name in "qkv"} | {"model.layers.*.self_attn.o_proj": "rowwise"}
MLP = {"model.layers.*.mlp.gate_proj": "colwise", "model.layers.*.mlp.up_proj": "colwise", "model.layers.*.mlp.down_proj": "rowwise"}
PLANS = {
    "attention and MLP": ATTENTION | MLP,
    "the MLP alone": MLP,
    "attention alone": ATTENTION,
    "the embedding by rows": ATTENTION | MLP | {"model.embed_tokens": "embedding_rowwise"},
    "gate gathered": MLP | {"model.layers.*.mlp.gate_proj": "colwise_gather_output", "model.layers.*.mlp.up_proj": "colwise_gather_output",
                            "model.layers.*.mlp.down_proj": "replicate"},
    "nothing": {"model.norm": "replicate"},
}
# Under sanitizers fewer ranks show the same.
RANKS = (2, 6) if os.environ.get("TSR_TEST_THIN") else (1, 2, 3, 4, 6)
REQUEST = ("--prompt", "ROMEO:", "--tokens", 24)
WANTED = answer(SHAKESPEARE, *REQUEST)["ids"]

for title, plan in PLANS.items():
    @case(f"{title}: the same tokens on any number of ranks")
    def check(directory, plan=plan):
        (directory / "plan.json").write_text(json.dumps(plan))
        for ranks in RANKS:
            got = answer(SHAKESPEARE, "--tp-plan", directory / "plan.json", "--ranks", ranks, *REQUEST)
            expect(got["ids"] == WANTED, ranks, "ranks give", got["ids"])


@case("config.json's own plan is followed")
def own_plan(directory):
    config = json.loads((SHAKESPEARE / "config.json").read_text())
    config["base_model_tp_plan"] = {name.removeprefix("model."): style for name, style in MLP.items()}
    (directory / "config.json").write_text(json.dumps(config))
    (directory / "model.safetensors").symlink_to((SHAKESPEARE / "model.safetensors").resolve())
    got = answer(directory, "--ranks", 2, *REQUEST)
    expect(got["ids"] == WANTED, got["ids"])
    # Attention and the embedding are whole on each rank, and read twice.
    plain = answer(SHAKESPEARE, "--ranks", 2, *REQUEST)
    expect(sum(got["bytes_read"]) > sum(plain["bytes_read"]), got["bytes_read"])


@case("a pattern that matches nothing is refused")
def unknown(directory):
    (directory / "plan.json").write_text(json.dumps({"model.layers.*.mlp.gate_projs": "colwise"}))
    refused(1, SHAKESPEARE, "--tp-plan", directory / "plan.json", "--ranks", 2, *REQUEST, says=("matches none of 38 parameters",))


run_cases()
