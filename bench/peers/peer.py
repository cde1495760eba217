"""Functions that the peers in Python share: the tensor to move, the timing of calls, and the
protocol with the harness.

A peer reads lines from standard input, a case each, and answers each with a line: {"seconds": [..],
"wrong": 0}, or {"refused": "why"}.
"""
import json
import os
import sys
import time
import traceback

import numpy

SAMPLE_SECONDS, WARM_LOOPS, MOST_CALLS = 0.02, 4, 10000  # the first two as in timing.h


def reference(shape, ranks=None):
    """The whole tensor of reference.h or, with `ranks`, the sum of their terms."""
    value = (numpy.arange(shape[0] * shape[1], dtype=numpy.int32) % 1009 - 500).astype(numpy.float32).reshape(shape)
    return value if ranks is None else ranks * value + numpy.float32(ranks * (ranks + 1) // 2)


def term(shape, rank):
    return reference(shape) + numpy.float32(rank + 1)


def calls_in_sample(seconds):
    """The number of calls in a sample, if a call takes `seconds`."""
    return max(1, min(MOST_CALLS, int(SAMPLE_SECONDS / max(seconds, 1e-9))))


def measure(call, samples, sources=lambda calls: [None] * calls, together=lambda: None, slowest=lambda seconds: seconds):
    """Seconds of a call, for each of several samples. A sample is a loop of about SAMPLE_SECONDS,
    or one call if that takes longer. Before the samples come a first call, which may plan and
    compile, a call that tells how many fill a loop, and WARM_LOOPS loops.

    `sources(calls)` makes an argument for each call, before the clock starts. All ranks use the
    time of the slowest rank, so that they make equal numbers of calls.
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
    """A refusal with the type and the first line of an error."""
    return {"refused": f"{type(error).__name__}: {(str(error).splitlines() or [''])[0]}"}


def serve(answer, speaks=True):
    """Answers every case, on rank 0 (`speaks`) with a line on standard output; all other output
    goes to standard error, with the traceback of a failure. Another rank that fails exits, so that
    its peers fail too and the harness starts all of them anew."""
    channel = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    for line in sys.stdin:
        try:
            said = answer(json.loads(line))
        except Exception as error:  # the harness must hear of any failure
            traceback.print_exc()
            if not speaks:
                sys.exit(1)
            said = refusal(error)
        if speaks:
            print(json.dumps(said), file=channel, flush=True)
