"""How each implementation is asked for a case. An answer has "seconds", a list of samples, or says why it is "refused"."""
import json
import os
import select
import socket
import subprocess

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 600  # seconds for an answer
WARM_LOOPS = 3  # of Tessera's moves: it runs one before these to find how many calls fill it, which the peers' own 4 contain

# One thread a rank for everybody.
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
XLA = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
# Open MPI's leave to run for anybody, and more ranks than cores; from version 5 on the latter has another name.
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def figures_of(output):
    """The JSON objects of a program's lines; none where any line is something else."""
    try:
        lines = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        return []
    return lines if all(isinstance(line, dict) for line in lines) else []


def refusal(command, why):
    return [{"refused": f"{os.path.basename(command[0])}: {why}"}]


def end(process):
    """A launcher that is asked to end ends what it launched."""
    process.terminate()
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(command, environment=None, patience=PATIENCE):
    """The JSON lines that a program prints, at least one; what prints none says why. A program whose figures are there has answered,
    whatever its exit status: it fails where it found elements wrong, which is an answer."""
    command = [str(word) for word in command]
    try:
        process = subprocess.Popen(command, env={**os.environ, **SINGLE, **(environment or {})}, stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, errors="replace")
    except OSError as error:
        return refusal(command, error.strerror)
    with process:
        try:
            output, complaints = process.communicate(timeout=patience)
        except subprocess.TimeoutExpired:
            end(process)
            return refusal(command, f"no answer within {patience} seconds")
    lines = figures_of(output)
    if lines and (process.returncode == 0 or any(line.get("wrong") for line in lines)):
        return lines
    if process.returncode != 0:
        said = [line.strip() for line in complaints.splitlines() if line.strip("- ")]
        return [{"refused": said[0]}] if said else refusal(command, f"exit status {process.returncode}")
    return refusal(command, f"its output is no figure: {output[:60]!r}" if output else "it printed nothing")


def sizes(shape):
    return "x".join(str(size) for size in shape)


class Tessera:
    """The tool of a build directory: rank threads, or processes of the launcher of an MPI. Moves write into one result again and again,
    unless each call is to make a new one."""

    def __init__(self, build, ranks, name="tessera", launcher=(), new_results=False):
        self.tool, self.llama, self.ranks = build / "tools" / "tessera", build / "examples" / "llama" / "tessera-llama", ranks
        self.name, self.launcher, self.new_results = name, launcher, new_results

    def ways(self, case):
        if case["kind"] == "move":
            return ["direct"]
        elsewhere = self.launcher or self.new_results or case["ranks"] != self.ranks
        return [] if elsewhere else ["threads"]

    def ask(self, case, way, samples):
        return getattr(self, case["kind"])(case, samples)

    def bench(self, what, case, *options):
        engine = ["--engine", "mpi"] if self.launcher else []
        return run([*self.launcher, self.tool, "bench", what, *engine, "--mesh", self.ranks, "--dtype", case["dtype"], *options, "--json"],
                   MPI if self.launcher else None)

    def move(self, case, samples):
        layouts = ["--shape", sizes(case["shape"]), "--from", case["from"], "--to", case["to"]]
        loops = ["--warm-up", WARM_LOOPS, "--iterations", samples]
        return {**self.bench("dispatch", case, *layouts, *loops, *["--new-result"][:self.new_results])[0], "samples": samples}

    def linear(self, case, samples):
        layers = [word for name in ("tokens", "hidden", "intermediate") for word in ("--" + name, case[name])]
        passes = self.bench("linear", case, *layers, "--iterations", samples)
        if "refused" in passes[0]:
            return passes[0]
        spreads = {key: {line["pass"]: line[key] for line in passes} for key in ("seconds", "gemm_seconds")}
        return {**spreads, "samples": samples, "wrong": sum(line["wrong"] for line in passes)}

    def decode(self, case, samples):
        prompt = ",".join(map(str, case["prompt_ids"]))
        runs = [run([self.llama, case["model"], "--ranks", self.ranks, "--prompt-ids", prompt, "--tokens", len(case["ids"]), "--json"])[0]
                for _ in range(samples)]
        refused = [line for line in runs if "refused" in line]
        return refused[0] if refused else {
            "seconds": [1 / line["tokens_per_second"]["decode"] for line in runs],
            "wrong": max(cases.count_wrong_ids(line["ids"], case["ids"]) for line in runs)}


class Memcpy:
    """The payload copied by as many threads as ranks, each an equal part."""

    name = "memcpy"

    def __init__(self, program, ranks):
        self.program, self.ranks = program, ranks

    def ways(self, case):
        return ["memcpy"] if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([self.program, self.ranks, case["payload_bytes"], samples])[0]


def launcher_of(mpirun, ranks):
    """Open MPI's or MPICH's; processes are on cores of their own where there are so many."""
    return [mpirun, "-n", ranks, *(["--bind-to", "core"] if ranks <= len(os.sched_getaffinity(0)) else [])]


class Mpi:
    """A process a rank, each on a core of its own: by the collectives that do a move, or by hand, where a loop adds."""

    # The result of allreduce contains what P to S(0) asks for.
    WAYS = {("S(0)", "S(1)"): ["alltoallw", "pack+alltoall"], ("S(0)", "R"): ["allgather"],
            ("P", "S(0)"): ["reduce_scatter", "reduce_scatter_block", "allreduce"], ("P", "R"): ["allreduce"]}
    BY_HAND = {("P", "S(0)"): ["alltoall+add"], ("P", "R"): ["alltoall+add+allgather"]}

    def __init__(self, name, program, launcher, ways=None):
        self.name, self.command, self.of_moves = name, [*launcher, program], self.WAYS if ways is None else ways

    def ways(self, case):
        return self.of_moves.get((case["from"], case["to"]), []) if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([*self.command, way, *case["shape"], samples], MPI)[0]


class Served:
    """Python processes that stay while others are measured: they wait for a line, which costs nothing. Started when first asked, and again
    after a refusal: who failed may have left the others in the midst of a call."""

    def __init__(self, name, ways, command, processes, environment, log, patience=PATIENCE):
        self.name, self.ways, self.command, self.count, self.environment, self.log = name, ways, command, processes, environment, log
        self.patience, self.processes = patience, []

    def start(self):
        shared = {**os.environ, **SINGLE, **QUIET, **self.environment, "WORLD_SIZE": str(self.count), "LOCAL_WORLD_SIZE": str(self.count),
                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        with open(self.log, "a") as log:
            for rank in range(self.count):
                own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                self.processes.append(subprocess.Popen(self.command, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                       stderr=log, env=own))

    def tell(self, line):
        try:
            for process in self.processes:
                process.stdin.write(line + "\n")
        except BrokenPipeError:
            pass  # what is read next says so

    def hear(self):
        """The first process answers for all."""
        ready, _, _ = select.select([self.processes[0].stdout], [], [], self.patience)
        if not ready:
            return {"refused": f"no answer within {self.patience} seconds"}
        line = self.processes[0].stdout.readline()
        if not line:
            return {"refused": f"its processes ended ({self.log})"}
        answer = figures_of(line)
        return answer[0] if answer else {"refused": f"its output is no figure: {line[:60]!r}"}

    def ask(self, case, way, samples):
        try:
            if not self.processes:
                self.start()
            self.tell(json.dumps({**case, "way": way, "samples": samples}))
            answer = self.hear()
        except OSError as error:
            answer = {"refused": f"{self.command[0]}: {error.strerror}"}
        if "refused" in answer:
            self.finish(1)
        return answer

    def finish(self, grace=10):
        """They end when there is nothing more to read; who does not within so many seconds is ended."""
        for process in self.processes:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        for process in self.processes:
            try:
                process.wait(grace)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            process.stdout.close()
        self.processes = []


def torch_ways(case):
    return {"move": ["redistribute"], "linear": ["parallelize_module"]}.get(case["kind"], [])


def jax_ways(case):
    return [] if case["kind"] != "move" else ["shard_map"] if case["from"] == "P" else ["device_put", "jit"]


def transformers_ways(ranks):
    def ways(case):
        return ["DistributedConfig" if ranks > 1 else "one process"] if case["kind"] == "decode" and case["ranks"] == ranks else []

    return ways


def served(directory, ranks):
    """The peers in Python, from the virtual environment of a directory."""
    def peer(name, ways, script, processes, environment):
        command = [str(directory / "venv" / "bin" / "python"), os.path.join(HERE, script)]
        return Served(name, ways, command, processes, environment, directory / f"{name}.log")

    xla = {**XLA, "JAX_NUM_CPU_DEVICES": str(ranks)}
    transformers = [peer("transformers", transformers_ways(count), "transformers_peer.py", count, {}) for count in sorted({1, ranks})]
    return [peer("pytorch", torch_ways, "torch_peer.py", ranks, {}), peer("jax", jax_ways, "jax_peer.py", 1, xla), *transformers]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
