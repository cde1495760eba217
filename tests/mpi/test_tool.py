#!/usr/bin/env python3
"""The programs under mpirun: the same bytes as with rank threads, output of one rank alone, refusals, and a rank that dies.
usage: test_tool.py LAUNCH LAUNCHER TALKER TOOL [LLAMA MODEL [TRAIN]]"""
import json
import os
import pathlib
import re
import subprocess
import sys

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
import harness  # noqa: E402

launch, launcher, talker, path, *llama = sys.argv[1:]
tool = harness.Tool(pathlib.Path(path).resolve())  # which ranks start from other folders


def mpirun(ranks, *command, timeout=120):
    return subprocess.run([launch, launcher, str(ranks), *map(str, command)], capture_output=True, text=True, timeout=timeout)


def files(folder):
    return {p.name: p.read_bytes() for p in folder.iterdir()}


def same_shards(number, mesh, ranks, source, target, *more):
    array = tool.folder / f"x-{number}.npy"
    harness.write_npy(array, "<f4", (31, 17), [i * 0.37 - 50 for i in range(31 * 17)])
    move = ["redistribute", "--mesh", mesh, "--from", source, "--to", target, "--input", array, "--json", *more]
    threads, processes = tool.folder / f"threads-{number}", tool.folder / f"processes-{number}"
    told = tool.json(*move[:-1 - len(more)], *more, "--output", threads)
    done = mpirun(ranks, tool.path, *move, "--engine", "mpi", "--output", processes)
    if done.returncode != 0:
        return [f"exit status {done.returncode}: {done.stderr}"]
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("answers", len(answers), 1)
    wrong += harness.different("bytes received", answers[0]["bytes_received"], told["bytes_received"])
    return wrong + harness.different("shards", files(processes), files(threads))


MOVES = [("2x2", 4, "S(0),R", "S(1),P"), ("4", 4, "P", "S(0;balanced)"), ("2x2", 4, "P,S(1)", "R,S(0)"), ("3", 3, "S(1)", "R"),
         ("2", 2, "S(0)", "S(1)", "--mode", "message")]
for number, (mesh, ranks, source, target, *more) in enumerate(MOVES):
    tool.case(f"{' '.join([mesh, source, '->', target, *more])}: every shard is that of rank threads", same_shards, number, mesh, ranks,
              source, target, *more)


def whole_file():
    """One file of the whole tensor, which three processes write after a move from two to three."""
    array, whole = tool.folder / "x-whole.npy", tool.folder / "whole.npy"
    harness.write_npy(array, "<f4", (31, 17), [i * 0.37 - 50 for i in range(31 * 17)])
    done = mpirun(3, tool.path, "redistribute", "--mesh", "2", "--to-mesh", "3", "--from", "S(0)", "--to", "S(1)", "--input", array, "--output", whole,
                  "--engine", "mpi", "--json")
    wrong = harness.different("status", (done.returncode, done.stderr), (0, "")) + harness.different("answers", len(done.stdout.splitlines()), 1)
    return wrong + harness.different("the file", harness.read_npy(whole)[:2], ("<f4", (31, 17))) + harness.different(
        "the elements", whole.read_bytes()[-31 * 17 * 4:], array.read_bytes()[-31 * 17 * 4:])


tool.case("a file of the whole tensor", whole_file)


def benchmark():
    done = mpirun(2, tool.path, "bench", "redistribute", "--mesh", "2", "--shape", "64x64", "--dtype", "f32", "--from", "S(0)", "--to", "S(1)",
                  "--iterations", "3", "--engine", "mpi", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit status", done.returncode, 0) + harness.different("lines", len(lines), 1)
    return wrong + harness.different("facts", [lines[0][k] for k in ("engine", "ranks", "wrong")], ["mpi", 2, 0])


tool.case("bench redistribute --engine mpi prints once, and nothing is wrong", benchmark)


def rows_by_id():
    """Processes read and change rows as rank threads do."""
    table, ids, rows = tool.folder / "table.npy", tool.folder / "ids", tool.folder / "rows"
    harness.write_npy(table, "<f4", (7, 3), [i * 0.37 for i in range(21)])
    for folder in (ids, rows):
        folder.mkdir()
    for rank, of in enumerate(([6, 0, 6], [], [6, 3])):
        harness.write_npy(ids / f"rank-{rank}.npy", "<i8", (len(of),), of)
        harness.write_npy(rows / f"rank-{rank}.npy", "<f4", (len(of), 3), [0.1 * rank + i for i in range(3 * len(of))])
    common = ["--mesh", "3", "--placements", "S(0)", "--table", table, "--ids", ids, "--json"]
    wrong = []
    for name, command in ("found", ["gather"]), ("new.npy", ["update", "--rows", rows, "--op", "mean"]):
        tool.json("rows", *command, *common[:-1], "--output", tool.folder / f"threads-{name}")
        done = mpirun(3, tool.path, "rows", *command, *common, "--engine", "mpi", "--output", tool.folder / f"processes-{name}")
        wrong += harness.different("status", (done.returncode, done.stderr), (0, "")) + harness.different("answers", len(done.stdout.splitlines()), 1)
    wrong += harness.different("rows", files(tool.folder / "processes-found"), files(tool.folder / "threads-found"))
    return wrong + harness.different("table", (tool.folder / "processes-new.npy").read_bytes(), (tool.folder / "threads-new.npy").read_bytes())


def rows_benchmark():
    done = mpirun(2, tool.path, "bench", "rows", "--shape", "101x3", "--batch", "30", "-n", "2", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    ended = (done.returncode, done.stderr if done.returncode else "")
    return harness.different("exit status", ended, (0, "")) + harness.different(
        "lines", [[line[k] for k in ("op", "engine", "ranks", "wrong")] + [line["of_copy"] > 0] for line in lines],
        [["gather", "mpi", 2, 0, True], ["add", "mpi", 2, 0, True]])


def rows_benchmark_without_own_rows():
    """5 rows of 4 ranks are 2, 2, 1 and 0."""
    done = mpirun(4, tool.path, "bench", "rows", "--shape", "5x3", "--batch", "30", "-n", "2", "--json")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return harness.different("lines", [(line["op"], line["wrong"], line["of_copy"]) for line in found], [("gather", 0, None), ("add", 0, None)])


tool.case("rows by id are those of rank threads", rows_by_id)
tool.case("bench rows --engine mpi prints once, and nothing is wrong", rows_benchmark)
tool.case("bench rows has no loop by hand where a process has no rows", rows_benchmark_without_own_rows)


def with_variable(name, value):
    """Runs an MLP on two ranks, with the variable on rank 1 alone."""
    script = f'case ${{OMPI_COMM_WORLD_RANK:-$PMI_RANK}} in 1) export {name}={value} ;; esac; exec "$@"'
    return mpirun(2, "sh", "-c", script, "sh", tool.path, "bench", "linear", "--mesh", 2, "--tokens", 8, "--hidden", 8, "--intermediate", 8, "-n", 1,
                  "-w", 0, "--calls", 1, "--engine", "mpi")


def ranks_of_one_blas():
    info = tool.json("info")
    core, other = info["providers"][0]["core"], "Haswell"
    if core == other or "openblas" not in info["providers"][0]["name"] or info["devices"][0]["kernels"] == "portable":
        return []  # there is no other core that this processor runs
    done = with_variable("OPENBLAS_CORETYPE", other)
    wrong = [part for part in ("ranks would multiply by different BLAS", f"kernels for {core}", f"kernels for {other}") if part not in done.stderr]
    return wrong + harness.different("lines", done.stderr.count("tessera: rank "), 1)


def rank_without_a_blas():
    done = with_variable("TSR_BLAS", "nothing")
    return harness.different("exit status", done.returncode != 0, True) + harness.different("said", 'blas is "nothing"' in done.stderr, True)


if tool.run("bench", "linear", "--help").returncode == 0:
    tool.case("ranks with kernels of different processors are told of it before they multiply", ranks_of_one_blas)
    tool.case("a rank that cannot open its BLAS tells the others", rank_without_a_blas)


def unasked():
    """Under a launcher, the command line needs no other options than without one."""
    done = mpirun(3, tool.path, "bench", "redistribute", "--mesh", "3", "--shape", "7x5", "--from", "S(0)", "--to", "R", "-n", "2", "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    wrong = harness.different("exit status", (done.returncode, done.stderr), (0, "")) + harness.different("lines", len(lines), 1)
    return wrong + harness.different("facts", [lines[0][k] for k in ("engine", "ranks", "wrong")], ["mpi", 3, 0])


tool.case("launched processes are the ranks, without being asked for", unasked)


def once(*command):
    """Commands that need no ranks, or rank threads, run in one of the processes."""
    done, alone = mpirun(2, tool.path, *command), tool.run(*command)
    return harness.different("output", (done.returncode, done.stdout), (0, alone.stdout))


for command in (["--help"], ["bench", "plan", "--help"], ["layout", "--mesh", "2", "--shape", "5", "--placements", "S(0)"],
                ["plan", "--mesh", "2", "--shape", "4", "--from", "S(0)", "--to", "R", "--json"],
                ["bench", "simulate", "--mesh", "8", "--shape", "64", "--from", "S(0)", "--to", "R", "--csv"]):
    tool.case(f"launched processes say once: {' '.join(command)}", once, *command)


def threads_in_one():
    move = ["bench", "dispatch", "--mesh", "2", "--shape", "4", "--from", "S(0)", "--to", "R", "-n", "2", "--json", "--engine"]
    done, mixed = mpirun(2, tool.path, *move, "threads"), mpirun(2, tool.path, *move, "threads,mpi")
    wrong = harness.different("lines", [json.loads(line)["engine"] for line in done.stdout.splitlines()], ["threads"])
    said = [line for line in mixed.stderr.splitlines() if line.startswith("tessera: ")]
    return wrong + harness.different("mixed", (mixed.returncode != 0, mixed.stdout, len(said)), (True, "", 1))


tool.case("rank threads under a launcher are those of one process, and not mixed with it", threads_in_one)


def setting(value, wanted):
    environment = {**os.environ, "TSR_MPI": value}
    done = subprocess.run([tool.path, "info", "--json"], capture_output=True, text=True, timeout=60, env=environment)
    return harness.different("exit status", done.returncode, 1) + harness.different("said", wanted in done.stderr, True)


tool.case("TSR_MPI that names no MPI is refused", setting, "lam", "openmpi or mpich")


def misled():
    """Where both MPIs are installed, the one that is not the launcher's is refused."""
    said = []
    for value in ("openmpi", "mpich"):
        done = subprocess.run([launch, launcher, "2", tool.path, "bench", "redistribute", "--mesh", "2", "--shape", "8", "--from", "S(0)", "--to", "R", "-n", "1"],
                              capture_output=True, text=True, timeout=60, env={**os.environ, "TSR_MPI": value})
        said += [line for line in done.stderr.splitlines() if line.startswith("tessera: ")] if done.returncode else []
    told = [line for line in said if "TSR_MPI is " in line and "finds a job of one" in line]
    return [] if said and (told or "cannot be opened" in said[0] or "built without" in said[0]) else [f"{said}"]


tool.case("TSR_MPI that names another MPI than the launcher's is refused", misled)


def layers():
    done = mpirun(4, tool.path, "bench", "linear", "--mesh", "dp=2,tp=2", "--tokens", 9, "--hidden", 14, "--intermediate", 21, "-n", 2, "--engine", "mpi",
                  "--json")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    return harness.different("exit", (done.returncode, done.stderr), (0, "")) + harness.different(
        "passes", [(l["engine"], l["pass"], l["wrong"]) for l in lines], [("mpi", "forward", 0), ("mpi", "backward", 0)])


if tool.run("bench", "linear", "--help").returncode == 0:
    tool.case("bench linear --engine mpi is right on every rank", layers)
else:
    tool.report.skip("bench linear --engine mpi", "this build has no BLAS")


def sweep():
    done = mpirun(2, tool.path, "bench", "dispatch", "--mesh", "2", "--shape", "4,8x2", "--from", "S(0)", "--to", "R", "--to", "S(0)",
                  "--iterations", "2", "--engine", "mpi", "--json")
    shapes = [json.loads(line)["shape"] for line in done.stdout.splitlines()]
    return harness.different("exit status", done.returncode, 0) + harness.different("shapes", shapes, [[4], [8, 2]] * 2)


tool.case("one job runs every line of a sweep", sweep)


def refused(ranks, mesh, *words):
    done = mpirun(ranks, tool.path, "bench", "redistribute", "--mesh", mesh, "--shape", "8", "--dtype", "f32", "--from", "S(0)", "--to", "R",
                  "--engine", "mpi")
    said = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
    wrong = [] if done.returncode else ["exit status 0"]
    wrong += harness.different("sentences", len(said), 1)
    return wrong + [f"{word!r} is not in {said}" for word in words if not any(word in line for line in said)]


tool.case("a mesh of more ranks than were launched is refused, once", refused, 2, "3", "2 ranks were launched; start it by mpirun -n 3")
tool.case("a mesh of fewer ranks than were launched is refused, once", refused, 3, "2", "3 ranks were launched; start it by mpirun -n 2")


def misread(*options):
    done = mpirun(2, tool.path, "bench", "redistribute", "--mesh", "2", "--shape", "8", "--from", "S(0)", "--to", "R", "--engine", "mpi", *options)
    said = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
    return ([] if done.returncode else ["exit status 0"]) + harness.different("sentences", len(said), 1)


for options in (["--json", "--csv"], ["--nonsense"], ["--dtype", "f33"]):
    tool.case(f"options that don't parse are told once: {' '.join(options)}", misread, *options)


def refused_by_one(number, missing, *words):
    """Each rank works in a folder of its own, as on hosts without a common file system. Rank 1's folder is wrong."""
    folders = [tool.folder / f"one-{number}-{rank}" for rank in range(2)]
    for folder in folders:
        folder.mkdir()
        harness.write_npy(folder / "x.npy", "<f4", (5, 3), range(15))
    missing(folders[1])
    before = [sorted(folder.rglob("*")) for folder in folders]
    done = mpirun(2, "sh", "-c", 'cd "$0-${OMPI_COMM_WORLD_RANK:-$PMI_RANK}" && exec "$@"', tool.folder / f"one-{number}", tool.path,
                  "redistribute", "--mesh", "2", "--from", "S(0)", "--to", "R", "--input", "x.npy", "--output", ".", "--engine", "mpi",
                  timeout=60)
    said = [line for line in done.stderr.splitlines() if line.startswith("tessera: ")]
    wrong = harness.different("exit status", done.returncode, 1) + harness.different("answer", done.stdout, "")
    wrong += harness.different("files", [sorted(folder.rglob("*")) for folder in folders], before)
    return wrong if len(said) == 1 and all(word in said[0] for word in words) else wrong + [f"{words} are not in {said}"]


for number, (name, missing) in enumerate({"x.npy": lambda folder: (folder / "x.npy").unlink(),
                                          "rank-1.npy": lambda folder: (folder / "rank-1.npy").mkdir()}.items()):
    tool.case(f"what rank 1 alone cannot do with {name} is told once, and nothing is left", refused_by_one, number, missing, "rank 1: ", name)


def information():
    engines = {engine["name"]: engine for engine in tool.json("info")["engines"]}
    found = engines["mpi"]
    return [] if found["available"] and re.search(r"MPI.*[0-9]\.[0-9]", found["version"]) else [f"{found}"]


tool.case("info says which MPI there is", information)


def talk_until_one_dies():
    done = mpirun(3, talker, "die", 1, timeout=60)
    wrong = [] if done.returncode else ["exit status 0"]
    return wrong + ([] if "3 ranks" in done.stdout else [f"they did not talk: {done.stdout} {done.stderr}"])


tool.case("a rank that is killed ends the job, not in silence", talk_until_one_dies)


def generate(number, ranks, *model):
    program = llama[0]
    logits = [tool.folder / f"logits-{number}-{kind}.npy" for kind in ("threads", "processes")]
    request = [*model, "--prompt", "ROMEO:", "--tokens", "12", "--json", "--logits"]
    threads = subprocess.run([program, "--ranks", str(ranks), *request, logits[0]], capture_output=True, text=True, timeout=120, check=True)
    processes = mpirun(ranks, program, *(["--engine", "mpi"] if number else []), *request, logits[1])
    if processes.returncode:
        return [f"exit status {processes.returncode}: {processes.stderr}"]
    answers = [json.loads(text) for text in (threads.stdout, processes.stdout)]
    wrong = harness.different("engine", answers[1]["engine"], "mpi")
    for key in ("ranks", "ids", "text", "bytes_received_per_token"):
        wrong += harness.different(key, answers[1][key], answers[0][key])
    return wrong + harness.different("logits", logits[1].read_bytes(), logits[0].read_bytes())


for number, ranks in enumerate((2, 3) if llama else ()):
    tool.case(f"tessera-llama on {ranks} processes{'' if number else ', unasked,'} gives the tokens and logits of rank threads", generate, number, ranks,
              llama[1])
if llama:
    experts = pathlib.Path(__file__).resolve().parents[1] / "golden" / "expert_models" / "mixtral" / "config.json"
    tool.case("tessera-llama with 5 experts on 3 processes gives the tokens and logits of rank threads", generate, 2, 3, "--random", experts)


def state(folder):
    """The files of a checkpoint, without what is random in their names."""
    stamp = re.compile(rb"model-[0-9a-f]{16}-")
    return {stamp.sub(b"model-", name.encode()): stamp.sub(b"model-", data) for name, data in files(folder).items()}


def train(mesh, ranks):
    program, config = llama[2], tool.folder / "config.json"
    config.write_text(json.dumps({"model_type": "llama", "vocab_size": 256, "hidden_size": 16, "intermediate_size": 20, "num_hidden_layers": 1,
                                  "num_attention_heads": 2}))
    words = [config, "--data", __file__, "--mesh", mesh, "--steps", "4", "--batch", "3", "--length", "8", "--json", "--save"]
    threads = subprocess.run([program, *words, tool.folder / "threads"], capture_output=True, text=True, timeout=120, check=True)
    processes = mpirun(ranks, program, *words, tool.folder / "processes")
    if processes.returncode:
        return [f"exit status {processes.returncode}: {processes.stderr}"]
    told = [[{key: value for key, value in json.loads(line).items() if "second" not in key} for line in text.splitlines()]
            for text in (threads.stdout, processes.stdout)]
    wrong = harness.different("steps", told[1], told[0])
    refused = mpirun(ranks, program, config, "--data", __file__, "--mesh", "dp=5")
    if refused.returncode == 0 or "--mesh dp=5" not in refused.stderr:
        wrong.append(f"dp=5 on {ranks} ranks: {refused.returncode} {refused.stderr}")
    return wrong + harness.different("state", state(tool.folder / "processes"), state(tool.folder / "threads"))


if len(llama) > 2:
    tool.case("tessera-train on 4 processes takes the steps of rank threads, and saves their state", train, "fsdp=2,tp=2", 4)

tool.report.finish()
