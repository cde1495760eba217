"""Asks each implementation for a case. An answer has "seconds", a list of samples, or "refused",
the reason why there is none."""
import json
import os
import select
import socket
import subprocess

import cases

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 600  # seconds for an answer
CALLS, FEW_CALLS = 32, 8192  # of Tessera's gathers and updates in a loop
WARM_LOOPS = 3  # of Tessera's moves and programs, besides the loop in which it counts its calls; the peers' 4 loops include that one

# One thread for each rank of any implementation.
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
XLA = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
# Lets Open MPI run as root, and with more ranks than cores (from version 5 on by another variable).
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1", "OMPI_MCA_rmaps_base_oversubscribe": "1",
       "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe"}
QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def figures_of(output):
    """The JSON objects of a program's lines; an empty list if a line is anything else."""
    try:
        lines = [json.loads(line) for line in output.splitlines()]
    except ValueError:
        return []
    return lines if all(isinstance(line, dict) for line in lines) else []


def refusal(command, why):
    return [{"refused": f"{os.path.basename(command[0])}: {why}"}]


def end(process):
    """Terminates a process; a launcher then ends its processes. Kills it after 5 seconds."""
    process.terminate()
    try:
        process.communicate(timeout=5)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def run(command, environment=None, patience=PATIENCE):
    """The JSON lines that a program prints, or one line with "refused". A program that prints
    figures has answered even if it fails because elements are wrong."""
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
    return refusal(command, f"its output is not a figure: {output[:60]!r}" if output else "it printed nothing")


def sizes(shape):
    return "x".join(str(size) for size in shape)


class Tessera:
    """The tool of a build directory, on rank threads or, with a launcher, on processes of an MPI.
    Moves write into one result again and again, or with `new_results` make one at each call."""

    def __init__(self, build, ranks, name="tessera", launcher=(), new_results=False):
        self.tool, self.ranks = build / "tools" / "tessera", ranks
        self.llama, self.trainer = build / "examples" / "llama" / "tessera-llama", build / "examples" / "train" / "tessera-train"
        self.name, self.launcher, self.new_results = name, launcher, new_results

    def ways(self, case):
        if case["kind"] == "move":
            return ["direct"] if case["ranks"] == self.ranks else []
        if case["kind"] == "rows":
            return [] if self.new_results or case["ranks"] != self.ranks else ["processes" if self.launcher else "threads"]
        if case["kind"] == "train":
            return [] if self.launcher or self.new_results else [f"dp={case['ranks']}", *([f"tp={case['ranks']}"] if case["ranks"] > 1 else [])]
        if case["kind"] in ("ops", "program"):
            return [] if self.launcher or self.new_results else ["threads"]
        elsewhere = self.launcher or self.new_results or case["ranks"] != self.ranks
        return [] if elsewhere else ["threads"]

    def ask(self, case, way, samples):
        return self.train(case, way, samples) if case["kind"] == "train" else getattr(self, case["kind"])(case, samples)

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

    def ops(self, case, samples):
        shape = ["--shape", sizes(case["shape"])] if case["shape"] else []
        passes = run([self.tool, "bench", "ops", case["op"], *shape, "--mesh", case["ranks"], "--iterations", samples, "--json"])
        if "refused" in passes[0]:
            return passes[0]
        told = {key: {line["pass"]: line[key] for line in passes if line[key]} for key in ("seconds", "of_peak")}
        return {**told, "samples": samples, "wrong": sum(line["wrong"] for line in passes)}

    def program(self, case, samples):
        sizes_ = [word for name in ("tokens", "hidden", "heads", "kv_heads", "intermediate") for word in ("--" + name.replace("_", "-"), case[name])]
        loops = ["--warm-up", WARM_LOOPS, "--iterations", samples]
        return {**run([self.tool, "bench", "program", case["program"], "--mesh", case["ranks"], *sizes_, *loops, "--json"])[0], "samples": samples}

    def rows(self, case, samples):
        """Calls fill a loop of some 20 ms, as those of the peers do."""
        engine = ["--engine", "mpi"] if self.launcher else []
        what = ["--ranks", self.ranks, "--op", case["op"], "--shape", sizes([case["rows"], case["columns"]]), "--batch", case["ids"], "--skew", case["skew"]]
        loops = ["--warm-up", WARM_LOOPS, "--iterations", samples, "--calls", FEW_CALLS if case["ids"] == cases.FEW_IDS else CALLS]
        command = [*self.launcher, self.tool, "bench", "rows", *engine, *what, *loops, "--json"]
        return {**run(command, MPI if self.launcher else None)[0], "samples": samples}

    def train(self, case, mesh, samples):
        """"wrong" is 1 if the loss of tokens that are drawn anew for each step is not near that of
        a uniform guess, as it has to be."""
        batch = ["--batch", case["batch"], "--length", case["length"], "--steps", cases.WARM_STEPS + samples]
        steps = run([self.trainer, case["model"], "--data", case["data"], "--mesh", mesh, *batch, "--json"])
        if "refused" in steps[0]:
            return steps[0]
        return {"seconds": [step["seconds"] for step in steps[cases.WARM_STEPS:]], "wrong": int(not 0 < steps[-1]["loss"] < 2 * steps[0]["loss"])}

    def decode(self, case, samples):
        prompt = ",".join(map(str, case["prompt_ids"]))
        runs = [run([self.llama, case["model"], "--ranks", self.ranks, "--prompt-ids", prompt, "--tokens", len(case["ids"]), "--json"])[0]
                for _ in range(samples)]
        refused = [line for line in runs if "refused" in line]
        return refused[0] if refused else {
            "seconds": [1 / line["tokens_per_second"]["decode"] for line in runs],
            "wrong": max(cases.count_wrong_ids(line["ids"], case["ids"]) for line in runs)}


class Memcpy:
    """memcpy() of the payload by as many threads as ranks, an equal part each."""

    name = "memcpy"

    def __init__(self, program, ranks):
        self.program, self.ranks = program, ranks

    def ways(self, case):
        return ["memcpy"] if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([self.program, self.ranks, case["payload_bytes"], samples])[0]


def launcher_of(mpirun, ranks):
    """The command of Open MPI's or MPICH's launcher; binds each process to a core if there are
    enough cores."""
    return [mpirun, "-n", ranks, *(["--bind-to", "core"] if ranks <= len(os.sched_getaffinity(0)) else [])]


class Mpi:
    """An MPI, with a process for each rank: moves by its collectives or, in BY_HAND, by a
    collective and a loop that adds."""

    # allreduce does P to S(0) too: its result contains the shard.
    WAYS = {("S(0)", "S(1)"): ["alltoallw", "pack+alltoall"], ("S(0)", "R"): ["allgather"],
            ("P", "S(0)"): ["reduce_scatter", "reduce_scatter_block", "allreduce"], ("P", "R"): ["allreduce"]}
    BY_HAND = {("P", "S(0)"): ["alltoall+add"], ("P", "R"): ["alltoall+add+allgather"]}

    def __init__(self, name, program, launcher, ways=None):
        self.name, self.command, self.of_moves = name, [*launcher, program], self.WAYS if ways is None else ways

    def ways(self, case):
        return self.of_moves.get((case["from"], case["to"]), []) if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([*self.command, way, *case["shape"], samples], MPI)[0]


class MpiRows:
    """Rows by id over an MPI by hand, with a process for each of `ranks`."""

    def __init__(self, name, program, launcher, ranks):
        self.name, self.command, self.ranks = name, [*launcher, program], ranks

    def ways(self, case):
        return ["alltoallv"] if case["kind"] == "rows" and case["ranks"] == self.ranks else []

    def ask(self, case, way, samples):
        return run([*self.command, case["op"], case["skew"], *(case[name] for name in ("rows", "columns", "ids")), samples], MPI)[0]


class Served:
    """Python processes that stay between cases, waiting for a line of input, which costs no
    processor time. They are started at the first case, and again after a refusal, since a rank that
    failed may have left its peers within a call."""

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
            pass  # hear() will report it

    def hear(self):
        """Reads the answer, which the process of rank 0 gives for all."""
        ready, _, _ = select.select([self.processes[0].stdout], [], [], self.patience)
        if not ready:
            return {"refused": f"no answer within {self.patience} seconds"}
        line = self.processes[0].stdout.readline()
        if not line:
            return {"refused": f"its processes ended ({self.log})"}
        answer = figures_of(line)
        return answer[0] if answer else {"refused": f"its output is not a figure: {line[:60]!r}"}

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
        """Closes the input of the processes, which ends them; kills those that run on after `grace`
        seconds."""
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


def torch_op_ways(ranks):
    def ways(case):
        return ["DTensor"] if case["kind"] == "ops" and case["ranks"] == ranks and case["op"] in cases.DTENSOR_OPS else []

    return ways


def plain_ways(case):
    """Into a result that exists, where PyTorch has such a form, and into a new one."""
    if case["kind"] != "ops" or case["ranks"] != 1:
        return []
    return ["out", "new"] if case["op"] in cases.INTO_OPS else ["new"]


def parallel_ways(ranks):
    def ways(case):
        return ["parallelize_module"] if case["kind"] == "program" and case["ranks"] == ranks else []

    return ways


def one_process_ways(case):
    return ["one process"] if case["kind"] == "program" and case["ranks"] == 1 else []


def rows_ways(ranks):
    def ways(case):
        return ["all_to_all_single"] if case["kind"] == "rows" and case["ranks"] == ranks else []

    return ways


def training_ways(ranks, way):
    """PyTorch's ways to train on `ranks`: its threads in one process, and DistributedDataParallel."""
    return lambda case: [way] if case["kind"] == "train" and case["ranks"] == ranks else []


def trainings(peer, ranks):
    for count in sorted({1, ranks}):
        yield peer("pytorch-plain", training_ways(count, "one process"), "torch_train_peer.py", 1, {}, str(count))
    if ranks > 1:
        yield peer("pytorch", training_ways(ranks, "DistributedDataParallel"), "torch_train_peer.py", ranks, {}, "1")


def served(directory, ranks):
    """The peers in Python, run in the virtual environment in `directory`."""
    def peer(name, ways, script, processes, environment, *arguments):
        command = [str(directory / "venv" / "bin" / "python"), os.path.join(HERE, script), *arguments]
        return Served(name, ways, command, processes, environment, directory / f"{name}.log")

    xla = {**XLA, "JAX_NUM_CPU_DEVICES": str(ranks)}
    transformers = [peer("transformers", transformers_ways(count), "transformers_peer.py", count, {}) for count in sorted({1, ranks})]
    ops = [peer("pytorch", torch_op_ways(count), "torch_ops_peer.py", count, {}, "dtensor") for count in sorted({1, ranks})]
    ops.append(peer("pytorch-plain", plain_ways, "torch_ops_peer.py", 1, {}, "plain"))
    blocks = [peer("pytorch", parallel_ways(ranks), "torch_block_peer.py", ranks, {}, "parallel")] if ranks > 1 else []
    blocks.append(peer("pytorch-plain", one_process_ways, "torch_block_peer.py", 1, {}, "plain"))
    rows = peer("pytorch-gloo", rows_ways(ranks), "torch_rows_peer.py", ranks, {})
    return [peer("pytorch", torch_ways, "torch_peer.py", ranks, {}), peer("jax", jax_ways, "jax_peer.py", 1, xla), *transformers, *ops, *blocks, rows,
            *trainings(peer, ranks)]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
