"""Measures Tessera and its peers: the same cases, ranks and sizes, in turns. Used by scripts/bench-peers, which prepares all of it.

Writes a JSON line for the machine, then one for each implementation, way and case. "seconds" are of one call on the slowest rank: the
median of the rounds' medians, and the least and most of all samples. In every round each implementation is asked once.
"""
import argparse
import json
import os
import pathlib
import statistics
import sys

import cases
import machine
from implementations import Memcpy, Mpi, Served, Tessera, served

ROOT = pathlib.Path(__file__).resolve().parents[2]
MEASURED = ("seconds", "gemm_seconds")


def spread(samples):
    """Of a round: a list of samples, or what the tool says of its own."""
    if isinstance(samples, dict):
        return samples
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}


def combine(rounds):
    return {"median": statistics.median(one["median"] for one in rounds), "min": min(one["min"] for one in rounds),
            "max": max(one["max"] for one in rounds)}


def lines(case, name, way, answers, samples):
    """An implementation's lines for a case: one, or one for each pass of the layers."""
    named = {key: value for key, value in case.items() if key not in ("model", "prompt_ids", "ids")}
    head = {**named, "implementation": name, "way": way}
    refused = [answer["refused"] for answer in answers if "refused" in answer]
    if refused:
        yield {**head, "refused": refused[0]}
        return
    head.update(rounds=len(answers), samples=samples, wrong=None, load=round(os.getloadavg()[0], 2))
    if "wrong" in answers[0]:
        head["wrong"] = max(answer["wrong"] for answer in answers)
    passes = ["forward", "backward"] if case["kind"] == "linear" else [None]
    for one in passes:
        figures = {}
        for key in MEASURED:
            found = [answer[key][one] if one else answer[key] for answer in answers if key in answer]
            if found:
                figures[key] = combine([spread(samples) for samples in found])
        peaks = [answer["peak_bandwidth"] for answer in answers if "peak_bandwidth" in answer]
        if peaks:
            figures["peak_bandwidth"] = statistics.median(peaks)
        yield {**head, **({"pass": one} if one else {}), **figures}


def measure(case, implementations, rounds, samples):
    asked = [(one, way) for one in implementations for way in one.ways(case)]
    answers = [[] for _ in asked]
    for _ in range(rounds):
        for (one, way), own in zip(asked, answers):
            if not own or "refused" not in own[-1]:
                own.append(one.ask(case, way, samples))
    for (one, way), own in zip(asked, answers):
        yield from lines(case, one.name, way, own, samples)


def all_cases(options):
    doubled = options.directory / "shakespeare-doubled"
    chosen = [*cases.moves(options.quick), *cases.linears(options.quick),
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


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--directory", type=pathlib.Path, required=True, help="what scripts/bench-peers built")
    parser.add_argument("--build", type=pathlib.Path, required=True, help="a build of Tessera")
    parser.add_argument("--mpirun", default="")
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--only", choices=["move", "linear", "decode"])
    parser.add_argument("--quick", action="store_true", help="few sizes, one round")
    parser.add_argument("--output", type=pathlib.Path, required=True)
    options = parser.parse_args()
    rounds, samples = (1, 3) if options.quick else (3, 3)
    running, wrong = implementations(options), 0
    try:
        with open(options.output, "w") as output:
            print(json.dumps(machine.describe(options.build, options.directory / "venv", options.mpirun)), file=output, flush=True)
            for case in all_cases(options):
                for line in measure(case, running, rounds, samples):
                    print(json.dumps(line), file=output, flush=True)
                    tell(line)
                    wrong += line.get("wrong") or 0
    finally:
        for one in running:
            if isinstance(one, Served):
                one.finish()
    sys.exit(1 if wrong else 0)


main()
