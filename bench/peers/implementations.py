"""How each implementation is asked for a case. An answer has "seconds", a list of samples, or says why it is "refused"."""
import json
import os
import select
import socket
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))
PATIENCE = 600  # seconds for an answer
LOOPED_BYTES = 1 << 26  # up to here tessera's figure is of a loop of calls, as is everybody's: what caches keep, they keep for all

# One thread a rank for everybody.
SINGLE = {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
XLA = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}
MPI = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
QUIET = {"TRANSFORMERS_VERBOSITY": "error", "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def run(command, environment=None):
    """The JSON lines that a program prints."""
    done = subprocess.run([str(word) for word in command], env={**os.environ, **SINGLE, **(environment or {})}, stdin=subprocess.DEVNULL,
                          capture_output=True, text=True, timeout=PATIENCE)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [f"exit status {done.returncode}"]
        return [{"refused": lines[0]}]
    return [json.loads(line) for line in done.stdout.splitlines()]


def sizes(shape):
    return "x".join(str(size) for size in shape)


class Tessera:
    """The tool of a build directory: rank threads."""

    name = "tessera"

    def __init__(self, build, ranks):
        self.tool, self.llama, self.ranks = build / "tools" / "tessera", build / "examples" / "llama" / "tessera-llama", ranks

    def ways(self, case):
        return ["direct" if case["kind"] == "move" else "threads"]

    def ask(self, case, way, samples):
        return getattr(self, case["kind"])(case, samples)

    def bench(self, what, case, *options):
        return run([self.tool, "bench", what, "--mesh", self.ranks, "--dtype", case["dtype"], *options, "--json"])

    def move(self, case, samples):
        layouts = ["--shape", sizes(case["shape"]), "--from", case["from"], "--to", case["to"]]
        moved = self.bench("redistribute", case, *layouts, "--iterations", samples)[0]
        if "refused" in moved or case["bytes"] > LOOPED_BYTES:
            return moved
        return {**self.bench("dispatch", case, *layouts)[0], "wrong": moved["wrong"]}

    def linear(self, case, samples):
        layers = [word for name in ("tokens", "hidden", "intermediate") for word in ("--" + name, case[name])]
        passes = self.bench("linear", case, *layers, "--iterations", samples)
        if "refused" in passes[0]:
            return passes[0]
        spreads = {key: {line["pass"]: line[key] for line in passes} for key in ("seconds", "gemm_seconds")}
        return {**spreads, "wrong": sum(line["wrong"] for line in passes)}

    def decode(self, case, samples):
        prompt = ",".join(map(str, case["prompt_ids"]))
        runs = [run([self.llama, case["model"], "--ranks", self.ranks, "--prompt-ids", prompt, "--tokens", len(case["ids"]), "--json"])[0]
                for _ in range(samples)]
        refused = [line for line in runs if "refused" in line]
        return refused[0] if refused else {
            "seconds": [1 / line["tokens_per_second"]["decode"] for line in runs],
            "wrong": sum(a != b for line in runs for a, b in zip(line["ids"], case["ids"]))}


class Memcpy:
    """The payload copied by as many threads as ranks, each an equal part."""

    name = "memcpy"

    def __init__(self, program, ranks):
        self.program, self.ranks = program, ranks

    def ways(self, case):
        return ["memcpy"] if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([self.program, self.ranks, case["payload_bytes"], samples])[0]


class Mpi:
    """A process a rank, each on a core of its own."""

    name = "mpi"
    WAYS = {("S(0)", "S(1)"): ["alltoallw", "pack+alltoall"], ("S(0)", "R"): ["allgather"],
            ("P", "S(0)"): ["reduce_scatter", "reduce_scatter_block"], ("P", "R"): ["allreduce"]}

    def __init__(self, program, mpirun, ranks):
        self.command = [mpirun, "-n", ranks, *(["--bind-to", "core"] if ranks <= len(os.sched_getaffinity(0)) else []), program]

    def ways(self, case):
        return self.WAYS[case["from"], case["to"]] if case["kind"] == "move" else []

    def ask(self, case, way, samples):
        return run([*self.command, way, *case["shape"], samples], MPI)[0]


class Served:
    """Python processes that stay while others are measured: they wait for a line, which costs nothing. Started when first asked."""

    def __init__(self, name, ways, command, processes, environment, log):
        self.name, self.ways, self.command, self.count, self.environment, self.log = name, ways, command, processes, environment, log
        self.processes = []

    def start(self):
        shared = {**os.environ, **SINGLE, **QUIET, **self.environment, "WORLD_SIZE": str(self.count), "LOCAL_WORLD_SIZE": str(self.count),
                  "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
        with open(self.log, "w") as log:
            for rank in range(self.count):
                own = {**shared, "RANK": str(rank), "LOCAL_RANK": str(rank)}
                self.processes.append(subprocess.Popen(self.command, text=True, bufsize=1, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                                       stderr=log, env=own))

    def ask(self, case, way, samples):
        if not self.processes:
            self.start()
        try:
            for process in self.processes:
                process.stdin.write(json.dumps({**case, "way": way, "samples": samples}) + "\n")
        except BrokenPipeError:
            pass
        ready, _, _ = select.select([self.processes[0].stdout], [], [], PATIENCE)
        line = self.processes[0].stdout.readline() if ready else ""
        if line:
            return json.loads(line)
        self.finish()
        return {"refused": f"its processes ended ({self.log})" if ready else f"no answer within {PATIENCE} seconds"}

    def finish(self):
        """They end when there is nothing more to read."""
        for process in self.processes:
            try:
                process.stdin.close()
            except BrokenPipeError:
                pass
        for process in self.processes:
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        self.processes = []


def torch_ways(case):
    return {"move": ["redistribute"], "linear": ["parallelize_module"]}.get(case["kind"], [])


def jax_ways(case):
    return [] if case["kind"] != "move" else ["shard_map"] if case["from"] == "P" else ["device_put", "jit"]


def transformers_ways(case):
    return ["tp_plan"] if case["kind"] == "decode" else []


def served(directory, ranks):
    """The peers in Python, from the virtual environment of a directory."""
    def peer(name, ways, script, processes, environment):
        command = [str(directory / "venv" / "bin" / "python"), os.path.join(HERE, script)]
        return Served(name, ways, command, processes, environment, directory / f"{name}.log")

    xla = {**XLA, "JAX_NUM_CPU_DEVICES": str(ranks)}
    return [peer("pytorch", torch_ways, "torch_peer.py", ranks, {}), peer("jax", jax_ways, "jax_peer.py", 1, xla),
            peer("transformers", transformers_ways, "transformers_peer.py", ranks, {})]


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]
