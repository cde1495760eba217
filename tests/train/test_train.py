"""What tessera-train says, keeps to on every mesh, and refuses."""
import json
import math
import pathlib
import subprocess
import sys
import xml.etree.ElementTree

import trained
from harness import case, expect, refused, run, run_cases

SHAKESPEARE = pathlib.Path(sys.argv[2])
# Rows are too few for 7 ranks.
UNEVEN = {"hidden_size": 6, "intermediate_size": 5, "num_attention_heads": 3, "head_dim": 2}
EXPERTS = {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2, "num_key_value_heads": 3, "output_router_logits": True}


@case("a step is a JSON object of these fields")
def fields(directory):
    got = trained.steps(*trained.write_tiny(directory), "--steps", 3, "--mesh", "dp=2", "--lr", "0.01", "--warm-up", 2)
    expect([list(step) for step in got] == [["step", "loss", "gradient_norm", "lr", "tokens_per_second", "bytes_received", "seconds"]] * 3, got)
    expect([step["step"] for step in got] == [0, 1, 2], got)
    expect([step["lr"] for step in got] == [0.005, 0.01, 0.01], got)
    expect(got[0]["bytes_received"] > 0 and got[0]["seconds"] > 0 and got[0]["tokens_per_second"] > 0, got)
    expect(trained.steps(*trained.write_tiny(directory), "--steps", 1)[0]["bytes_received"] == 0, "one rank receives")


@case("a schedule takes the learning rate from its peak, after the warm-up, to its end")
def schedules(directory):
    model = [*trained.write_tiny(directory), "--steps", 6, "--lr", "0.01", "--warm-up", 2]
    rates = [step["lr"] for step in trained.steps(*model, "--schedule", "linear", "--final-lr", "0.002")]
    wanted = [0.005, 0.01, 0.008, 0.006, 0.004, 0.002]
    expect(all(abs(a - b) < 1e-15 for a, b in zip(rates, wanted)), rates)
    rates = [step["lr"] for step in trained.steps(*model, "--schedule", "cosine")]
    wanted = [0.005] + [0.005 * (1 + math.cos(math.pi * step / 4)) for step in range(5)]
    expect(all(abs(a - b) < 1e-15 for a, b in zip(rates, wanted)), rates)


@case("a step is a line for people")
def lines(directory):
    done = run(*trained.write_tiny(directory), "--steps", 2, "--validation", directory / "text.txt")
    said = done.stdout.decode().splitlines()
    expect(done.returncode == 0 and b"parameters on mesh dp=1" in done.stderr and len(said) == 2, done)
    expect(said[0].startswith("step 0: loss ") and "validation" not in said[0] and "validation" in said[1], said)
    expect(all("% of the peak" in line for line in said), said)


@case("seed, order and dtype decide the losses, and the mesh does not")
def seeds(directory):
    model = trained.write_tiny(directory)
    for options in ([], ["--seed", 5], ["--order", "random"], ["--order", "random", "--seed", 5], ["--optimizer", "muon"], ["--optimizer", "lion"],
                    ["--optimizer", "adafactor"], ["--clip", "0.5"], ["--shard-states"], ["--dropout", "0.3"]):
        one = trained.losses(*model, *options, "--steps", 4, "--dtype", "f64")
        for mesh in ("dp=3", "fsdp=2,tp=2"):
            other = trained.losses(*model, *options, "--steps", 4, "--dtype", "f64", "--mesh", mesh)
            expect(all(abs(a - b) <= 1e-9 for a, b in zip(one, other)), options, mesh, one, other)
    runs = [trained.losses(*model, *options, "--steps", 2) for options in ([], ["--seed", 5], ["--order", "random"], ["--lr", "0.1"], ["--dtype", "bf16"], ["--dropout", "0.1"])]
    expect(len({tuple(losses) for losses in runs}) == len(runs), runs)


@case("matrices that are cut by elements give the bits of whole rows")
def elements(directory):
    model = trained.write_tiny(directory, **UNEVEN)
    for options in ([], ["--optimizer", "muon"], ["--optimizer", "adafactor"], ["--clip", "0.5", "--shard-states"]):
        options = [*options, "--steps", 4, "--dtype", "f64", "--lr", "0.01"]
        one = trained.losses(*model, *options)
        for mesh in ("fsdp=7", "fsdp=3,tp=2"):
            by_rows = trained.losses(*model, *options, "--mesh", mesh)
            got = trained.losses(*model, *options, "--mesh", mesh, "--shard", "elements")
            expect(got == by_rows if "--clip" not in options else all(abs(a - b) <= 1e-12 for a, b in zip(got, by_rows)), options, mesh, got, by_rows)
            expect(all(abs(a - b) <= 1e-9 for a, b in zip(got, one)), options, mesh, got, one)
    plot = directory / "losses.svg"
    trained.losses(*model, "--steps", 1, "--mesh", "fsdp=2,tp=2", "--shard", "elements", "--plot", plot)
    words = " ".join(xml.etree.ElementTree.parse(plot).getroot().itertext())
    expect("mlp.down_proj.weight  S(0;balanced)[1],S(0;interleave=6)[0]" in words, words)


@case("matrices that are cut by elements go with parts, experts, dropout and samples")
def elements_of_all(directory):
    for changes in ({}, EXPERTS):
        model = [*trained.write_tiny(directory, **UNEVEN, **changes), "--steps", 3, "--dtype", "f64", "--lr", "0.02"]
        for options in (["--micro-batches", 2, "--loss-scale", 8], ["--dropout", "0.2", "--micro-batches", 3, "--optimizer", "muon"], ["--sample", 2, "--tokens", 5, "--prompt", "All"]):
            for mesh in ("fsdp=4", "dp=2,fsdp=2,tp=2"):
                by_rows, got = (trained.steps(*model, *options, "--mesh", mesh, "--shard", kind) for kind in ("rows", "elements"))
                for key in ("loss", "sample", "router_loss"):
                    expect([step.get(key) for step in got] == [step.get(key) for step in by_rows], changes, options, mesh, key, got, by_rows)
        told = [json.loads(run(*model, "--micro-batches", 2, "--mesh", "fsdp=64", "--shard", kind, "--memory", "--json").stdout) for kind in ("rows", "elements")]
        expect(0 < told[1]["parameters"] < told[0]["parameters"] and all(one["gradients"] > 0 for one in told), told)


@case("dropout differs from step to step, follows from the seed, and is none in validation")
def dropout(directory):
    model = [*trained.write_tiny(directory), "--dtype", "f64", "--lr", 0, "--validation", directory / "text.txt", "--every", 1]
    # One batch is all there is: at rate 0 only masks differ.
    (directory / "text.txt").write_bytes(trained.TEXT[:10])
    plain, one = (trained.steps(*model, "--steps", 4, *more) for more in ([], ["--dropout", "0.2"]))
    expect(len({step["loss"] for step in plain}) == 1 and len({step["loss"] for step in one}) == 4, plain, one)
    expect({step["validation_loss"] for step in one} == {plain[0]["validation_loss"]}, plain, one)
    for mesh in ("tp=2", "cp=3", "fsdp=3", "dp=2,tp=2"):
        other = trained.losses(*model, "--steps", 4, "--dropout", "0.2", "--mesh", mesh)
        expect(all(abs(a["loss"] - b) <= 1e-9 for a, b in zip(one, other)), mesh, one, other)


@case("samples are the same on every mesh, and follow from the seed and the step")
def samples(directory):
    experts = {"model_type": "mixtral", "num_local_experts": 3, "num_experts_per_tok": 2, "num_key_value_heads": 2}
    for changes in ({}, experts):
        model = [*trained.write_tiny(directory, **changes), "--dtype", "f64", "--lr", "0.02", "--steps", 4, "--sample", 2, "--tokens", 9, "--prompt", "All"]
        for options in ([], ["--temperature", "0.9"]):
            one = [step.get("sample") for step in trained.steps(*model, *options)]
            expect([sample is not None for sample in one] == [False, True, False, True] and len(one[1]["ids"]) == 9, one)
            for mesh in ("dp=2", "tp=3", "cp=2", "fsdp=3", "dp=2,fsdp=2,tp=2", "cp=2,tp=2"):
                other = [step.get("sample") for step in trained.steps(*model, *options, "--mesh", mesh)]
                expect(other == one, mesh, one, other)
        expect(one[1] != one[3], one)
        seeded = trained.steps(*model, *options, "--seed", 3, "--lr", 0)
        expect(seeded[1]["sample"] != seeded[3]["sample"], "steps draw alike", seeded)
    numbers = trained.write_tiny(directory, vocab_size=300)
    trained.write_numbers(directory / "text.txt", [i % 300 for i in range(100)])
    got = trained.steps(*numbers, "--steps", 1, "--sample", 1, "--tokens", 5, "--prompt-ids", "7,8")[0]["sample"]
    expect(got["text"] is None and len(got["ids"]) == 5, got)
    done = run(*numbers, "--steps", 1, "--sample", 1, "--tokens", 5, "--prompt-ids", "7,8")
    expect(done.stdout.decode().splitlines()[1:] == ["--", " ".join(map(str, got["ids"])), "--"], done)


@case("samples of the Shakespeare model are those of transformers, and training goes on as without them")
def shakespeare(directory):
    expected = json.loads((SHAKESPEARE / "expected.json").read_text())["cases"][0]
    (directory / "text.txt").write_bytes(trained.TEXT)
    model = [SHAKESPEARE, "--data", directory / "text.txt", "--batch", 2, "--length", 32, "--steps", 2]
    got = trained.steps(*model, "--mesh", "tp=2", "--lr", 0, "--sample", 1, "--tokens", 12, "--prompt", expected["prompt"])
    expect(all(step["sample"]["ids"] == expected["ids"][:12] for step in got), got, expected)
    with_samples = trained.losses(*model, "--steps", 3, "--sample", 1, "--tokens", 2)
    expect(with_samples == trained.losses(*model, "--steps", 3), with_samples)


@case("bf16 is near f32 on every mesh, and learns")
def narrow(directory):
    model = trained.write_tiny(directory)
    wide = trained.losses(*model, "--steps", 30, "--lr", "0.02")
    for mesh in ("dp=1", "fsdp=2,tp=2", "cp=2,dp=2"):
        got = trained.losses(*model, "--steps", 30, "--lr", "0.02", "--dtype", "bf16", "--mesh", mesh)
        expect(abs(got[0] - wide[0]) < 0.02 and got[-1] < got[0] - 1, mesh, got, wide)


@case("a step in parts has the loss of the whole step on every mesh, and receives no more")
def parts(directory):
    model = [*trained.write_tiny(directory), "--dtype", "f64", "--steps", 3, "--lr", "0.01"]
    whole = trained.steps(*model, "--mesh", "dp=2")
    for mesh, number in (("dp=1", 2), ("dp=2", 3), ("fsdp=2", 2)):
        got = trained.steps(*model, "--mesh", mesh, "--micro-batches", number, "--validation", directory / "text.txt")
        expect(all(abs(a["loss"] - b["loss"]) <= 1e-9 for a, b in zip(whole, got)), mesh, whole, got)
        expect(mesh != "dp=2" or got[0]["bytes_received"] == whole[0]["bytes_received"], whole, got)


@case("steps whose gradients are not finite are skipped, and the loss scale halves")
def skipped(directory):
    model = trained.write_tiny(directory)
    # The first update makes weights of which products overflow.
    got = trained.steps(*model, "--steps", 4, "--lr", "1e30", "--dtype", "bf16", "--mesh", "dp=2", "--loss-scale", 8)
    expect([step["skipped"] for step in got] == [False, True, True, True], got)
    expect([step["loss_scale"] for step in got] == [8, 8, 4, 2] and got[1]["gradient_norm"] is None, got)
    expect("loss_scale" not in trained.steps(*model, "--steps", 1)[0], "f32 scales the loss")
    expect(trained.steps(*model, "--steps", 1, "--dtype", "bf16")[0]["loss_scale"] == 65536, "bf16 does not")


@case("validation is the mean loss over the whole batches of its file")
def validation(directory):
    model = trained.write_tiny(directory)
    (directory / "other.txt").write_bytes(trained.TEXT[:50])
    got = trained.steps(*model, "--steps", 5, "--every", 2, "--lr", 0, "--validation", directory / "other.txt", "--dtype", "f64")
    expect([("validation_loss" in step) for step in got] == [False, True, False, True, True], got)
    # 50 bytes have 6 windows of 8, which make 2 batches of 3; the rate is 0, so that the weights are those of step 0.
    model[model.index("--data") + 1] = directory / "other.txt"
    wanted = sum(trained.losses(*model, "--steps", 2, "--lr", 0, "--dtype", "f64")) / 2
    expect(abs(got[-1]["validation_loss"] - wanted) < 1e-12, got, wanted)


@case("tokens are numbers of i32 or i64 where the vocabulary is not that of bytes")
def numbers(directory):
    model = trained.write_tiny(directory, vocab_size=300)
    data = directory / "text.txt"
    values = [i * i % 300 for i in range(100)]
    trained.write_numbers(data, values, "i4")
    first = trained.losses(*model, "--steps", 2)
    trained.write_numbers(data, values, "i8")
    expect(trained.losses(*model, "--steps", 2) == first, first)
    trained.write_numbers(data, values + [300], "i8")
    refused(1, *model, says=["--data", "token 300, at place 100", "299"])
    trained.write_numbers(data, values, "f4")
    refused(1, *model, says=["its dtype is f32", "i32 or i64 in one dim"])
    data.write_bytes(trained.TEXT)
    refused(1, *model, says=["--data", "vocab_size is not 256"])


@case("a run that is resumed, on another mesh, goes on as if nothing had happened")
def resumed(directory):
    model = trained.write_tiny(directory)
    for number, options in enumerate(([], ["--optimizer", "muon"], ["--optimizer", "adafactor", "--order", "random", "--dropout", "0.2"])):
        options = [*options, "--dtype", "f64", "--lr", "0.01"]
        folder = directory / f"saved-{number}"
        whole = trained.losses(*model, *options, "--steps", 7)
        begun = trained.losses(*model, *options, "--steps", 4, "--mesh", "dp=2,tp=2", "--shard-states", "--save", folder, "--every", 2)
        for mesh in ("dp=1", "fsdp=3"):
            got = trained.steps(*model, *options, "--steps", 7, "--mesh", mesh, "--resume", folder)
            expect([step["step"] for step in got] == [4, 5, 6], got)
            expect(all(abs(a - b) <= 1e-9 for a, b in zip(whole, begun + [step["loss"] for step in got])), options, mesh, whole, begun, got)
        expect(trained.steps(*model, *options, "--steps", 4, "--resume", folder) == [], "a run that is done goes on")
    saved = sorted(path.name for path in folder.iterdir())
    expect(len(saved) == 3 and saved[0] == "config.json" and saved[2] == "model.safetensors.index.json", saved)


@case("what is cut by elements is saved as matrices, and goes on by rows, and the other way")
def views(directory):
    model = trained.write_tiny(directory, **UNEVEN)
    for optimizer in ("adamw", "muon", "adafactor"):
        options = ["--optimizer", optimizer, "--dtype", "f64", "--lr", "0.01"]
        whole = trained.losses(*model, *options, "--steps", 6)
        for first, then in (("elements", "rows"), ("rows", "elements"), ("elements", "elements")):
            folder = directory / f"{optimizer}-{first}-{then}"
            trained.losses(*model, *options, "--steps", 3, "--mesh", "fsdp=7", "--shard", first, "--save", folder)
            got = trained.losses(*model, *options, "--steps", 6, "--mesh", "fsdp=2,tp=2", "--shard", then, "--resume", folder)
            expect(all(abs(a - b) <= 1e-9 for a, b in zip(whole[3:], got)), optimizer, first, then, whole, got)
    folder = directory / "model"
    trained.losses(*model, "--steps", 3, "--mesh", "fsdp=3", "--shard", "elements", "--save", folder)
    begins = [trained.losses(folder, *model[1:], "--steps", 2, "--mesh", "fsdp=3", "--shard", kind) for kind in ("rows", "elements")]
    expect(begins[0] == begins[1], begins)
    (folder / "config.json").write_text(json.dumps({**json.loads((folder / "config.json").read_text()), "intermediate_size": 6}))
    refused(1, folder, *model[1:], "--shard", "elements", says=["mlp.gate_proj.weight has shape (5x6)", "(6x6)"])


@case("what is cut by elements is saved in the background, and goes on with any cuts, in parts, with experts")
def views_in_background(directory):
    for changes in ({}, EXPERTS):
        model = [*trained.write_tiny(directory, **UNEVEN, **changes), "--dtype", "f64", "--lr", "0.01"]
        folder = directory / f"saved-{len(changes)}"
        whole = trained.losses(*model, "--steps", 5, "--dropout", "0.1", "--micro-batches", 2)
        begin = ["--steps", 3, "--dropout", "0.1", "--micro-batches", 2, "--mesh", "fsdp=3", "--shard", "elements", "--save", folder, "--every", 1, "--background"]
        begun = trained.losses(*model, *begin)
        for then in (["--shard", "elements", "--mesh", "fsdp=2,tp=2"], ["--mesh", "fsdp=3"], ["--shard", "elements", "--mesh", "dp=2", "--shard-states"]):
            got = trained.losses(*model[:3], "--steps", 5, "--micro-batches", 2, "--resume", folder, *then)
            expect(all(abs(a - b) <= 1e-9 for a, b in zip(whole, begun + got)) and len(got) == 2, changes, then, whole, begun, got)


@case("on one mesh a resumed run has the bits of one that was not")
def bits(directory):
    model = [*trained.write_tiny(directory), "--mesh", "fsdp=2,tp=2"]
    whole = trained.losses(*model, "--steps", 6)
    trained.losses(*model, "--steps", 3, "--save", directory / "saved")
    expect(trained.losses(*model, "--steps", 6, "--resume", directory / "saved") == whole[3:], whole)


@case("what is saved is a model's folder, to train on from step 0")
def saved_models(directory):
    model = trained.write_tiny(directory)
    trained.losses(*model, "--steps", 3, "--save", directory / "saved", "--lr", "0.01")
    told = trained.losses(*model, "--steps", 4, "--lr", "0.01")
    again = trained.steps(directory / "saved", *model[1:], "--steps", 1, "--resume", directory / "saved")
    expect(again == [], again)
    # The weights are those after 3 steps; the windows those of step 0.
    first = trained.losses(directory / "saved", *model[1:], "--steps", 1)
    expect(first[0] < told[0] - 0.01, first, told)


@case("states of other trainings are refused, and leave no rank waiting")
def other_states(directory):
    model = trained.write_tiny(directory)
    trained.losses(*model, "--steps", 1, "--save", directory / "saved")
    refused(1, *model, "--mesh", "dp=2", "--resume", directory / "saved", "--optimizer", "lion", says=["--optimizer adamw, not lion"])
    refused(1, *model, "--mesh", "dp=2", "--resume", directory / "none", says="none")
    other = trained.write_tiny(directory, hidden_size=24)
    refused(1, *other, "--mesh", "dp=2", "--resume", directory / "saved", says="model.embed_tokens.weight")
    arguments, _ = trained.write_golden(directory, "llama")
    refused(1, *arguments, "--resume", directory, says="tensor")
    refused(1, *trained.write_tiny(directory), "--mesh", "dp=2", "--steps", 1, "--save", directory / "no" / "folder", "--json", says="--save")


@case("losses are drawn, with the run's layouts")
def plots(directory):
    path = directory / "losses.svg"
    trained.losses(*trained.write_tiny(directory), "--steps", 5, "--plot", path, "--mesh", "dp=2,tp=2", "--validation", directory / "text.txt", "--every", 2)
    words = " ".join(xml.etree.ElementTree.parse(path).getroot().itertext())
    for part in ("Loss by step", "mesh dp=2,tp=2", "tokens  S(0;balanced),R", "model.layers.0.mlp.gate_proj.weight  R,S(0)"):
        expect(part in words, part, "is not in", words)
    refused(1, *trained.write_tiny(directory), "--plot", directory / "no" / "losses.svg", says="losses.svg")


@case("what cannot be is refused in words")
def refusals(directory):
    model = trained.write_tiny(directory)
    refused(2, "--data", "x", says="MODEL_DIR")
    refused(2, model[0], says="--data")
    refused(2, *model, "--optimizer", "adam", says=["--optimizer adam", "adamw"])
    refused(2, *model, "--optimizer", "sgd", "--betas", "0.9,0.9", says="--betas is of adamw and lion")
    refused(2, *model, "--betas", "0.9", says="two numbers")
    refused(2, *model, "--betas", "0.9,1", says="below 1")
    refused(2, *model, "--steps", "-1", says="--steps -1")
    refused(2, *model, "--batch", "0", says="--batch 0")
    refused(2, *model, "--lr", "fast", says="--lr fast")
    refused(2, *model, "--clip", "0", says="--clip 0")
    refused(2, *model, "--dtype", "f16", says=["--dtype f16", "bf16"])
    refused(2, *model, "--micro-batches", "4", says=["--micro-batches 4", "3 windows"])
    refused(2, *model, "--micro-batches", "0", says="--micro-batches 0")
    refused(2, *model, "--loss-scale", "1000", says=["--loss-scale 1000", "power of two"])
    refused(2, *model, "--order", "up", says="sequential or random")
    refused(2, *model, "--shard", "columns", says="rows or elements")
    refused(2, *model, "--every", "3", says="--save")
    refused(2, *model, "--prompt", "x", says="--sample K")
    refused(2, *model, "--sample", "0", says="--sample 0")
    refused(2, *model, "--sample", "1", "--prompt", "x", "--prompt-ids", "1", says="exclude each other")
    refused(2, *model, "--sample", "1", "--prompt-ids", "1,x", says="a token number")
    refused(1, *model, "--sample", "1", "--prompt-ids", "1,256", says="token 256")
    refused(1, *model, "--sample", "1", "--tokens", "99", says=["--tokens 99", "leaves room for 31"])
    refused(2, *model, "--dropout", "1", says=["--dropout 1", "below 1"])
    refused(2, *model, "--schedule", "up", says=["--schedule up", "linear or cosine"])
    refused(2, *model, "--final-lr", "0.1", says="--schedule linear or cosine")
    refused(2, *model, "--engine", "nccl", says="threads and mpi")
    refused(2, *model, "--mash", "dp=2", says="did you mean '--mesh'")
    refused(1, *model, "--mesh", "pp=2", says=["--mesh pp=2", "dp, fsdp, tp and cp"])
    refused(1, *model, "--mesh", "2x2", says="dp, fsdp, tp and cp")
    refused(1, *model, "--mesh", "dp=2@1", says="from 0 on")
    refused(1, *model, "--mesh", "dp=9999", says="4096")
    refused(1, *model, "--length", 64, says=["--length 64", "max_position_embeddings is 32"])
    refused(1, *model[:2], directory / "none", "--length", 8, says="none")
    (directory / "text.txt").write_bytes(b"short")
    refused(1, *model, says=["5 tokens", "at least 10"])


@case("a model with experts is trained, saved under the names of transformers, and trained on")
def experts(directory):
    narrow = [*trained.write_tiny(directory, model_type="mixtral", num_local_experts=5, num_experts_per_tok=2, num_key_value_heads=2,
                                  output_router_logits=True), "--lr", "0.01"]
    model = [*narrow, "--dtype", "f64"]
    whole = trained.steps(*model, "--steps", 6)
    expect(all(1.9 < step["router_loss"] < 2.3 for step in whole), whole)
    for mesh, saved in (("tp=2,fsdp=2", "first"), ("tp=7", "second")):
        begun = trained.losses(*model, "--steps", 3, "--mesh", mesh, "--save", directory / saved)
        on = trained.losses(*model, "--steps", 6, "--mesh", "cp=2,dp=2", "--resume", directory / saved)
        expect(all(abs(a["loss"] - b) <= 1e-9 for a, b in zip(whole, begun + on)), mesh, whole, begun, on)
    header = trained.header(next(path for path in (directory / "first").iterdir() if path.suffix == ".safetensors"))
    expect(header["model.layers.0.mlp.experts.gate_up_proj"]["shape"] == [5, 40, 16], header)
    trained.losses(*narrow, "--steps", 3, "--mesh", "tp=2,fsdp=2", "--save", directory / "first")
    first = trained.losses(directory / "first", *narrow[1:], "--steps", 1, "--mesh", "dp=2")
    expect(first[0] < whole[0]["loss"] - 0.01, first, whole)


@case("noise of routers, and a folder without weights, are refused")
def models(directory):
    model = trained.write_tiny(directory, model_type="mixtral", num_local_experts=4, num_experts_per_tok=2, num_key_value_heads=2, router_jitter_noise=0.1)
    refused(1, *model, says="router_jitter_noise")
    (directory / "config.json").write_text(json.dumps(trained.TINY))
    refused(1, directory, *model[1:], says="safetensors")


@case("a failure of one rank ends all")
def failures(directory):
    arguments, _ = trained.write_golden(directory, "llama")
    (directory / "model.safetensors").write_bytes((directory / "model.safetensors").read_bytes()[:-4])
    refused(1, *arguments, "--mesh", "dp=2,tp=2", "--steps", 1, says="model.safetensors")
    model = trained.write_tiny(directory)
    with open("/dev/full", "w") as full:
        done = subprocess.run([sys.argv[1], *map(str, model), "--mesh", "dp=2", "--steps", "2"], stdout=full, stderr=subprocess.PIPE, timeout=60)
    expect(done.returncode == 1 and b"standard output" in done.stderr, done)


run_cases()
