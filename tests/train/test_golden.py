"""20 steps in f32 against PyTorch's on the same weights and tokens (tests/golden/make_training.py)."""
import trained
from harness import case, expect, run_cases

for model in ("llama", "qwen3", "mixtral", "qwen3-moe"):
    for run in ("adamw", "sgd"):
        for mesh, kind in (("dp=1", "rows"), ("tp=2,fsdp=2", "rows" if run == "adamw" else "elements")):
            @case(f"{model} by {run} on {mesh}, cut by {kind}: losses within 1e-3 of PyTorch's, and norms of gradients")
            def check(directory, model=model, run=run, mesh=mesh, kind=kind):
                arguments, expected = trained.write_golden(directory, model)
                wanted = expected[run]
                got = trained.steps(*arguments, *wanted["options"], "--steps", len(wanted["losses"]), "--mesh", mesh, "--shard", kind)
                expect([step["step"] for step in got] == list(range(len(wanted["losses"]))), "steps", got)
                for step, loss, norm in zip(got, wanted["losses"], wanted["norms"]):
                    expect(abs(step["loss"] - loss) <= 1e-3, step, "is not", loss)
                    expect(abs(step["gradient_norm"] - norm) <= 1e-3 * norm, step, "is not", norm)
                expect(["router_loss" in step for step in got] == ["router_losses" in wanted] * len(got), got)
                for step, router in zip(got, wanted.get("router_losses", [])):
                    expect(abs(step["router_loss"] - router) <= 1e-3, step, "is not", router)
                expect(wanted["losses"][-1] < wanted["losses"][0] - 0.1, "nothing was learned")

run_cases()
