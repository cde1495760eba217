"""Measures Tessera and its peers: the same cases, ranks and sizes, in turns. Used by scripts/bench-peers, which prepares all of it.

Writes a JSON line for the machine, then one for each implementation, way and case. "seconds" are of one call on the slowest rank: the
median of the rounds' medians, and the least and most of all samples. In every round each implementation is asked once.
"""
import argparse
import json
import pathlib
import sys

import cases
import machine
import rounds
from implementations import Memcpy, Mpi, Served, Tessera, served
from quiet import Quiet

ROOT = pathlib.Path(__file__).resolve().parents[2]
ROUNDS, SAMPLES = {True: 1, False: 3}, 3  # by whether it is to be quick


def all_cases(options):
    doubled = options.directory / "shakespeare-doubled"
    chosen = [*cases.moves(options.quick, options.sides), *cases.linears(options.quick),
              *cases.decodes(ROOT / "examples" / "llama" / "shakespeare", doubled)]
    for case in chosen:
        if options.only in (None, case["kind"]):
            case["ranks"] = options.ranks
            if case["kind"] == "move":
                case["payload_bytes"] = cases.payload_bytes(case, options.ranks)
            yield case


def implementations(options):
    every = [Tessera(options.build, options.ranks), Memcpy(options.directory / "memcpy_moves", options.ranks)]
    if options.mpirun:
        every.append(Mpi(options.directory / "mpi_moves", options.mpirun, options.ranks))
    return every + served(options.directory, options.ranks)


def tell(line):
    figure = line.get("refused") or f"{1e6 * line['seconds']['median']:12.2f} us"
    what = " ".join(str(line[key]) for key in ("from", "to", "bytes", "tokens", "pass", "kv_heads") if key in line)
    print(f"{line['kind']:>7} {what:<24} {line['implementation']:>12} {line['way']:<20} {figure}", file=sys.stderr, flush=True)


def failure(line):
    """Peers may refuse a case; nobody may be wrong."""
    return bool(line.get("wrong")) or ("refused" in line and line["implementation"] == "tessera")


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="what scripts/bench-peers built")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build of Tessera")
    parser.add_argument("--mpirun", default="")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=["move", "linear", "decode"])
    parser.add_argument("--sides", type=lambda text: [int(side) for side in text.split(",")], help="of the tensors that are moved: 32,8192")
    parser.add_argument("--patience", type=float, default=0, help="seconds to spend, all together, on asking again when others are busy")
    parser.add_argument("--quick", action="store_true", help="few sizes, one round")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    running, failed = implementations(options), False
    quiet = Quiet(options.patience, lambda: [process.pid for one in running if isinstance(one, Served) for process in one.processes])
    try:
        with open(options.output, "w") as output:
            print(json.dumps(machine.describe(options.build, options.directory / "venv", options.mpirun)), file=output, flush=True)
            for case in all_cases(options):
                for line in rounds.measure(case, running, quiet, ROUNDS[options.quick], SAMPLES):
                    print(json.dumps(line), file=output, flush=True)
                    tell(line)
                    failed |= failure(line)
    finally:
        for one in running:
            if isinstance(one, Served):
                one.finish()
    sys.exit(failed)


main()
