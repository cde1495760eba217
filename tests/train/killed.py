"""Trainings of which a process is killed, for tests and for the drill: what is left in the folder is a whole state, from which the same mesh goes on
with the same bits, and every other but for the order of sums. Standard library only."""
import json
import os
import pathlib
import re
import shutil
import signal
import struct
import subprocess
import time

CONFIG = {"model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1, "num_attention_heads": 2,
          "max_position_embeddings": 32}
TEXT = b"All the world's a stage, and all the men and women merely players. " * 4
MESHES = {1: ["dp=1"], 2: ["dp=2", "fsdp=2", "tp=2", "cp=2"], 3: ["dp=3", "fsdp=3", "cp=3"], 4: ["dp=2,tp=2", "fsdp=2,tp=2", "fsdp=4", "dp=2,fsdp=2", "cp=2,dp=2"]}
OPTIMIZERS = ["adamw", "sgd", "lion", "adafactor", "muon"]
INDEX = "model.safetensors.index.json"
BOUND = 1e-9  # of losses in f64 on another mesh, as in test_meshes.c
PATIENCE = 60  # of what takes a second
TIMEOUT_MS = {signal.SIGKILL: 30000, signal.SIGSTOP: 2000}  # a death is noticed at once, and silence by the timeout

# A rank under a launcher writes its process id, its output and its exit status to files. HELD, it keeps from the launcher that the program has ended, or
# else the launcher might end the others before these have said anything.
HELD = """r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
"$@" > "$0/out-$r" 2> "$0/err-$r" & echo $! > "$0/pid-$r"
wait $!; echo $? > "$0/status-$r"
while [ ! -e "$0/over" ]; do sleep 0.05; done"""
PLAIN = """r=${OMPI_COMM_WORLD_RANK:-${PMI_RANK:-0}}
echo $$ > "$0/pid-$r"
exec "$@" > "$0/out-$r" 2> "$0/err-$r" """


class Wrong(Exception):
    """A promise that did not hold."""


def expect(condition, *said):
    if not condition:
        raise Wrong(" ".join(str(part) for part in said))


def wait_for(what, said):
    """Waits until `what` returns something other than None."""
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        found = what()
        if found is not None:
            return found
        time.sleep(0.01)
    raise Wrong(f"waited {PATIENCE} s in vain {said}")


def number_in(path):
    """The number of a file whose line is whole, or None."""
    try:
        text = path.read_text()
    except OSError:
        return None
    return int(text) if text.endswith("\n") else None


def ranks_of(mesh):
    count = 1
    for dim in mesh.split(","):
        count *= int(dim.split("=")[1])
    return count


def read_state(folder):
    """The step and the tensors (name -> dtype, shape, bytes) of a folder, or None where no state is; files that are not whole are wrong."""
    index = folder / INDEX
    if not index.exists():
        return None
    tensors, steps = {}, set()
    weights = json.loads(index.read_bytes())["weight_map"]
    for name in sorted(set(weights.values())):
        data = (folder / name).read_bytes()
        length, = struct.unpack_from("<Q", data)
        header = json.loads(data[8:8 + length])
        steps.add(int(header.pop("__metadata__")["tessera.step"]))
        end = 0
        for tensor, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
            first, last = entry["data_offsets"]
            expect(first == end and weights.get(tensor) == name, f"{name}: {tensor} begins at {first}, not {end}")
            tensors[tensor] = (entry["dtype"], entry["shape"], data[8 + length + first:8 + length + last])
            end = last
        expect(len(data) == 8 + length + end, f"{name} has {len(data)} bytes, not {8 + length + end}")
    expect(len(steps) == 1 and set(tensors) == set(weights), f"{index}: steps {steps}, {len(tensors)} of {len(weights)} tensors")
    return steps.pop(), tensors


def same_tensors(found, wanted):
    """Compares two states' tensors, bit for bit."""
    expect(set(found) == set(wanted), "tensors", set(found) ^ set(wanted))
    different = [name for name in wanted if found[name] != wanted[name]]
    expect(not different, "bits differ in", different)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def clean(folder):
    """Nothing but a state is in its folder."""
    wanted = {"config.json", INDEX, *json.loads((folder / INDEX).read_bytes())["weight_map"].values()}
    expect(set(names_in(folder)) == wanted, "the folder has", names_in(folder))


class Trainer:
    """Runs tessera-train with the files of a small model, on threads or, where a launcher is given, on processes."""

    def __init__(self, program, directory, launch=None, launcher=None):
        self.program, self.directory, self.launcher = str(pathlib.Path(program).resolve()), pathlib.Path(directory), [launch, launcher] if launcher else None
        (self.directory / "config.json").write_text(json.dumps(CONFIG))
        (self.directory / "text.txt").write_bytes(TEXT)
        self.model = [self.directory / "config.json", "--data", self.directory / "text.txt"]

    def words(self, *options):
        return [self.program, *map(str, self.model), *map(str, options), "--json"]

    def run(self, mesh, *options, processes=False, **more):
        words = self.words("--mesh", mesh, *options)
        if processes:
            words = [*map(str, self.launcher), str(ranks_of(mesh)), *words]
        return subprocess.run(words, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=PATIENCE, check=False, **more)

    def losses(self, mesh, *options, **more):
        """Losses by step of a run that must succeed."""
        done = self.run(mesh, *options, **more)
        expect(done.returncode == 0, mesh, *options, "exits", done.returncode, done.stderr)
        return losses_in(done.stdout)


def losses_in(text):
    """Losses by step; the last line of a killed run may be cut."""
    lines = text.split("\n")[:-1]
    return {step["step"]: step["loss"] for step in map(json.loads, lines)}


class Job:
    """Ranks that train until one of them is struck. A job of threads is one process, called rank 0."""

    def __init__(self, trainer, mesh, options, place, held=False, how=signal.SIGKILL):
        self.ranks, self.place, self.how = ranks_of(mesh) if trainer.launcher else 1, pathlib.Path(place), how
        self.place.mkdir()
        words = ["sh", "-c", HELD if held else PLAIN, str(place), *trainer.words("--mesh", mesh, *options)]
        if trainer.launcher:
            words = [*map(str, trainer.launcher), str(self.ranks), *words]
        # Open MPI gives ranks a second to end by themselves.
        environment = {**os.environ, "TSR_TIMEOUT_MS": str(TIMEOUT_MS[how]), "OMPI_MCA_odls_base_sigkill_timeout": "0"}
        self.process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True,
                                        env=environment)

    def file(self, name, rank):
        return self.place / f"{name}-{rank}"

    def text(self, name, rank):
        return self.file(name, rank).read_text() if self.file(name, rank).exists() else ""

    def pid(self, rank):
        return wait_for(lambda: number_in(self.file("pid", rank)), f"for rank {rank} to start")

    def await_steps(self, count):
        wait_for(lambda: self.text("out", 0).count("\n") >= count or None, f"for step {count}: {self.text('err', 0)}")

    def strike(self, victim):
        try:
            os.kill(self.pid(victim), self.how)
        except ProcessLookupError:
            raise Wrong(f"the run ended before it was struck: {self.text('err', 0)}") from None

    def status(self, rank):
        """The exit status of a held rank, or "ended" where the launcher has ended the job, as MPICH's may."""
        path = self.file("status", rank)
        return wait_for(lambda: number_in(path) if self.process.poll() is None or path.exists() else "ended", f"for rank {rank} to end")

    def check_survivors(self, victim):
        """Each rank that is left has ended, with status 1 and a sentence that names the victim."""
        for rank in set(range(self.ranks)) - {victim}:
            status, said = self.status(rank), self.text("err", rank)
            if status == "ended":
                return
            lines = [line for line in said.splitlines() if line.startswith("tessera: ")]
            expect(status == 1 and len(lines) == 1, f"rank {rank}, after rank {victim} was lost, exits {status}: {said!r}")
            expect(re.search(rf"\brank {victim}\b", lines[0]), f"rank {rank} does not name rank {victim}: {said!r}")

    def end(self):
        """Ends what is left, once it is known to be over or to be wrong; returns the launcher's status."""
        (self.place / "over").touch()
        try:
            return self.process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            raise Wrong("the launcher does not end") from None
        finally:
            for rank in range(self.ranks):
                pid = number_in(self.file("pid", rank))
                try:
                    os.kill(pid or self.process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass
            try:
                os.killpg(self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            self.process.wait()


class Trial:
    """A training that is drawn, killed and resumed. `most` bounds its ranks, `early` is how often it is killed while it starts, `silent` how often a rank
    is stopped and not killed."""

    def __init__(self, trainer, draws, directory, most=4, early=0.0, silent=0.0):
        self.trainer, self.directory = trainer, pathlib.Path(directory)
        self.mesh = draws.choice(MESHES[draws.randint(2, most)])
        self.ranks = ranks_of(self.mesh)
        self.every = draws.choice((1, 1, 2, 5))
        self.background = draws.random() < 0.5
        self.settings = ["--dtype", "f64", "--batch", draws.randint(2, 5), "--length", draws.randint(5, 9), "--seed", draws.randrange(100), "--order",
                         draws.choice(("sequential", "random")), "--warm-up", draws.choice((0, 3)), "--clip", 1, "--dropout",
                         draws.choice((0, 0.1))]
        self.kept = ["--optimizer", draws.choice(OPTIMIZERS)]  # which the state does not give
        if "dp" in self.mesh and draws.random() < 0.5:
            self.kept.append("--shard-states")
        self.saved = self.directory / "saved"
        self.save = ["--save", self.saved, "--every", self.every, *(["--background"] if self.background else [])]
        self.victim = draws.randrange(self.ranks if trainer.launcher else 1)
        self.is_early = draws.random() < early
        self.held = bool(trainer.launcher) and not self.is_early and draws.random() < 0.5
        self.how = signal.SIGSTOP if self.held and draws.random() < silent else signal.SIGKILL
        self.moment = draws.random() * (0.8 if self.is_early else 0.3)
        self.next_mesh = self.mesh if draws.random() < 0.3 else draws.choice(MESHES[draws.randint(1, self.ranks)])
        self.resumes_processes = bool(trainer.launcher) and draws.random() < 0.3

    def described(self):
        return (f"{self.mesh}, then {self.next_mesh}{' of processes' if self.resumes_processes else ''}: {self.how.name} of rank {self.victim} "
                f"{self.moment:.3f} s after {'the start' if self.is_early else 'a step'}{', held' if self.held else ''}; "
                f"{' '.join(map(str, self.settings + self.kept + self.save[2:]))}")

    def strike(self):
        """Trains until the victim is struck and all have ended; returns the losses that were told."""
        job = Job(self.trainer, self.mesh, [*self.settings, *self.kept, *self.save, "--steps", 10**6], self.directory / "job", self.held, self.how)
        try:
            job.pid(self.victim)
            if not self.is_early:
                job.await_steps(1)
            time.sleep(self.moment)
            job.strike(self.victim)
            if self.held:
                job.check_survivors(self.victim)
        finally:
            status = job.end()
        expect(self.held or status != 0, "the job of a killed rank exits 0")
        return losses_in(job.text("out", 0))

    def check_state(self, told):
        """The state is whole, and has the bits of a run that nothing interrupted; returns its step."""
        state = read_state(self.saved) if self.saved.exists() else None
        step = state[0] if state else 0
        last = max(told) + 1 if told else 0
        expect(step % self.every == 0 and step <= last + self.every, f"a state of step {step} after {last} steps")
        if not self.background:
            expect(step >= last // self.every * self.every, f"the last state is of step {step} after {last} steps")
        if state:
            folder = self.directory / "whole"
            self.trainer.losses(self.mesh, *self.settings, *self.kept, "--steps", step, "--save", folder)
            same_tensors(state[1], read_state(folder)[1])
        return step if state else None

    def resume(self, step, told):
        """The run goes on as if nothing had happened."""
        end = (step or 0) + 2 + self.every
        whole = self.trainer.losses(self.mesh, *self.settings, *self.kept, "--steps", max(end, max(told, default=0) + 1))
        expect(all(whole[at] == told[at] for at in told), "losses before the kill", told, "are not", whole)
        given = ["--resume", self.saved, *self.kept]
        if step is None:
            done = self.trainer.run("dp=1", *given)
            expect(done.returncode == 1 and str(self.saved) in done.stderr, "no state:", done.returncode, done.stderr)
            given = [*self.settings, *self.kept]
        again = self.trainer.losses(self.next_mesh, *given, *self.save, "--steps", end, processes=self.resumes_processes)
        expect(sorted(again) == list(range(step or 0, end)), f"steps {sorted(again)} from {step} to {end}")
        bound = 0 if self.next_mesh == self.mesh else BOUND
        wrong = {at: (again[at], whole[at]) for at in again if not abs(again[at] - whole[at]) <= bound}
        expect(not wrong, "losses differ:", wrong)
        expect(read_state(self.saved)[0] == end, "the end is not saved")
        clean(self.saved)

    def run(self):
        """Returns what is wrong, or None."""
        try:
            told = self.strike()
            self.resume(self.check_state(told), told)
            return None
        except (Wrong, OSError, ValueError, KeyError, subprocess.TimeoutExpired) as problem:
            return f"{self.described()}: {type(problem).__name__}: {problem}"
        finally:
            shutil.rmtree(self.directory, ignore_errors=True)
