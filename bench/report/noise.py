"""A figure with its noise: the median of its rounds, and an interval for the true median."""
import math

DOUBT = 8  # 1 / DOUBT bounds the probability, on each side, that the true median lies outside the interval


def interval_of(medians):
    """The shortest central interval between two of the rounds' medians that contains the true
    median (that of endlessly many rounds) with a probability of at least 3/4; None if even the
    widest does not.

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
    """A number, its interval (None if unknown), and the largest share of the cores that other
    processes used meanwhile."""

    def __init__(self, value, interval=None, others=0):
        self.value, self.interval, self.others = value, interval, others

    def over(self, other):
        """The quotient, with the interval from the least to the greatest quotient of the two
        intervals. If each contains its median with probability 3/4, this one contains their ratio
        with at least 1/2, however they depend on each other."""
        both = self.interval and other.interval
        return Measured(self.value / other.value,
                        (self.interval[0] / other.interval[1], self.interval[1] / other.interval[0]) if both else None,
                        max(self.others, other.others))


def exactly(value):
    return Measured(value, (value, value))


def seconds_of(line, key="seconds"):
    """The seconds of a line of scripts/bench-peers, in the field `key`."""
    return Measured(line[key]["median"], interval_of(line[key].get("rounds", [])), line.get("others") or 0)


def bandwidth_of(line, name):
    """The "peak" or the "limit" in a line of the tool; None if it has none."""
    rounds = line.get(f"{name}_rounds", [])
    known = interval_of(rounds) if all(rounds) else None
    return Measured(line[f"{name}_bandwidth"], known, line.get("others") or 0) if line.get(f"{name}_bandwidth") else None


def greatest(several):
    """The greatest of several numbers, with the interval of the maximum."""
    known = all(one.interval for one in several)
    return Measured(max(one.value for one in several),
                    (max(one.interval[0] for one in several), max(one.interval[1] for one in several)) if known else None,
                    max(one.others for one in several))
