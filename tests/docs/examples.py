#!/usr/bin/env python3
"""The examples of README.md, docs/ and examples/runtime do what they say. TAP.

usage: examples.py SOURCE_ROOT BUILD_ROOT CC [CXX]

In a Markdown file, a block fenced as

    c              is a whole program: it is compiled with warnings as errors, linked with libtessera, and run; one that includes a header
                   of libtessera-bench or libtessera-files with that library too; one that includes <mpi.h> as two processes of Open MPI,
                   where there is that; any other that calls tsr_run() on four rank threads, and then as four processes of each MPI that
                   there is
    cpp            is a whole C++17 program, likewise
    python         before output is a whole program, which Python runs; the libraries are on the loader's path. Others are peers' code
    output         directly after a program is what it must print
    console        has commands after "$ ", each followed by exactly what it prints; the tool and the examples are on the path

and any other block is text. Programs and commands run in an empty directory, one for each Markdown file, in order.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402

STANDARDS = {"c": "-std=c99", "cpp": "-std=c++17"}
BLOCK = re.compile(r"^```([\w-]*)\n(.*?)^```$", re.M | re.S)


class Place:
    """An empty directory in which one file's examples run."""

    def __init__(self, source, build, compilers, directory):
        self.source, self.build, self.compilers, self.directory = source, build, compilers, directory
        folders = [build / "tools", *(build / "examples" / name for name in ("llama", "train", "backend", "custom_op", "runtime"))]
        path = os.pathsep.join([*map(str, folders), os.environ["PATH"]])
        self.environment = dict(os.environ, PATH=path, LD_LIBRARY_PATH=str(build / "src"), MODEL=str(source / "examples/llama/shakespeare"),
                                QUEUE=str(build / "examples/backend/libtessera-example-queue.so"))

    def run(self, command, **options):
        return subprocess.run(command, cwd=self.directory, env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                              timeout=60, **options)

    def program(self, kind, text, expected):
        path = pathlib.Path(self.directory) / f"example.{kind}"
        path.write_text(text)
        libraries = ["-L", self.build / "src", "-ltessera", "-ltessera-core", "-lm"]
        if "#include <tessera/bench.h>" in text:
            libraries += ["-ltessera-bench"]
        if re.search(r"^#include <tessera/(checkpoint|npy|safetensors|new_file|parallel_rules)\.h>", text, re.M):
            libraries.insert(2, "-ltessera-files")
        if "#include <tessera/program_json.h>" in text:
            libraries.insert(2, "-ltessera-programs")
        if of_mpi(text):
            found = self.run(["pkg-config", "--cflags", "--libs", "ompi-c"]).stdout.split()
            libraries += [*(["-ltessera-mpi-ompi"] if "#include <tessera/mpi.h>" in text else []), *found]
        done = self.run([*self.compilers[kind].split(), STANDARDS[kind], "-Wall", "-Wextra", "-Werror", "-I", self.source / "include", path,
                         "-o", "example", *libraries])
        if done.returncode:
            yield f"exit {done.returncode}\n{done.stdout}"
            return
        for start in self.starts(text):
            yield from differences([*start, "./example"], self.run([*start, "./example"]), expected)

    def script(self, text, expected):
        yield from differences(["python"], self.run([sys.executable, "-c", text]), expected)

    def starts(self, text):
        """What stands before the program's name, for each way in which it is run."""
        launch = self.source / "tests/mpi/launch"
        if of_mpi(text):
            return [[launch, open_mpi_launcher(), "2"]]
        if "tsr_run(" not in text:
            return [[]]
        launchers = {"ompi": open_mpi_launcher(), "mpich": shutil.which("mpirun.mpich") or shutil.which("mpiexec.hydra")}
        return [["env", "TSR_RANKS=4"], *([launch, path, "4"] for name, path in launchers.items()
                                          if path and (self.build / f"src/libtessera-mpi-{name}.so").exists())]

    def console(self, text):
        for command, expected in re.findall(r"^\$ (.*\n(?:> .*\n)*)((?:(?!\$ ).*\n)*)", text, re.M):
            command = command.replace("\n> ", "\n").strip()
            done = self.run(command, shell=True)
            if done.stdout.rstrip() != expected.rstrip():
                yield f"$ {command}\n{done.stdout}"


def differences(command, done, expected):
    if done.returncode or (expected is not None and done.stdout != expected):
        yield f"{' '.join(map(str, command))} exit {done.returncode}\n{done.stdout}"


def open_mpi_launcher():
    return shutil.which("mpirun.openmpi") or shutil.which("mpirun")


def of_mpi(text):
    return "#include <mpi.h>" in text


def examples(path):
    """(line, kind, text, output or None) of each block that runs."""
    text = path.read_text()
    blocks = [(text.count("\n", 0, match.start()) + 1, match.group(1), match.group(2)) for match in BLOCK.finditer(text)]
    for (line, kind, body), following in zip(blocks, blocks[1:] + [(0, "", "")]):
        output = following[2] if following[1] == "output" else None
        if kind in ("c", "cpp", "console") or (kind == "python" and output is not None):
            yield line, kind, body, output


def lacks(kind, text, build, compilers):
    """What a program needs that is not here."""
    if kind == "cpp" and kind not in compilers:
        return "there is no C++ compiler"
    if of_mpi(text) and not ((build / "src/libtessera-mpi-ompi.so").exists() and open_mpi_launcher()):
        return "there is no Open MPI, or this build is without it"
    return None


def main(source, build, cc, cxx=None):
    compilers = {"c": cc, "cpp": cxx} if cxx else {"c": cc}
    source, build = pathlib.Path(source), pathlib.Path(build)
    report = tap.Report()
    for path in [source / "README.md", *sorted((source / "docs").rglob("*.md")), source / "examples" / "runtime" / "README.md"]:
        with tempfile.TemporaryDirectory() as directory:
            place = Place(source, build, compilers, directory)
            for line, kind, body, output in examples(path):
                lacking = None if kind in ("console", "python") else lacks(kind, body, build, compilers)
                if lacking:
                    report.skip(f"{path.relative_to(source)}:{line}", lacking)
                    continue
                if kind == "console":
                    problems = place.console(body)
                else:
                    problems = place.script(body, output) if kind == "python" else place.program(kind, body, output)
                report.check(f"{path.relative_to(source)}:{line}: the {kind} block does what it says", problems)
    report.check("every page that a page links to exists", broken_links(source))
    report.check("every file that the tour names exists", lost_files(source))
    report.finish()


def lost_files(source):
    """Files named alone in the tour's section of a folder are in that folder; named with a path, they are there."""
    folder = "include/tessera"
    for line in (source / "docs/tour.md").read_text().split("\n"):
        heading = re.match(r"## \d+\. `?(src/\w+)?|### `(oracle)`", line)
        folder = (heading.group(1) or heading.group(2) or "include/tessera") if heading else folder
        for name in re.findall(r"`([\w/]+\.[ch])`", line):
            if not (source / name).exists() and not list((source / folder).rglob(name)) and not (source / "include/tessera" / name).exists():
                yield f"{folder}: {name}"


def broken_links(source):
    for path in [*source.glob("*.md"), *(source / "docs").rglob("*.md")]:
        for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", BLOCK.sub("", path.read_text())):
            if "://" not in target and not (path.parent / target).exists():
                yield f"{path.relative_to(source)}: {target}"


main(*sys.argv[1:])
