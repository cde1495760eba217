"""Asks implementations for a case in turns, several rounds, and makes lines of what they answer."""
import functools
import statistics

MEASURED = ("seconds", "gemm_seconds")


def spread(samples):
    """Of a round: a list of samples, or what the tool says of its own."""
    if isinstance(samples, dict):
        return samples
    return {"median": statistics.median(samples), "min": min(samples), "max": max(samples)}


def combine(rounds):
    return {"median": statistics.median(one["median"] for one in rounds), "min": min(one["min"] for one in rounds),
            "max": max(one["max"] for one in rounds)}


def figures(answers, one):
    """What was measured in all rounds: of one pass of the layers, or of all there is."""
    for key in MEASURED:
        found = [answer[key][one] if one else answer[key] for answer in answers if key in answer]
        if found:
            yield key, combine([spread(samples) for samples in found])
    peaks = [answer["peak_bandwidth"] for answer in answers if "peak_bandwidth" in answer]
    if peaks:
        yield "peak_bandwidth", statistics.median(peaks)


def lines(case, name, way, answers, samples):
    """An implementation's lines for a case: one, or one for each pass of the layers. What nobody checked is null, not 0 wrong;
    "others" is the largest share of the cores that other processes used in a round."""
    named = {key: value for key, value in case.items() if key not in ("model", "prompt_ids", "ids")}
    head = {**named, "implementation": name, "way": way}
    refused = [answer["refused"] for answer in answers if "refused" in answer]
    if refused:
        yield {**head, "refused": refused[0]}
        return
    wrong = max((answer["wrong"] for answer in answers if "wrong" in answer), default=None)
    head.update(rounds=len(answers), samples=samples, wrong=wrong, others=round(max(answer["others"] for answer in answers), 3))
    for one in ["forward", "backward"] if case["kind"] == "linear" else [None]:
        yield {**head, **({"pass": one} if one else {}), **dict(figures(answers, one))}


def measure(case, implementations, quiet, rounds, samples):
    asked = [(one, way) for one in implementations for way in one.ways(case)]
    answers = [[] for _ in asked]
    for _ in range(rounds):
        for (one, way), own in zip(asked, answers):
            if not own or "refused" not in own[-1]:
                own.append(quiet.ask(functools.partial(one.ask, case, way, samples)))
    for (one, way), own in zip(asked, answers):
        yield from lines(case, one.name, way, own, samples)
