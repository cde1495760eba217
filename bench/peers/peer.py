"""What the peers in Python share: the tensor that they move, how a call is timed, and the conversation with the harness.

A peer reads a case a line from its standard input and answers a line: {"seconds": [..], "wrong": 0}, or {"refused": "why"}.
"""
import json
import os
import sys
import time

import numpy

SAMPLE_SECONDS, MOST_CALLS = 0.02, 10000  # as in timing.h


def reference(shape, ranks=None):
    """The whole tensor of reference.h, or, where ranks are given, the sum of their terms."""
    value = (numpy.arange(shape[0] * shape[1], dtype=numpy.int32) % 1009 - 500).astype(numpy.float32).reshape(shape)
    return value if ranks is None else ranks * value + numpy.float32(ranks * (ranks + 1) // 2)


def term(shape, rank):
    return reference(shape) + numpy.float32(rank + 1)


def measure(call, samples, sources=lambda calls: [None] * calls, together=lambda: None, slowest=lambda seconds: seconds):
    """Seconds a call, of several samples that are loops of about SAMPLE_SECONDS, or one call that takes longer.

    Each call is given one of as many sources, which are made before the clock runs.
    """

    def sample(calls):
        given = sources(calls)
        together()
        begin = time.perf_counter()
        for source in given:
            call(source)
        return slowest((time.perf_counter() - begin) / calls)

    sample(1)
    calls = max(1, min(MOST_CALLS, int(SAMPLE_SECONDS / sample(2))))
    sample(calls)
    return [sample(calls) for _ in range(samples)]


def serve(answer, speaks=True):
    """Answers every case; what libraries print goes to standard error."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        said = answer(json.loads(line))
        if speaks:
            print(json.dumps(said), file=channel, flush=True)
