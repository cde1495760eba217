"""What others do on the machine while something is measured, and waiting for it to pass."""
import os
import resource
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")
DISTURBED = 0.1  # share of the cores
# The kernel tells time without work, and time that waits for a disk, in whole ticks: the difference of two readings is off by less than one
# of each. (Of kernels that count ticks, without CONFIG_NO_HZ, it is off by more.) What our processes used is told in microseconds.
UNSURE = 2 * TICK
# In so many seconds that is at most a quarter of the share which counts as a disturbance.
SHORTEST = UNSURE / (DISTURBED / 4 * os.cpu_count())


def busy_seconds(now):
    """Of all cores and everybody until now, what a hypervisor took away included: all that was not idle, from an unknown beginning on."""
    with open("/proc/stat") as lines:
        idle, waiting = map(int, lines.readline().split()[4:6])
    return os.cpu_count() * now - (idle + waiting) * TICK


def process_seconds(pid):
    """By the clock that Linux has for every process (clock_getcpuclockid(3)); one that ended is among the children."""
    try:
        return time.clock_gettime(~pid << 3 | 2)
    except OSError:
        return 0.0


def own_seconds(pids):
    """This process, the children that ended, and those that serve."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + sum(map(process_seconds, pids()))


def disturbed(others):
    return others is not None and others > DISTURBED


def rank(answer):
    """The least is the best: a figure before a refusal, then what was disturbed least."""
    return "refused" in answer, answer["others"] or 0.0


class Quiet:
    """Waits for others to pass, and asks again where they took part of the cores meanwhile, as long as its patience lasts: so many seconds
    in all."""

    def __init__(self, patience, pids):
        self.patience, self.pids, self.others = patience, pids, None
        self.marks = [self.mark()]

    def mark(self):
        """(now, seconds of the cores that others used until now)"""
        now = time.monotonic()
        return now, busy_seconds(now) - own_seconds(self.pids)

    def share_until(self, now, used):
        """Of the cores that others used since the last mark that is long enough ago; None where there is none yet."""
        before = [mark for mark in self.marks if now - mark[0] >= SHORTEST]
        if not before:
            return None
        self.marks = self.marks[len(before) - 1:]
        began, used_before = before[-1]
        return min(1.0, max(0.0, used - used_before) / (os.cpu_count() * (now - began)))

    def watch(self, ask):
        """(what is answered, share of the cores that others used meanwhile, and just before where that was too short to be told)"""
        self.marks.append(self.mark())
        answer = ask()
        return answer, self.share_until(*self.mark())

    def wait(self):
        """For half a second in which others do little."""
        while disturbed(self.others) and self.patience > 0:
            _, self.others = self.watch(lambda: time.sleep(max(0.5, SHORTEST)))
            self.patience -= 0.5

    def ask(self, ask):
        """The least disturbed figure, with the share of the cores that "others" used, when it "began" and "ended", how often it was
        "asked"."""
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
