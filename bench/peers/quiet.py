"""Measures what other processes use of the cores while a case is measured, and waits until they use
little."""
import os
import resource
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")
DISTURBED = 0.1  # share of the cores above which a figure is disturbed
# Uncertainty of busy_seconds(). The kernel reports idle time and time waiting for a disk in whole
# ticks, so a difference of two readings is off by less than a tick of each (by more on kernels
# without CONFIG_NO_HZ). The time of our processes is exact to microseconds.
UNSURE = 2 * TICK
# Seconds in which UNSURE is at most a quarter of DISTURBED.
SHORTEST = UNSURE / (DISTURBED / 4 * os.cpu_count())


def busy_seconds(now):
    """Seconds in which cores were not idle, of all cores and processes, including time that a
    hypervisor took; from an unknown beginning, so that only differences count."""
    with open("/proc/stat") as lines:
        idle, waiting = map(int, lines.readline().split()[4:6])
    return os.cpu_count() * now - (idle + waiting) * TICK


def process_seconds(pid):
    """Processor seconds of a process, by its clock (clock_getcpuclockid(3)); 0 if it has ended,
    since RUSAGE_CHILDREN then counts it."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def own_seconds(pids):
    """Processor seconds of this process, its ended children, and the running peers."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + sum(map(process_seconds, pids()))


def disturbed(others):
    return others is not None and others > DISTURBED


def rank(answer):
    """Sort key of answers, the best least: figures before refusals, then the least disturbed."""
    return "refused" in answer, answer["others"] or 0.0


class Quiet:
    """Waits while other processes are busy, and asks again for a disturbed figure, for at most
    `patience` seconds in all."""

    def __init__(self, patience, pids):
        self.patience, self.pids, self.others = patience, pids, None
        self.marks = [self.mark()]

    def mark(self):
        """(now, core seconds of other processes until now)"""
        now = time.monotonic()
        return now, busy_seconds(now) - own_seconds(self.pids)

    def share_until(self, now, used):
        """The share of the cores that other processes used since the last mark at least SHORTEST
        ago; None if there is no mark that old."""
        before = [mark for mark in self.marks if now - mark[0] >= SHORTEST]
        if not before:
            return None
        self.marks = self.marks[len(before) - 1:]
        began, used_before = before[-1]
        return min(1.0, max(0.0, used - used_before) / (os.cpu_count() * (now - began)))

    def watch(self, ask):
        """(answer, share of the cores that other processes used meanwhile). If asking took less
        than SHORTEST the share includes some time before."""
        self.marks.append(self.mark())
        answer = ask()
        return answer, self.share_until(*self.mark())

    def wait(self):
        """Waits until other processes use little for half a second, or patience ends."""
        while disturbed(self.others) and self.patience > 0:
            _, self.others = self.watch(lambda: time.sleep(max(0.5, SHORTEST)))
            self.patience -= 0.5

    def ask(self, ask):
        """The least disturbed answer, with "others" (their share of the cores), "began", "ended",
        and "asked" (how often)."""
        best, asked = None, 0
        while best is None or (disturbed(self.others) and self.patience > 0):
            self.wait()
            began = time.time()
            answer, self.others = self.watch(ask)
            asked += 1
            told = {**answer, "others": self.others, "began": began, "ended": time.time()}
            best = told if best is None else min(best, told, key=rank)
            if disturbed(self.others):
                self.patience -= time.time() - began
        return {**best, "asked": asked}
