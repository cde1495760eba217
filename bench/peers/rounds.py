"""Asks implementations for a case in turns, in several rounds, and makes lines of their answers."""
import functools
import statistics

import machine

MEASURED = ("seconds", "gemm_seconds")
BANDWIDTHS = ("peak", "limit")


def spread(samples):
    """The spread of a round, from a list of samples, or as the tool gives it."""
    if isinstance(samples, dict):
        return samples
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}


def combine(rounds):
    """The median of the rounds' medians, these medians, and the minimum and maximum of all
    samples."""
    medians = [one["median"] for one in rounds]
    return {"median": statistics.median(medians), "min": min(one["min"] for one in rounds), "max": max(one["max"] for one in rounds),
            "rounds": medians}


def figures(answers, one):
    """The figures of all rounds; `one` names a pass of the layers, or is None."""
    for key in MEASURED:
        found = [answer[key][one] if one else answer[key] for answer in answers if key in answer]
        if found:
            yield key, combine([spread(samples) for samples in found])
    shares = [share for answer in answers if (share := answer.get("of_peak", {}).get(one))]
    if shares:
        yield "of_peak", {"median": statistics.median(shares), "rounds": shares}
    copies = [share for answer in answers if (share := answer.get("of_copy"))]
    if copies:
        yield "of_copy", {"median": statistics.median(copies), "rounds": copies}
    for name in BANDWIDTHS:
        found = [answer[f"{name}_bandwidth"] for answer in answers if f"{name}_bandwidth" in answer]
        if found:
            yield f"{name}_bandwidth", statistics.median(found)
            yield f"{name}_rounds", found


def count_samples(answer):
    """The number of samples in a round. An answer with a spread has it in "samples"."""
    if "samples" in answer:
        return answer["samples"]
    one = answer["seconds"]
    return len(next(iter(one.values())) if isinstance(one, dict) else one)


def circumstances(answers):
    """When and how often a figure was measured. "others" is the largest share of the cores that
    other processes used in a round; null if it is unknown in all rounds."""
    others = [answer["others"] for answer in answers if answer["others"] is not None]
    return {"rounds": len(answers), "samples": max(map(count_samples, answers)), "asked": sum(answer["asked"] for answer in answers),
            "began": machine.clock(answers[0]["began"]), "ended": machine.clock(answers[-1]["ended"]),
            "others": round(max(others), 3) if others else None}


def lines(case, name, way, answers):
    """The lines of an implementation for a case: one, or one for each pass of the layers. "wrong"
    is null for results that were not checked."""
    left_out = ("passes", "model", "data", "prompt_ids", *(["ids"] if case["kind"] == "decode" else []))
    named = {key: value for key, value in case.items() if key not in left_out}
    head = {**named, "implementation": name, "way": way}
    refused = [answer["refused"] for answer in answers if "refused" in answer]
    if refused:
        yield {**head, "refused": refused[0]}
        return
    wrong = max((answer["wrong"] for answer in answers if answer.get("wrong") is not None), default=None)
    head.update(circumstances(answers), wrong=wrong)
    for one in case.get("passes") or (["forward", "backward"] if case["kind"] == "linear" else [None]):
        yield {**head, **({"pass": one} if one else {}), **dict(figures(answers, one))}


def measure(case, implementations, quiet, rounds, samples):
    asked = [(one, way) for one in implementations for way in one.ways(case)]
    answers = [[] for _ in asked]
    for _ in range(rounds):
        for (one, way), own in zip(asked, answers):
            if not own or "refused" not in own[-1]:
                own.append(quiet.ask(functools.partial(one.ask, case, way, samples)))
    for (one, way), own in zip(asked, answers):
        yield from lines(case, one.name, way, own)
