#!/usr/bin/env python3
"""One program of tsr_run(), which links no MPI, with and without launchers: ranks, failures, exit statuses, and MPIs that are not there.
usage: test_run.py LAUNCH LAUNCHER RUNNER NAME WORD LIBRARY CORE"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "tool"))
sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import harness  # noqa: E402
import tap  # noqa: E402

launch, launcher, runner, name, word, library, core = sys.argv[1:]
report = tap.Report()
LAUNCHED = ("OMPI_", "PMI", "SLURM_", "TSR_")
ALONE = {key: value for key, value in os.environ.items() if not key.startswith(LAUNCHED)}


def run(*command, **variables):
    return subprocess.run(list(map(str, command)), capture_output=True, text=True, timeout=60, env={**ALONE, **variables})


def mpirun(ranks, *command, **variables):
    return run(launch, launcher, ranks, *command, **variables)


def said(done):
    return sorted(line for line in done.stderr.splitlines() if line.startswith("R"))


def by_itself():
    done = run(runner, "sum", TSR_RANKS="3")
    return harness.different("end", (done.returncode, done.stdout, done.stderr), (0, "3 ranks of threads, whose numbers add up to 3\n", ""))


def launched(ranks):
    done = mpirun(ranks, runner, "sum", TSR_RANKS="7")
    return harness.different("end", (done.returncode, done.stdout), (0, f"{ranks} ranks of mpi, whose numbers add up to {ranks * (ranks - 1) // 2}\n"))


def twice():
    done = mpirun(2, runner, "twice")
    return harness.different("end", (done.returncode, done.stdout), (0, 2 * "2 ranks of mpi, whose numbers add up to 1\n"))


def failing():
    """A launcher may end a job once one of its processes has failed, so the status of each is written to a file."""
    with tempfile.TemporaryDirectory() as folder:
        script = '"$1" fail; echo $? > "$2/${OMPI_COMM_WORLD_RANK:-$PMI_RANK}"'
        done = mpirun(3, "sh", "-c", script, "sh", runner, folder)
        statuses = sorted((path.name, path.read_text()) for path in pathlib.Path(folder).iterdir())
    wrong = harness.different("exit statuses", statuses, [(str(rank), "1\n") for rank in range(3)])
    wrong += harness.different("sentences", said(done), [f"R{rank} io: rank 1: the file is gone" for rank in range(3)])
    return wrong + harness.different("the launcher's status is that of a failure", mpirun(3, runner, "fail").returncode != 0, True)


def refuses(done, *words):
    wrong = harness.different("exit status is that of a failure", done.returncode != 0, True) + harness.different("output", done.stdout, "")
    lines = said(done)
    return wrong + [f"{part!r} is not in {done.stderr!r}" for part in words if not lines or not all(part in line for line in lines)]


def another_mpi():
    """The other MPI is there, and finds a job of one process, or it is not there."""
    other = {"openmpi": "mpich", "mpich": "openmpi"}[word]
    done = mpirun(2, runner, "sum", TSR_MPI=other)
    return refuses(done, f'TSR_MPI is "{other}"', "finds a job of one" if "finds" in done.stderr else "cannot be opened")


def own_mpi():
    done = mpirun(2, runner, "sum", TSR_MPI=word)
    return harness.different("end", (done.returncode, done.stdout), (0, "2 ranks of mpi, whose numbers add up to 1\n"))


def moved(*files):
    """A folder with copies of libraries, named as the loader looks for them."""
    folder = tempfile.TemporaryDirectory()
    for file in files:
        shutil.copy(file, pathlib.Path(folder.name) / (pathlib.Path(file).name.split(".so")[0] + ".so.0"))
    return folder


def missing():
    with moved(core) as folder:
        done = mpirun(2, runner, "sum", LD_LIBRARY_PATH=folder)
    return refuses(done, "unavailable: tsr_run: ", f"the launcher of {name} started 2 processes, but libtessera-mpi-", "cannot be opened",
                   "start the program with the launcher of ")


def apart():
    with moved(core) as first, moved(library) as second:
        done = mpirun(2, runner, "sum", LD_LIBRARY_PATH=f"{first}:{second}")
    return harness.different("end", (done.returncode, done.stdout), (0, "2 ranks of mpi, whose numbers add up to 1\n"))


def of_slurm():
    """As srun --mpi=pmix leaves a program whose MPI was not built for it."""
    done = run(runner, "sum", SLURM_STEP_NUM_TASKS="3", SLURM_PROCID="1", PMIX_RANK="1", TSR_MPI=word)
    return refuses(done, "SLURM_STEP_NUM_TASKS is 3", "finds a job of one process")


def of_plain_srun():
    done = run(runner, "sum", SLURM_STEP_NUM_TASKS="3", SLURM_PROCID="1", SLURM_NTASKS="3")
    return refuses(done, "R1 state: tsr_run: srun started 3 tasks, but no PMI", "srun --mpi=pmix")


def case(fact, attempt, *arguments):
    """`attempt` raises nothing, and returns what contradicts the fact."""
    try:
        report.check(fact, attempt(*arguments))
    except subprocess.TimeoutExpired as error:
        report.check(fact, [f"{error}: {error.stderr}"])


case("by itself a program has rank threads", by_itself)
for count in (1, 3):
    case(f"launched, its {count} processes are the ranks", launched, count)
case("a job of processes runs several times", twice)
case("where a rank fails every process has its sentence, and a failure's exit status", failing)
case("TSR_MPI may name the launcher's MPI", own_mpi)
case("TSR_MPI that names another MPI is refused", another_mpi)
case("a launcher whose library is not there is named, and what would work", missing)
case("the library is found by the loader where it does not lie beside libtessera-core", apart)
case("a program that Slurm started without its MPI is refused", of_slurm)
case("tasks of plain srun are refused, not run as many jobs", of_plain_srun)
report.finish()
