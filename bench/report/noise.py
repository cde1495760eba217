"""A figure and how far it can be trusted: the median of its rounds, with the interval that they leave to it."""
import math

DOUBT = 8  # one over the chance, on either side, that the median lies outside of its interval


def interval_of(medians):
    """Of the median that endlessly many rounds would have, from a few: the shortest central interval between two of them that holds it with
    a probability of at least 3/4, or None where all of them together do not.

    Below the k-th least of n rounds lies the true median with a probability of sum_{i < k} C(n, i) / 2^n, and as often above the k-th
    greatest, whatever the distribution: H. A. David and H. N. Nagaraja, Order Statistics, 3rd edition, section 7.1. So of 3 rounds it goes
    from the least to the greatest, of 9 from the third to the seventh."""
    count = len(medians)
    outside, k = 0, 0
    while DOUBT * (outside + math.comb(count, k)) <= 2**count:
        outside += math.comb(count, k)
        k += 1
    ordered = sorted(medians)
    return (ordered[k - 1], ordered[-k]) if k else None


class Measured:
    """A number, its interval (None where that is not known), and the largest share of the cores that others used meanwhile."""

    def __init__(self, value, interval=None, others=0):
        self.value, self.interval, self.others = value, interval, others

    def over(self, other):
        """From the least that both allow to the most. Where each interval holds its median three times of four, this one holds their ratio
        at least every other time, however they depend on one another."""
        both = self.interval and other.interval
        return Measured(self.value / other.value,
                        (self.interval[0] / other.interval[1], self.interval[1] / other.interval[0]) if both else None,
                        max(self.others, other.others))


def exactly(value):
    return Measured(value, (value, value))


def seconds_of(line, key="seconds"):
    """Of a line of scripts/bench-peers, or of what else it has in seconds."""
    return Measured(line[key]["median"], interval_of(line[key].get("rounds", [])), line.get("others") or 0)


def bandwidth_of(line, name):
    """The "peak" or the "limit" that the tool told with a line; None where it told none."""
    rounds = line.get(f"{name}_rounds", [])
    known = interval_of(rounds) if all(rounds) else None
    return Measured(line[f"{name}_bandwidth"], known, line.get("others") or 0) if line.get(f"{name}_bandwidth") else None


def greatest(several):
    """What the greatest of several numbers is, each of which may be anywhere in its interval."""
    known = all(one.interval for one in several)
    return Measured(max(one.value for one in several),
                    (max(one.interval[0] for one in several), max(one.interval[1] for one in several)) if known else None,
                    max(one.others for one in several))
