"""What the drills in Python share with those in C (drill.h): options, seeded draws, and the line of figures at the end."""
import argparse
import json
import math
import random
import sys
import time

TOLD_AT_MOST = 20


class Drill:
    """Case n depends on the seed and on n alone, so `--seed S --first N --count 1` repeats it."""

    def __init__(self, name, promise, cases, *arguments):
        parser = argparse.ArgumentParser(description=promise)
        for argument in arguments:
            parser.add_argument(argument)
        parser.add_argument("--seed", type=int, default=1, help="what all draws depend on (1)")
        parser.add_argument("--first", type=int, default=0, help="the number of the first case (0)")
        parser.add_argument("--count", type=int, help="how many cases to try")
        parser.add_argument("--seconds", type=float, help="try cases until so many seconds have passed")
        self.options = parser.parse_args()
        self.name, self.promise = name, promise
        self.tried = self.held = self.told = 0
        self.began = time.monotonic()
        if self.options.count is None:
            self.options.count = cases if self.options.seconds is None else sys.maxsize

    def cases(self, total=None):
        """Numbers of cases; no more than `total`, if that is all there are."""
        first, seconds = self.options.first, self.options.seconds
        last = first + self.options.count if total is None else min(first + self.options.count, total)
        self.index = first
        while self.index < last and not (seconds and time.monotonic() - self.began >= seconds):
            self.failed = self.void = False
            yield self.index
            self.tried += not self.void
            self.held += not self.failed and not self.void
            self.index += 1

    def draws(self):
        """Draws of the current case."""
        return random.Random(f"{self.options.seed} {self.index}")

    def spread(self, total):
        """The current case as one of `total`, in an order that spreads a few over all: each comes once in `total` cases."""
        step = next(step for step in range(total * 5 // 8 + 1, 2 * total + 2) if math.gcd(step, total) == 1)
        return (self.options.seed + self.index) * step % total

    def no_trial(self):
        """The current case came to nothing that the promise speaks of."""
        self.void = True

    def fail(self, what):
        self.failed = True
        self.told += 1
        if self.told <= TOLD_AT_MOST:
            print(f"drill {self.name}: seed {self.options.seed}, case {self.index}: {what}", file=sys.stderr)

    def end(self):
        print(json.dumps({"drill": self.name, "promise": self.promise, "tried": self.tried, "held": self.held, "seed": self.options.seed,
                          "seconds": round(time.monotonic() - self.began, 1)}))
        sys.exit(self.held != self.tried or self.tried == 0)
