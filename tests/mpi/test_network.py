#!/usr/bin/env python3
"""Hosts made of network namespaces, so that messages cross a TCP link, which can be cut. Root and ip(8) are needed.
usage: test_network.py LAUNCHER TALKER MOVES"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import tap  # noqa: E402

launcher, talker, moves = sys.argv[1:]
report = tap.Report()
FACTS = ["moves over two hosts, 2 + 1 ranks, give the bytes that the oracle says", "ranks know how they lie on hosts, and where they lie unevenly",
         "a cut link ends in an error that names who did not come", "a rank that is killed on another host holds up nobody"]
LINK = "link0"
LATE = "lost: peer: rank 1 did not come within 3000 ms"
NAMES = [f"tsr{os.getpid()}{side}" for side in "ab"]
NET = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
ADDRESSES = [f"{NET}.1", f"{NET}.2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def make_hosts():
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", LINK, "netns", NAMES[0], "type", "veth", "peer", "name", LINK, "netns", NAMES[1])
    for name, address in zip(NAMES, ADDRESSES):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", LINK)
        ip("-n", name, "link", "set", LINK, "up")
        ip("-n", name, "link", "set", "lo", "up")
    for name in NAMES:
        await_link(name)


def await_link(name):
    """Waits until a new link carries packets."""
    for _ in range(500):
        if "state UP" in subprocess.run(["ip", "-n", name, "link", "show", LINK], capture_output=True, text=True, check=True).stdout:
            return
        time.sleep(0.02)


def drop_hosts():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def inside(name):
    """The words that run a shell command on a host, under a host name of its own."""
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec sh -c "$*"', "sh"]


def write_agent(folder):
    agent = pathlib.Path(folder) / "agent"
    cases = "".join(f"{address}) name={name} ;;\n" for name, address in zip(NAMES, ADDRESSES))
    agent.write_text(f"#!/bin/sh\nwhile case $1 in -*) ;; *) false ;; esac; do shift; done\nhost=$1\nshift\ncase $host in\n{cases}esac\n"
                     "exec ip netns exec $name unshare --uts sh -c \"hostname $name; exec sh -c \\\"\\$*\\\"\" sh \"$@\"\n")
    agent.chmod(0o755)
    return agent


def open_mpi(agent, slots):
    hosts = ",".join(f"{address}:{count}" for address, count in zip(ADDRESSES, slots))
    net = f"{NET}.0/24"
    environment = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    return environment, ["-H", hosts, "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1", "--mca", "btl", "self,vader,tcp",
                         "--mca", "btl_tcp_if_include", net, "--mca", "oob_tcp_if_include", net, "--mca", "mpi_yield_when_idle", 1]


def mpich(agent, slots):
    hosts = ",".join(f"{address}:{count}" for address, count in zip(ADDRESSES, slots))
    # UCX or libfabric carries messages, as MPICH was built. Both take hosts that share a kernel for one, so only TCP is allowed.
    environment = {"UCX_TLS": "tcp,self", "UCX_NET_DEVICES": LINK, "FI_PROVIDER": "tcp;ofi_rxm", "FI_TCP_IFACE": LINK, "UCX_LOG_LEVEL": "fatal"}
    return environment, ["-launcher", "ssh", "-launcher-exec", agent, "-iface", LINK, "-hosts", hosts, "-bind-to", "none"]


def is_open_mpi():
    version = subprocess.run([launcher, "--version"], capture_output=True, text=True).stdout
    return "Open MPI" in version or "OpenRTE" in version


def mpirun(agent, slots, *command, survive=False):
    """The words that run mpirun on the first host, with ranks on both. If asked for, the job survives the loss of a rank."""
    environment, options = (open_mpi if is_open_mpi() else mpich)(agent, slots)
    survival = ["--enable-recovery" if is_open_mpi() else "-disable-auto-cleanup"] if survive else []
    words = [launcher, *options, *survival, "-n", sum(slots), *command]
    return subprocess.Popen([*inside(NAMES[0]), " ".join(map(str, words))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env={**os.environ, **environment}, start_new_session=True)


# Seconds from the last line of a job to its end, which MPICH 4.0 does not always reach.
END_SECONDS = 5


def finish(job, timeout, last=None):
    """The job's exit status and output. A job that takes longer, or does not end soon after its `last` word, is killed; its status is -1."""
    said = []
    spoken = threading.Event()

    def listen():
        for line in job.stdout:
            said.append(line)
            if last is not None and last in line:
                spoken.set()
        spoken.set()

    listener = threading.Thread(target=listen)
    listener.start()
    until = time.monotonic() + timeout
    spoken.wait(timeout)
    try:
        status = job.wait(max(END_SECONDS, until - time.monotonic() if is_open_mpi() else 0))
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        job.wait()
        status = -1
    listener.join()
    return status, "".join(said)


def move(agent):
    """Rank 0's output decides, because it hears of every rank. On a busy machine MPICH 4.0 over UCX may never return from MPI_Finalize()."""
    status, said = finish(mpirun(agent, (2, 1), moves), 150, "  PASSED  ")
    passed = status == 0 or (not is_open_mpi() and "  PASSED  " in said and "FAILED" not in said)
    return [] if passed else [f"exit status {status}: {said[-1500:]}"]


def look(agent):
    """Rank 0's output decides."""
    wrong = []
    for slots, words in (((2, 2), "4 ranks on nodes 0 0 2 2"), ((2, 1), "3 ranks on nodes 0 0 2"), ((1, 2), "3 ranks on nodes 0 1 1")):
        status, said = finish(mpirun(agent, slots, talker, "look"), 60, words)
        if status not in ((0,) if is_open_mpi() else (0, -1)) or words not in said:
            wrong.append(f"{slots}: exit status {status}, not \"{words}\": {said[-500:]}")
    return wrong


def names_rank_1(line):
    """The call fails at the timeout. MPICH may give up the peer earlier, and then its own call fails."""
    return line.startswith(LATE) or (not is_open_mpi() and line.startswith(("lost: peer: rank 1: MPI_Isend: ", "lost: peer: rank 1: MPI_Irecv: ")))


def cut(agent):
    job = mpirun(agent, (1, 1), talker, "talk")
    said = []
    for line in job.stdout:
        said.append(line)
        if "talking" in line:
            break
    ip("-n", NAMES[1], "link", "set", LINK, "down")
    # The rank that gets the error is on the launcher's host. The launcher itself may wait for the other host for very long.
    begun, lost = time.monotonic(), ""
    os.set_blocking(job.stdout.fileno(), False)
    while not lost and time.monotonic() - begun < 60 and job.poll() is None:
        time.sleep(0.1)
        try:
            said.append(os.read(job.stdout.fileno(), 65536).decode())
        except BlockingIOError:
            continue
        lost = next((line for line in "".join(said).splitlines() if line.startswith("lost: ")), "")
    if job.poll() is None:
        os.killpg(job.pid, signal.SIGKILL)
    job.wait()
    return [] if names_rank_1(lost) else [f"not \"{LATE}\": {''.join(said)[-1500:]}"]


def kill(agent):
    """Rank 0 gets the error if the launcher lets it live. Open MPI's launcher does not always do so, even if asked to."""
    status, said = finish(mpirun(agent, (1, 1), talker, "die", 1, survive=True), 60)
    ended = is_open_mpi() and status != -1 and "lost: " not in said
    told = any(map(names_rank_1, said.splitlines()))
    return [] if "talking" in said and (told or ended) else [f"exit status {status}, not \"{LATE}\": {said[-1500:]}"]


def lacking():
    if os.geteuid() != 0:
        return "only root makes network namespaces"
    if not shutil.which("ip") or not shutil.which("unshare"):
        return "ip or unshare is not installed"
    try:
        make_hosts()
    except subprocess.CalledProcessError as error:
        return f"network namespaces cannot be made: {error.stderr.decode().strip()}"
    return None


reason = lacking()
try:
    with tempfile.TemporaryDirectory() as place:
        for fact, attempt in zip(FACTS, (move, look, cut, kill)):
            if reason:
                report.skip(fact, reason)
                continue
            report.check(fact, attempt(write_agent(place)))
            ip("-n", NAMES[1], "link", "set", LINK, "up")
finally:
    drop_hosts()
report.finish()
