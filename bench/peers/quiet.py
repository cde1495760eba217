"""What others do on the machine while something is measured, and waiting for it to pass."""
import os
import resource
import time

TICK = 1 / os.sysconf("SC_CLK_TCK")
DISTURBED = 0.1  # share of the cores
UNSURE = 4 * TICK  # what the kernel's books are off by


def busy_seconds():
    """Of all cores and everybody, what a hypervisor took away included."""
    with open("/proc/stat") as lines:
        user, nice, system, _, _, *rest = map(int, lines.readline().split()[1:9])
    return (user + nice + system + sum(rest)) * TICK


def process_seconds(pid):
    try:
        with open(f"/proc/{pid}/stat") as text:
            fields = text.read().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) * TICK


def own_seconds(pids):
    """This process, the children that ended, and those that serve."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used) + sum(map(process_seconds, pids()))


class Quiet:
    """Waits for others to pass, and asks again where they took part of the cores meanwhile, as long as its patience lasts: so many seconds
    in all."""

    def __init__(self, patience, pids):
        self.patience, self.pids, self.others = patience, pids, 0.0

    def watch(self, ask):
        """(what is answered, share of the cores that others used)"""
        begin, busy, own = time.monotonic(), busy_seconds(), own_seconds(self.pids)
        answer = ask()
        taken = busy_seconds() - busy - (own_seconds(self.pids) - own)
        return answer, max(0.0, taken - UNSURE) / (os.cpu_count() * (time.monotonic() - begin))

    def wait(self):
        """For half a second in which others do little."""
        while self.others > DISTURBED and self.patience > 0:
            _, self.others = self.watch(lambda: time.sleep(0.5))
            self.patience -= 0.5

    def ask(self, ask):
        """The least disturbed answer, with the share of the cores that "others" used, when it "began" and "ended", how often it was
        "asked"."""
        best, asked = None, 0
        while best is None or (self.others > DISTURBED and self.patience > 0):
            self.wait()
            began = time.time()
            answer, self.others = self.watch(ask)
            asked += 1
            if best is None or self.others < best["others"]:
                best = {**answer, "others": self.others, "began": began, "ended": time.time()}
            if self.others > DISTURBED:
                self.patience -= time.time() - began
        return {**best, "asked": asked}
