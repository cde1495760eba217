#!/usr/bin/env python3
"""Hosts made of network namespaces, so that messages cross a TCP link, which can be cut. Open MPI, root and ip(8) are needed.
usage: test_network.py LAUNCHER TALKER MOVES"""
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).parent.parent / "invariants"))
import tap  # noqa: E402

launcher, talker, moves = sys.argv[1:]
report = tap.Report()
FACTS = ["moves over two hosts, 2 + 1 ranks, give the bytes that the oracle says", "ranks know how they lie on hosts, and where they lie unevenly",
         "a cut link ends in an error that names who did not come"]
NAMES = [f"tsr{os.getpid()}{side}" for side in "ab"]
NET = f"10.{200 + os.getpid() % 50}.{os.getpid() // 50 % 250}"
ADDRESSES = [f"{NET}.1", f"{NET}.2"]


def ip(*words):
    subprocess.run(["ip", *words], check=True, capture_output=True)


def make_hosts():
    for name in NAMES:
        ip("netns", "add", name)
    ip("link", "add", NAMES[0], "netns", NAMES[0], "type", "veth", "peer", "name", NAMES[1], "netns", NAMES[1])
    for name, address in zip(NAMES, ADDRESSES):
        ip("-n", name, "addr", "add", f"{address}/24", "dev", name)
        ip("-n", name, "link", "set", name, "up")
        ip("-n", name, "link", "set", "lo", "up")


def drop_hosts():
    for name in NAMES:
        subprocess.run(["ip", "netns", "del", name], capture_output=True)


def inside(name):
    """What runs a shell command on a host, which has a name of its own."""
    return ["ip", "netns", "exec", name, "unshare", "--uts", "sh", "-c", f'hostname {name}; exec sh -c "$*"', "sh"]


def write_agent(folder):
    agent = pathlib.Path(folder) / "agent"
    cases = "".join(f"{address}) name={name} ;;\n" for name, address in zip(NAMES, ADDRESSES))
    agent.write_text(f"#!/bin/sh\nhost=$1\nshift\ncase $host in\n{cases}esac\n"
                     "exec ip netns exec $name unshare --uts sh -c \"hostname $name; exec sh -c \\\"\\$*\\\"\" sh \"$@\"\n")
    agent.chmod(0o755)
    return agent


def mpirun(agent, slots, *command):
    """mpirun on the first host, ranks on both."""
    hosts = ",".join(f"{address}:{count}" for address, count in zip(ADDRESSES, slots))
    net = f"{NET}.0/24"
    words = [launcher, "-H", hosts, "-n", sum(slots), "--bind-to", "none", "--mca", "plm_rsh_agent", agent, "--mca", "pml", "ob1", "--mca", "btl",
             "self,vader,tcp", "--mca", "btl_tcp_if_include", net, "--mca", "oob_tcp_if_include", net, "--mca", "mpi_yield_when_idle", 1, *command]
    environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1")
    return subprocess.Popen([*inside(NAMES[0]), " ".join(map(str, words))], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                            env=environment, start_new_session=True)


def finish(job, timeout):
    """Its exit status and what it said; a job that takes longer is killed, and -1."""
    try:
        said, _ = job.communicate(timeout=timeout)
        return job.returncode, said
    except subprocess.TimeoutExpired:
        os.killpg(job.pid, signal.SIGKILL)
        return -1, job.communicate()[0]


def move(agent):
    status, said = finish(mpirun(agent, (2, 1), moves), 150)
    return [] if status == 0 else [f"exit status {status}: {said[-1500:]}"]


def look(agent):
    wrong = []
    for slots, words in (((2, 2), "4 ranks on nodes 0 0 2 2"), ((2, 1), "3 ranks on nodes 0 0 2"), ((1, 2), "3 ranks on nodes 0 1 1")):
        status, said = finish(mpirun(agent, slots, talker, "look"), 60)
        if status != 0 or words not in said:
            wrong.append(f"{slots}: exit status {status}, not \"{words}\": {said[-500:]}")
    return wrong


def cut(agent):
    job = mpirun(agent, (1, 1), talker, "talk")
    said = []
    for line in job.stdout:
        said.append(line)
        if "talking" in line:
            break
    ip("-n", NAMES[1], "link", "set", NAMES[1], "down")
    # Who is told is on the launcher's host; the launcher itself may wait for the other one for longer than anybody wants to.
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
    wanted = "lost: peer: rank 1 did not come within 3000 ms"
    return [] if lost.startswith(wanted) else [f"not \"{wanted}\": {''.join(said)[-1500:]}"]


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
        for fact, attempt in zip(FACTS, (move, look, cut)):
            if reason:
                report.skip(fact, reason)
                continue
            report.check(fact, attempt(write_agent(place)))
finally:
    drop_hosts()
report.finish()
