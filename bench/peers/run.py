"""Measures Tessera and its peers: the same cases, ranks and sizes, in turns. scripts/bench-peers
prepares the peers and runs this.

Writes a JSON line about the machine, then one for each implementation, way and case. "seconds" are
of one call on the slowest rank: the median of the rounds' medians ("rounds"), and the minimum and
maximum of all samples. In a round each implementation is asked in turn and, with --patience, again
if other processes disturbed it.
"""
import argparse
import json
import pathlib
import sys

import cases
import machine
import rounds
from implementations import Memcpy, Mpi, MpiRows, Served, Tessera, launcher_of, served
from quiet import Quiet

ROOT = pathlib.Path(__file__).resolve().parents[2]
SAMPLES = 3  # samples in a round


def all_cases(options):
    doubled = options.directory / "shakespeare-doubled"
    models = {"shakespeare": (ROOT / "examples" / "llama" / "shakespeare" / "config.json", options.directory / "tokens.txt"),
              "125m": (ROOT / "bench" / "peers" / "llama-125m.json", options.directory / "tokens.npy")}
    chosen = [*cases.moves(options.quick, options.sides), *cases.linears(options.quick),
              *cases.decodes(ROOT / "examples" / "llama" / "shakespeare", doubled, options.ranks), *cases.ops(options.quick, options.ranks),
              *cases.programs(options.quick, options.ranks), *cases.rows(options.quick, options.ranks),
              *cases.trainings(options.quick, models, options.ranks)]
    for case in chosen:
        if options.only in (None, case["kind"]):
            case.setdefault("ranks", options.ranks)
            if case["kind"] == "move":
                case["payload_bytes"] = cases.payload_bytes(case, options.ranks)
            yield case


def rows_by_mpi(options, name, mpirun):
    """Rows by id over an MPI: by hand, and on twice as many processes by Tessera and by hand."""
    by_hand, program, twice = f"{name}-by-hand", options.directory / f"{name}_rows", 2 * options.ranks
    yield MpiRows(by_hand, program, launcher_of(mpirun, options.ranks), options.ranks)
    yield Tessera(options.build, twice, f"tessera-{name}", launcher_of(mpirun, twice))
    yield MpiRows(by_hand, program, launcher_of(mpirun, twice), twice)


def implementations(options):
    """All implementations: Tessera's, memcpy, the peers in Python and, for each MPI, its own ways,
    those by hand, and Tessera's engine."""
    every = [Tessera(options.build, options.ranks), Tessera(options.build, options.ranks, "tessera-new", new_results=True),
             Memcpy(options.directory / "memcpy_moves", options.ranks)]
    for name, mpirun in options.mpi:
        launcher = launcher_of(mpirun, options.ranks)
        every.append(Tessera(options.build, options.ranks, f"tessera-{name}", launcher))
        program = options.directory / f"{name}_moves"
        every += [Mpi(name, program, launcher), Mpi(f"{name}-by-hand", program, launcher, Mpi.BY_HAND)]
        every += rows_by_mpi(options, name, mpirun)
    return every + served(options.directory, options.ranks)


def tell(line):
    figure = line.get("refused") or f"{1e6 * line['seconds']['median']:12.2f} us"
    told = ("from", "to", "bytes", "tokens", "hidden", "op", "sizes", "pass", "kv_heads", "skew", "ids", "name", "batch")
    what = " ".join(str(line[key]) for key in told if key in line)
    print(f"{line['kind']:>7} {what:<24} {line['implementation']:>13} {line['way']:<22} {figure}", file=sys.stderr, flush=True)


def failure(line):
    """True for a wrong result of any implementation, and for a case that Tessera refused."""
    return bool(line.get("wrong")) or ("refused" in line and line["implementation"].startswith("tessera"))


def measure(chosen, running, quiet, quick, output):
    """Measures all cases and writes each line at once. Returns True if any failed."""
    failed = False
    for case in chosen:
        for line in rounds.measure(case, running, quiet, cases.rounds(case, quick), SAMPLES):
            print(json.dumps(line), file=output, flush=True)
            tell(line)
            failed |= failure(line)
    return failed


def counts(text):
    try:
        found = [int(part) for part in text.split(",")]
    except ValueError:
        found = [0]
    if min(found) < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a list of whole numbers from 1, like 32,8192')
    return found


def count(text):
    found = counts(text)
    if len(found) > 1:
        raise argparse.ArgumentTypeError(f'"{text}" is several numbers; one is wanted')
    return found[0]


def named_launcher(text):
    name, _, mpirun = text.partition("=")
    if not name or not mpirun:
        raise argparse.ArgumentTypeError(f'"{text}" is not NAME=MPIRUN')
    return name, mpirun


def refuse_unwritable(parser, path):
    """Refuses an --output that cannot be written, before anything is installed or measured. Leaves
    an existing file as it is, and no new one."""
    absent = not path.exists()
    try:
        with open(path, "a"):
            pass
        if absent:
            path.unlink()
    except OSError as error:
        parser.error(f"--output {path} cannot be written ({error.strerror}): name a file in a folder that there is")


def parse(arguments):
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="what scripts/bench-peers built")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build of Tessera")
    parser.add_argument("--mpi", type=named_launcher, action="append", default=[], metavar="NAME=MPIRUN",
                        help="an MPI, whose peer is NAME_moves; may be repeated")
    parser.add_argument("--ranks", type=count, default=2)
    parser.add_argument("--only", choices=["move", "linear", "decode", "ops", "program", "rows", "train"])
    parser.add_argument("--sides", type=counts, help="of the tensors that are moved: 32,8192")
    parser.add_argument("--patience", type=float, default=0, help="seconds to spend, all together, on asking again when others are busy")
    parser.add_argument("--quick", action="store_true", help="few sizes, one round")
    parser.add_argument("--check", action="store_true", help="read the options, and do nothing")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args(arguments)
    refuse_unwritable(parser, options.output)
    return options


def main(arguments):
    options = parse(arguments)
    if options.check:
        return False
    running = implementations(options)
    quiet = Quiet(options.patience, lambda: [process.pid for one in running if isinstance(one, Served) for process in one.processes])
    try:
        with open(options.output, "w") as output:
            print(json.dumps(machine.describe(options.build, options.directory / "venv", options.mpi)), file=output, flush=True)
            return measure(all_cases(options), running, quiet, options.quick, output)
    finally:
        for one in running:
            if isinstance(one, Served):
                one.finish()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
