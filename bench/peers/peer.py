"""What the peers in Python share: the tensor that they move, how a call is timed, and the conversation with the harness.

A peer reads a case a line from its standard input and answers a line: {"seconds": [..], "wrong": 0}, or {"refused": "why"}.
"""
import json
import os
import sys
import time
import traceback

import numpy

SAMPLE_SECONDS, WARM_LOOPS, MOST_CALLS = 0.02, 4, 10000  # the first two as in timing.h


def reference(shape, ranks=None):
    """The whole tensor of reference.h, or, where ranks are given, the sum of their terms."""
    value = (numpy.arange(shape[0] * shape[1], dtype=numpy.int32) % 1009 - 500).astype(numpy.float32).reshape(shape)
    return value if ranks is None else ranks * value + numpy.float32(ranks * (ranks + 1) // 2)


def term(shape, rank):
    return reference(shape) + numpy.float32(rank + 1)


def calls_in_sample(seconds):
    """How many calls fill a sample, where one takes so long."""
    return max(1, min(MOST_CALLS, int(SAMPLE_SECONDS / max(seconds, 1e-9))))


def measure(call, samples, sources=lambda calls: [None] * calls, together=lambda: None, slowest=lambda seconds: seconds):
    """Seconds a call, of several samples that are loops of about SAMPLE_SECONDS, or one call that takes longer. The first call, which
    may plan and compile, and one that says how many fill a loop are followed by WARM_LOOPS of such loops.

    Each call is given one of as many sources, which are made before the clock runs. All ranks decide by the slowest one's time, so that
    they make as many calls.
    """

    def sample(calls):
        given = sources(calls)
        together()
        begin = time.perf_counter()
        for source in given:
            call(source)
        return slowest((time.perf_counter() - begin) / calls)

    sample(1)
    calls = 1
    for _ in range(1 + WARM_LOOPS):
        calls = calls_in_sample(sample(calls))
    return [sample(calls) for _ in range(samples)]


def refusal(error):
    """A failure's type and first line."""
    return {"refused": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}


def serve(answer, speaks=True):
    """Answers every case; what libraries print goes to standard error, and so does where a case failed. A failing rank that does not speak
    ends, which whoever waits for it hears of; the harness starts all of them anew."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # whatever a library raises, the harness hears of it
            traceback.print_exc()
            if not speaks:
                sys.exit(1)
            said = refusal(error)
        if speaks:
            print(json.dumps(said), file=channel, flush=True)
