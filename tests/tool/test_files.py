#!/usr/bin/env python3
"""Files that are not what they seem: pipes without writers, links under names that could be guessed, files that are cut short while they are
read. usage: test_files.py TOOL [CUT_SHORT]"""
import json
import os
import pathlib
import subprocess
import sys

import harness

tool = harness.Tool(sys.argv[1])
PLAN = ["plan", "--mesh", "4", "--shape", "8x8", "--from", "S(0)", "--to", "S(1)"]
LINE = json.dumps({"bench": "plan", "mesh": "2", "seconds": 1e-6}) + "\n"


def fifo(name):
    path = tool.folder / name
    os.mkfifo(path)
    return path


def piped(words, text):
    """The tool with a pipe as its standard input, which a shell's <( ) is too."""
    return subprocess.run([tool.path, *map(str, words)], input=text, capture_output=True, text=True, timeout=120)


def reads_a_pipe(words, text):
    done = piped(words, text)
    return harness.different("exit status and standard error", (done.returncode, done.stderr), (0, ""))


def reads_a_fifo():
    """A writer that opens the pipe late and writes in pieces."""
    path = fifo("written")
    with subprocess.Popen(["sh", "-c", f"(printf 'inside=1e-6,1e9 '; sleep 0.2; echo 'between=1e-5,1e9') > '{path}'"]):
        return harness.different("exit status", tool.run(*PLAN, "--profile", path, timeout=120).returncode, 0)


def names_a_silent_pipe():
    """A writer that is silent for a while is reported, and its data is read afterwards."""
    path = fifo("silent")
    words = [tool.path, *map(str, PLAN), "--profile", str(path)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as reader:
        with open(path, "w") as writer:
            first = reader.stderr.readline()
            writer.write("inside=1e-6,1e9 between=1e-5,1e9\n")
        wrong = harness.different("the rest", (reader.stderr.read(), reader.wait(120)), ("", 0))
    return wrong + harness.different("names it", first.startswith(f"tessera: --profile {path} is a pipe whose writer has written nothing"), True)


def plants_links():
    """A symbolic link with a name derived from the process id does not make the tool write to
    another file."""
    victim, out, source = tool.folder / "victim", tool.folder / "planted", tool.folder / "x.npy"
    victim.write_text("mine")
    out.mkdir()
    harness.write_npy(source, "<i4", (4,), range(4))
    planted = " ".join(f"ln -s '{victim}' '{out}'/.tessera-$$-rank-{rank}.npy;" for rank in range(2))
    done = subprocess.run(["sh", "-c", planted + ' exec "$@"', "sh", tool.path, "redistribute", "--mesh", "2", "--from", "R", "--to", "S(0)",
                           "--input", source, "--output", out], capture_output=True, text=True, timeout=120)
    names = sorted(path.name for path in out.iterdir() if not path.name.startswith("."))
    return (harness.different("exit status", done.returncode, 0) + harness.different("victim", victim.read_bytes(), b"mine") +
            harness.different("files", names, ["rank-0.npy", "rank-1.npy"]) +
            harness.different("links", [name for name in names if (out / name).is_symlink()], []))


def names_are_hidden():
    """No temporary file is left, and a symbolic link to a replaced file stays a link."""
    folder = tool.folder / "beside"
    folder.mkdir()
    (folder / "link.svg").symlink_to("real.svg")
    (folder / "real.svg").write_text("old")
    wrong = harness.different("exit status", tool.run(*PLAN, "--svg", folder / "link.svg").returncode, 0)
    wrong += harness.different("files", sorted(os.listdir(folder)), ["link.svg", "real.svg"])
    return wrong + harness.different("behind the link", (folder / "real.svg").read_text()[:5], "<?xml")


def unheard_plan():
    """Output that cannot be written leaves no new file, and an existing file unchanged."""
    folder = tool.folder / "unheard"
    folder.mkdir()
    (folder / "p.plan").write_text("old")
    with open("/dev/full", "w") as full:
        done = subprocess.run([tool.path, *PLAN, "--save", folder / "p.plan", "--svg", folder / "p.svg"], stdout=full, stderr=subprocess.PIPE,
                              text=True, timeout=120)
    return (harness.different("exit status and lines", (done.returncode, done.stderr.count("\n")), (1, 1)) +
            harness.different("files", os.listdir(folder), ["p.plan"]) + harness.different("plan", (folder / "p.plan").read_bytes(), b"old"))


def cut_while_read(words, path, cut_short, size):
    """The file is truncated after its header was read."""
    before = path.read_bytes()
    out = tool.folder / "cut-out"
    done = subprocess.run([tool.path, *map(str, words), "--output", out], capture_output=True, text=True, timeout=120,
                          env={**os.environ, "LD_PRELOAD": cut_short, "CUT_FILE": str(path), "CUT_BYTES": str(size)})
    path.write_bytes(before)
    wrong = harness.different("exit status, lines, files", (done.returncode, done.stderr.count("\n"), out.exists()), (1, 1, False))
    return wrong + ([] if path.name in done.stderr else [f"{path.name} is not in: {done.stderr}"])


tool.refuses(1, PLAN + ["--profile", fifo("profile")], ["profile", "pipe"])
tool.refuses(1, ["bench", "compare", fifo("old"), fifo("new")], ["old", "pipe"])
tool.refuses(1, ["redistribute", "--mesh", "2", "--from", "R", "--to", "R", "--input", fifo("input"), "--output", tool.folder / "out"], ["regular"])
tool.case("a pipe is a profile", reads_a_pipe, PLAN + ["--profile", "/dev/stdin"], "inside=1e-6,1e9 between=1e-5,1e9\n")
(tool.folder / "lines.json").write_text(LINE)
tool.case("a pipe is a file of lines", reads_a_pipe, ["bench", "compare", tool.folder / "lines.json", "/dev/stdin"], LINE)
tool.case("a named pipe is read to its end", reads_a_fifo)
tool.case("a pipe whose writer is silent is named", names_a_silent_pipe)
tool.case("links under the names of files to come are not followed", plants_links)
tool.case("a file takes the place of what is behind a link, and nothing is left beside it", names_are_hidden)
tool.case("a plan that cannot be told leaves no file", unheard_plan)
if len(sys.argv) > 2:
    cut_short = str(pathlib.Path(sys.argv[2]).resolve())
    whole, shards = tool.folder / "whole.npy", tool.folder / "shards"
    harness.write_npy(whole, "<f4", (512, 64), range(512 * 64))
    MOVE = ["redistribute", "--mesh", "4", "--from", "S(0)", "--to", "S(1)"]
    tool.run(*MOVE, "--input", whole, "--output", shards)
    harness.write_npy(tool.folder / "turned.npy", "<f4", (512, 64), range(512 * 64), fortran=True)
    for size in (10, 4096, whole.stat().st_size - 1):
        tool.case(f"an input that is cut to {size} bytes", cut_while_read, MOVE + ["--input", whole], whole, cut_short, size)
    tool.case("a Fortran-order input that is cut", cut_while_read, MOVE + ["--input", tool.folder / "turned.npy"], tool.folder / "turned.npy",
              cut_short, 4096)
    tool.case("a shard that is cut", cut_while_read, ["redistribute", "--mesh", "4", "--from", "S(1)", "--to", "R", "--input-shards", shards],
              shards / "rank-2.npy", cut_short, 4096)
tool.report.finish()
