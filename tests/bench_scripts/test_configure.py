#!/usr/bin/env python3
"""When scripts bring a build directory up to date (configure and build_tool of scripts/common.sh), with a Meson, a pkg-config, a compiler and
a ninja that are scripted. TAP.

usage: test_configure.py SOURCE_ROOT
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(sys.argv[1]).resolve()
sys.path.insert(0, str(ROOT / "tests" / "invariants"))
import tap  # noqa: E402

# Each program records its calls. Versions are files beside them, so that a test installs a package
# by writing a file.
MESON = """#!/bin/sh
here=$(dirname "$0")
[ "$1" != --version ] || { cat "$here/meson.version"; exit; }
echo "$*" >> "$here/calls"
[ ! -f "$here/broken" ] || { echo "Dependency lookup failed"; exit 1; }
for word in "$@"; do
    case $word in
    build*) directory=$word ;;
    esac
done
case "$*" in
*--wipe*) rm -rf "$directory" ;;
esac
mkdir -p "$directory" && : > "$directory/build.ninja"
"""
PKG_CONFIG = """#!/bin/sh
cat "$(dirname "$0")/$2.pc.version"
"""
COMPILER = """#!/bin/sh
cat "$(dirname "$0")/cc.version"
"""
NINJA = """#!/bin/sh
echo "ninja $*" >> "$(dirname "$0")/calls"
"""


class Machine:
    """A machine with scripted programs, and a folder for build directories."""

    def __init__(self, folder):
        self.folder, self.bin = pathlib.Path(folder), pathlib.Path(folder) / "bin"
        self.bin.mkdir()
        for name, text in (("meson", MESON), ("pkg-config", PKG_CONFIG), ("cc", COMPILER), ("ninja", NINJA), ("nvcc", "#!/bin/sh\n")):
            self.program(name, text)
        self.version("meson", "1.0")
        self.version("cc", "cc 12")
        self.version("openblas.pc", "0.3.21")

    def program(self, name, text):
        (self.bin / name).write_text(text)
        (self.bin / name).chmod(0o755)

    def version(self, name, text):
        (self.bin / f"{name}.version").write_text(text + "\n")

    def call(self, command):
        """The calls of Meson and ninja, and the output."""
        calls = self.bin / "calls"
        calls.unlink(missing_ok=True)
        environment = {**os.environ, "PATH": f"{self.bin}:{os.environ['PATH']}"}
        for name in ("CC", "CFLAGS", "LDFLAGS", "PKG_CONFIG_PATH"):
            environment.pop(name, None)
        done = subprocess.run(["sh", "-euc", f". {ROOT}/scripts/common.sh; {command}"], cwd=self.folder, env=environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        return calls.read_text().splitlines() if calls.exists() else [], done


def check_configure(report, machine):
    def asked(fact, expected, said="", command="configure build -Da=b"):
        calls, done = machine.call(command)
        report.check(fact, [] if calls == expected and done.returncode == 0 and said in done.stdout and bool(said) == bool(done.stdout)
                     else [f"{calls}: {done}"])

    again = ["configure build --clearcache", "setup --reconfigure build -Da=b"]
    asked("a directory that is not there is set up", ["setup build -Da=b"])
    asked("where nothing changed, Meson is not asked", [])
    machine.version("ompi-c.pc", "4.1.4")
    asked("a package that is installed later is looked for, and named", again, "what is installed now: ompi-c\n")
    asked("the second time it is known", [])
    machine.version("openblas.pc", "0.3.34")
    asked("a package of another version is looked at again", again, "now: openblas\n")
    machine.program("mpirun.openmpi", "#!/bin/sh\n")
    (machine.bin / "ompi-c.pc.version").unlink()
    asked("a program that came and a package that went are named", again, "now: ompi-c mpirun.openmpi\n")
    asked("other options are told to Meson", ["setup --reconfigure build -Dc=d"], command="configure build -Dc=d")
    machine.version("cc", "cc 13")
    asked("for another compiler a directory is made anew", ["setup --wipe build -Dc=d"], "now: cc\n", command="configure build -Dc=d")
    asked("which is then known", [], command="configure build -Dc=d")
    calls, done = machine.call("directory=mine; configure build -Dc=d; build_tool build; echo $directory")
    report.check("a caller's variables stay", [] if done.stdout == "mine\n" else [f"{calls}: {done}"])
    (machine.folder / "build" / "surroundings.txt").unlink()
    asked("a directory of which nothing is known is configured again", ["configure build --clearcache", "setup --reconfigure build -Dc=d"],
          "now: all that it depends on\n", command="configure build -Dc=d")


def check_failure(report, machine):
    machine.version("mpich.pc", "4.0.2")
    (machine.bin / "broken").write_text("")
    calls, done = machine.call("configure build -Dc=d")
    report.check("what cannot be configured fails", [] if done.returncode == 1 and len(calls) == 1 else [f"{calls}: {done}"])
    calls, done = machine.call("build_tool build")
    report.check("build_tool fails with it and tells Meson's words", [] if done.returncode == 1 and "lookup failed" in done.stdout and not [
        call for call in calls if call.startswith("ninja")] else [f"{calls}: {done}"])
    (machine.bin / "broken").unlink()
    calls, done = machine.call("configure build -Dc=d")
    report.check("and is tried again at the next call", [] if done.returncode == 0 and len(calls) == 2 else [f"{calls}: {done}"])


def check_build_tool(report, machine):
    built = "ninja -C build-new tools/tessera examples/llama/tessera-llama"
    calls, done = machine.call("build_tool build-new")
    report.check("build_tool makes a release build", [] if calls == ["setup build-new -Dbuildtype=release", built] else [f"{calls}: {done}"])
    machine.call("configure build-new -Dbuildtype=debug -Dtests=enabled")
    calls, done = machine.call("build_tool build-new")
    report.check("one that is there keeps its options", [] if calls == [built] else [f"{calls}: {done}"])
    machine.version("jansson.pc", "2.14")
    calls, done = machine.call("build_tool build-new")
    report.check("and is brought up to date with what was installed since", [] if calls == [
        "configure build-new --clearcache", "setup --reconfigure build-new", built] and "now: jansson" in done.stdout else [f"{calls}: {done}"])


def looked_for(name):
    return set(re.search(rf"^{name}='([^']*)'", (ROOT / "scripts" / "common.sh").read_text(), re.M)[1].split())


def check_lists(report):
    """Meson itself finds threads and CUDA, without pkg-config; programs of the tree come with it."""
    texts = [path.read_text() for path in ROOT.glob("**/meson.build") if not path.relative_to(ROOT).parts[0].startswith("build")]
    engines = re.search(r"foreach name, found : \{(.*)\}", (ROOT / "src" / "comm" / "engines" / "mpi" / "meson.build").read_text())[1]
    names = re.findall(r"'[^']*': \['([^']*)', \[([^]]*)\]", engines)
    packages = {name for text in texts for name in re.findall(r"\bdependency\('([^']*)'", text)} - {"threads", "cuda"} | {name for name, _ in names}
    programs = {name for text in texts for words in re.findall(r"find_program\(((?:'[^']*'(?:, )?)+)", text) for name in re.findall("'([^']*)'", words)}
    programs |= {name for _, words in names for name in re.findall("'([^']*)'", words)}
    programs -= {"cc", "meson"} | {name for name in programs if name.endswith(".sh")}
    for name, expected in (("packages_looked_for", packages), ("programs_looked_for", programs)):
        report.check(f"{name} of scripts/common.sh are those of meson.build", [] if looked_for(name) == expected else [
            f"{sorted(looked_for(name))} against {sorted(expected)}"])


def main():
    report = tap.Report()
    with tempfile.TemporaryDirectory() as folder:
        machine = Machine(folder)
        check_configure(report, machine)
        check_failure(report, machine)
        check_build_tool(report, machine)
    check_lists(report)
    report.finish()


main()
