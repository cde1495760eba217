#!/usr/bin/env python3
"""Trainings of processes that are killed at random moments: usage trainings.py LAUNCH LAUNCHER TESSERA_TRAIN
[--seed N --first N --count N --seconds N]"""
import pathlib
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "train"))
import killed  # noqa: E402
from drill import Drill  # noqa: E402


def main():
    drill = Drill("trainings", "a training that loses a process ends with a sentence that names it; its last checkpoint is whole, and any mesh goes on from it",
                  100, "launch", "launcher", "train")
    options = drill.options
    # MPICH's ranks never yield the processor while they wait.
    most = 3 if "mpich" in options.launcher else 4
    with tempfile.TemporaryDirectory() as name:
        trainer = killed.Trainer(options.train, name, options.launch, options.launcher)
        for number in drill.cases():
            place = pathlib.Path(name) / f"case-{number}"
            place.mkdir()
            problem = killed.Trial(trainer, drill.draws(), place, most, early=0.2, silent=0.15).run()
            if problem:
                drill.fail(problem)
    drill.end()


main()
