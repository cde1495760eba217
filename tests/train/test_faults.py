"""Trainings that are saved, lose ranks and are resumed, on rank threads or, with a launcher, on processes.
usage: test_faults.py TESSERA_TRAIN SHAKESPEARE FULL_DISK [LAUNCH LAUNCHER]"""
import json
import os
import random
import re
import subprocess
import sys

import killed
import trained
from harness import SANITIZED, Skip, case, cases, expect, refused, run_cases

full_disk, *launched = sys.argv[3:]
SQUARE = ["--mesh", "dp=2,tp=2"]
STAMP = re.compile(rb"model-[0-9a-f]{16}-")


def trainer_in(directory):
    return killed.Trainer(trained.harness.PROGRAM, directory, *launched)


def files(folder):
    """The files of a state, without what is random in their names."""
    return {STAMP.sub(b"model-", path.name.encode()): STAMP.sub(b"model-", path.read_bytes()) for path in folder.iterdir()}


@case("a state of 2 x 2 ranks, resumed on 3 and on 1, has the same bits in every full tensor, and losses go on")
def same_bits(directory):
    trainer = trainer_in(directory)
    runs = [(kind, {}) for kind in killed.OPTIMIZERS] + [("adamw", {"model_type": "mixtral", "num_local_experts": 5, "num_experts_per_tok": 2})]
    for number, (kind, changes) in enumerate(runs[:1] if launched else runs):
        (directory / "config.json").write_text(json.dumps({**killed.CONFIG, **changes}))
        # All meshes for the first, one of them for each of the others.
        meshes = ("fsdp=3", "dp=1") if number == 0 else (("dp=1", "fsdp=3")[number % 2],)
        options = ["--optimizer", kind, "--dtype", "f64", "--batch", 3, "--length", 8, "--lr", "0.01", "--warm-up", 6]
        saved, whole = directory / f"saved-{number}", trainer.losses("dp=1", *options, "--steps", 6)
        begun = trainer.losses("dp=2,tp=2", *options, "--shard-states", "--steps", 3, "--save", saved, processes=bool(launched))
        for mesh in meshes:
            # A run that has no step left saves what it has read; its ranks cut the tensors otherwise.
            again = directory / f"{mesh}-{number}"
            processes = bool(launched) and mesh != "dp=1"
            trainer.losses(mesh, "--optimizer", kind, "--resume", saved, "--steps", 3, "--save", again, processes=processes)
            expect(killed.read_state(again)[0] == 3, "the step is", killed.read_state(again)[0])
            killed.same_tensors(killed.read_state(again)[1], killed.read_state(saved)[1])
            rest = trainer.losses(mesh, "--optimizer", kind, "--resume", again, "--steps", 6, processes=processes)
            got = {**begun, **rest}
            expect(sorted(rest) == [3, 4, 5] and all(abs(got[at] - whole[at]) <= killed.BOUND for at in whole), kind, mesh, got, "are not", whole)


def told(steps):
    """What steps tell of themselves, but for times."""
    return [[step[fact] for fact in ("step", "loss", "gradient_norm", "lr")] for step in steps]


@case("settings are the state's, but for those that are given")
def settings(directory):
    data, folder = [*trained.write_tiny(directory)[:3], *SQUARE], directory / "saved"
    options = ["--batch", 4, "--length", 7, "--order", "random", "--seed", 5, "--lr", "0.02", "--warm-up", 6, "--clip", "0.5", "--betas", "0.8,0.9",
               "--epsilon", "1e-6", "--weight-decay", "0.2", "--dropout", "0.1", "--dtype", "f64", "--micro-batches", 3]
    whole = told(trained.steps(*data, *options, "--steps", 8))
    trained.steps(*data, *options, "--steps", 4, "--save", folder)
    expect(told(trained.steps(*data, "--steps", 8, "--resume", folder)) == whole[4:], whole)
    for given in (["--batch", 3], ["--order", "sequential"], ["--seed", 6], ["--micro-batches", 2]):
        other = told(trained.steps(*data, *given, "--steps", 8, "--resume", folder))
        expect(len(other) == 4 and other != whole[4:], given, "changes nothing", other)


@case("the optimizer, the loss scale and the last step are the state's, too")
def more_settings(directory):
    data, folder = trained.write_tiny(directory), directory / "saved"
    options = ["--dtype", "bf16", "--optimizer", "lion", "--betas", "0.8,0.9"]
    for scale in ([], ["--loss-scale", 8], ["--loss-scale", 0]):
        whole = trained.steps(*data, *options, *scale, "--steps", 4)
        trained.steps(*data, *options, *scale, "--steps", 2, "--save", folder)
        rest = trained.steps(*data, "--steps", 4, "--resume", folder)
        expect(told(rest) == told(whole[2:]), whole, rest)
        expect([step.get("loss_scale") for step in rest] == [step.get("loss_scale") for step in whole[2:]], whole, rest)
    expect(trained.steps(*data, "--resume", folder) == [], "a run that is done goes on")
    refused(1, *data, "--resume", folder, "--optimizer", "adamw", says="--optimizer lion, not adamw")
    refused(1, *data, "--resume", folder, "--epsilon", "1e-6", says=["--epsilon", "not of lion"])


@case("a state of f32 that goes on in bf16 has bf16's loss scale")
def widths(directory):
    data, folder = trained.write_tiny(directory), directory / "saved"
    trained.steps(*data, "--steps", 1, "--save", folder)
    expect(trained.steps(*data, "--dtype", "bf16", "--steps", 2, "--resume", folder)[0]["loss_scale"] == 65536, "another scale")


@case("options contradict the settings of the state, and not the defaults")
def contradictions(directory):
    data, folder = [*trained.write_tiny(directory)[:3], "--length", 8], directory / "saved"
    trained.steps(*data, "--batch", 20, "--schedule", "cosine", "--steps", 1, "--save", folder)
    on = [*data, "--steps", 2, "--resume", folder]
    expect(len(trained.steps(*on, "--micro-batches", 18, "--final-lr", "1e-4")) == 1, "other steps")
    refused(1, *on, "--micro-batches", 21, says=["--micro-batches 21", "20 windows"])
    refused(1, *on, "--schedule", "constant", "--final-lr", "1e-4", says="--schedule linear or cosine")


@case("the rate goes on along its schedule")
def schedule(directory):
    data, folder = trained.write_tiny(directory), directory / "saved"
    options = ["--lr", "0.02", "--warm-up", 2, "--schedule", "cosine", "--final-lr", "0.001"]
    rates = [step["lr"] for step in trained.steps(*data, *options, "--steps", 8)]
    trained.steps(*data, *options, "--steps", 4, "--save", folder)
    expect([step["lr"] for step in trained.steps(*data, "--steps", 8, "--resume", folder)] == rates[4:], rates)


@case("settings that are not those of a training are refused, and may be given")
def other_settings(directory):
    data, folder = trained.write_tiny(directory), directory / "saved"
    trained.steps(*data, "--steps", 2, "--save", folder)
    file = next(folder.glob("*.safetensors"))
    whole = file.read_bytes()
    for key, option, right, wrong in (("warm_up", "warm-up", "0", "x"), ("dtype", "dtype", "2", "3"), ("order", "order", "0", "7")):
        expect(f'"tessera.{key}":"{right}"'.encode() in whole, whole[:2000])
        file.write_bytes(whole.replace(f'"tessera.{key}":"{right}"'.encode(), f'"tessera.{key}":"{wrong}"'.encode()))
        refused(1, *data, "--steps", 3, "--resume", folder, says=[f"tessera.{key} is {wrong}", f"--{option}"])
    trained.steps(*data, "--steps", 3, "--resume", folder, "--order", "sequential")


@case("a save in the background writes the files of one that steps wait for")
def background(directory):
    model = [*trained.write_tiny(directory), *SQUARE, "--shard-states"]
    for steps, every in ((2, 1), (7, 3)):
        folders = [directory / f"{name}-{every}" for name in ("at-once", "background")]
        told = [trained.losses(*model, "--steps", steps, "--save", folder, "--every", every, *(["--background"] * number))
                for number, folder in enumerate(folders)]
        expect(told[0] == told[1], "losses", told)
        expect(files(folders[0]) == files(folders[1]), "files differ after", steps, "steps, saved after each", every)


def fail(trainer, directory, folder, *options):
    """Resumes where one rank of three finds the disk full, or with threads any of two; returns how it ended."""
    environment = {**os.environ, "TSR_TEST_WRITES": "3"}
    words = trainer.words("--resume", folder, "--steps", 50, "--save", folder, "--every", 1, *options)
    if not launched:
        return subprocess.run([*words, "--mesh", "dp=2"], capture_output=True, text=True, timeout=killed.PATIENCE, env={**environment, "LD_PRELOAD": full_disk})
    script = f'case ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} in 1) export LD_PRELOAD={full_disk} ;; esac; exec "$@"'
    return subprocess.run([*launched, "3", "sh", "-c", script, "sh", *words, "--mesh", "fsdp=3"], capture_output=True, text=True, timeout=killed.PATIENCE,
                          env=environment)


@case("a rank that cannot write ends all others with its name, and the last state stays")
def full(directory):
    if SANITIZED:
        raise Skip("what is preloaded comes before a sanitizer's library")
    trainer, folder = trainer_in(directory), directory / "saved"
    trainer.losses("dp=1", "--batch", 3, "--length", 8, "--steps", 2, "--save", folder)
    before = files(folder)
    for options in ([], ["--background"])[:1 if launched else 2]:
        done = fail(trainer, directory, folder, *options)
        said = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
        expect(done.returncode != 0 and len(said) == 1, done.returncode, done.stderr)
        expect(re.search(r"rank 1: .*No space left" if launched else r"rank \d: .*No space left", said[0]), said)
        expect(files(folder) == before, "the state has changed")


@case("output that cannot be written ends all ranks, while a state is written, too")
def no_output(directory):
    trainer, folder = trainer_in(directory), directory / "saved"
    words = trainer.words("--mesh", "dp=3", "--batch", 3, "--length", 8, "--steps", 50, "--save", folder, "--every", 1, "--background")
    script = 'if [ "${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}" = 0 ]; then exec "$@" > /dev/full; else exec "$@"; fi'
    done = subprocess.run([*launched, *(["3"] if launched else []), "sh", "-c", script, "sh", *words], capture_output=True, text=True, timeout=killed.PATIENCE)
    said = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
    expect(done.returncode != 0 and len(said) == 1 and "standard output cannot be written" in said[0], done.returncode, done.stderr)
    expect([name for name in killed.names_in(folder) if name.endswith(".part")] == [], "the folder has", killed.names_in(folder))


@case("killed at random moments, a run leaves a whole state, and goes on from it")
def kills(directory):
    trainer = trainer_in(directory)
    for number in range(5 if launched else 2):
        place = directory / f"trial-{number}"
        place.mkdir()
        wrong = killed.Trial(trainer, random.Random(f"5 {number}"), place, most=2 if launched else 4).run()
        expect(not wrong, wrong)


if launched:  # what has nothing to do with how ranks run
    cases[:] = [entry for entry in cases if entry[1] not in (settings, more_settings, widths, contradictions, schedule, other_settings, background)]
run_cases()
