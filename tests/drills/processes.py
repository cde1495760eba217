#!/usr/bin/env python3
"""Ranks that are processes, killed or stopped: usage processes.py LAUNCH LAUNCHER STRUCK [--seed N --first N --count N --seconds N]"""
import os
import pathlib
import re
import signal
import subprocess
import tempfile
import time

from drill import Drill

# Ranks that share memory notice a death long before the timeout. Nothing else is known of a peer but that it is silent: then the timeout ends calls.
DEATH_TIMEOUT_MS, TIMEOUT_MS = 20000, 4000
PATIENCE = 80
# What ranks are told whose communicator was not made yet: there nobody knows who is missing.
NOT_ALL_CAME = "peer: tsr_mpi_job_run: not all ranks came"
ENDED = "the launcher has ended the job"


def wait_for(what, seconds):
    """Calls `what` until it returns something other than None, for a limited time."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        found = what()
        if found is not None:
            return found
        time.sleep(0.02)
    return None


def noticed(how, way):
    return how == signal.SIGKILL and way == "memory"


def alive(pid):
    try:
        return pathlib.Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except OSError:
        return False


class Job:
    """A job of ranks that make calls until one is lost."""

    def __init__(self, options, ranks, way, how, seed, directory):
        self.ranks, self.directory = ranks, pathlib.Path(directory)
        told = subprocess.run([options.launcher, "--version"], capture_output=True, text=True, check=False).stdout
        survival = "--enable-recovery" if "Open MPI" in told or "OpenRTE" in told else "-disable-auto-cleanup"
        words = [options.launch, options.launcher, str(ranks), options.struck, directory, str(DEATH_TIMEOUT_MS if noticed(how, way) else TIMEOUT_MS), way, str(seed)]
        # The launcher's own option stands before the program's name.
        words[3:3] = [survival]
        self.process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, stdin=subprocess.DEVNULL, start_new_session=True)
        self.pids = [wait_for(lambda rank=rank: self.pid(rank), PATIENCE) for rank in range(ranks)]

    def lines(self, rank):
        try:
            return (self.directory / f"rank-{rank}").read_text().splitlines()
        except OSError:
            return []

    def pid(self, rank):
        lines = self.lines(rank)
        return int(lines[0]) if lines else None

    def outcome(self, rank):
        """What a rank said once it is over, [] where the launcher has ended the job, or None."""
        ended = self.process.poll() is not None and not alive(self.pids[rank])
        lines = self.lines(rank)
        return lines if lines and lines[-1] == "over" else [] if ended else None

    def end(self):
        """Ends the launcher, and ranks that it may have left running."""
        for pid in self.pids:
            try:
                os.kill(pid or self.process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()


def strike(draws, pid, how):
    """Kills the process, or stops it for good, at a random moment; perhaps after it was stopped for a while that matters to nobody."""
    time.sleep(draws.random() * 1.5 if draws.random() < 0.7 else 0)
    if draws.random() < 0.3:
        os.kill(pid, signal.SIGSTOP)
        time.sleep(0.3)
        os.kill(pid, signal.SIGCONT)
        time.sleep(draws.random())
    os.kill(pid, how)


def wrong(job, victim, how, way):
    """What is wrong with what survivors say, or None. All name one whose death they notice. Of one that is silent they know only who waits for
    whom, so that some name it. A launcher may end the whole job, as MPICH's does where it loses a process that it was talking to: then there is
    nobody to ask."""
    names, said = 0, []
    for rank in range(job.ranks):
        if rank == victim:
            continue
        lines = wait_for(lambda rank=rank: job.outcome(rank), PATIENCE)
        if lines == []:
            return ENDED
        if lines is None:
            return f"{how.name} of rank {victim}: rank {rank} does not end; it said {job.lines(rank)[1:]}"
        named = re.search(rf"\brank {victim}\b", lines[1]) or lines[1].startswith(NOT_ALL_CAME)
        names += bool(named)
        said.append(lines[1])
        if not lines[1].startswith("peer: ") or (noticed(how, way) and not named):
            return f"{how.name} of rank {victim}: rank {rank} said {lines[1]!r}"
    return None if names else f"{how.name} of rank {victim}: nobody names it: {said}"


def main():
    drill = Drill("processes", "a process that is killed or stopped: its peers end in bounded time with a sentence that names it", 40, "launch",
                  "launcher", "struck")
    for _ in drill.cases():
        draws = drill.draws()
        ranks, way = draws.randint(2, 4), draws.choice(("memory", "messages"))
        how = draws.choice((signal.SIGKILL, signal.SIGSTOP))
        victim = draws.randrange(ranks)
        with tempfile.TemporaryDirectory() as directory:
            job = Job(drill.options, ranks, way, how, drill.index, directory)
            try:
                if None in job.pids:
                    drill.fail(f"{ranks} ranks do not start")
                    continue
                strike(draws, job.pids[victim], how)
                problem = wrong(job, victim, how, way)
                if problem == ENDED:
                    drill.no_trial()
                elif problem:
                    drill.fail(f"{ranks} ranks, {way}: {problem}")
            finally:
                job.end()
    drill.end()


main()
