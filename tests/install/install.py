#!/usr/bin/env python3
"""Installs into an empty directory and builds programs there with pkg-config.

usage: install.py MESON BUILD_ROOT SOURCE_ROOT VERSION CC [CXX]
"""
import os
import pathlib
import shutil
import subprocess
import sys
import tempfile

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent / "invariants"))
import tap  # noqa: E402
import tree  # noqa: E402

HERE = pathlib.Path(__file__).resolve().parent


def find(prefix, name):
    return next(iter(prefix.rglob(name)), None)


class Outside:
    """A user's place: only what lies under `destination` is there, and pkg-config finds it."""

    def __init__(self, destination, build):
        self.destination, self.build = destination, build
        self.library = find(destination, "tessera-core.pc").parent.parent
        self.environment = dict(os.environ, PKG_CONFIG_PATH=str(self.library / "pkgconfig"), PKG_CONFIG_SYSROOT_DIR=str(destination),
                                LD_LIBRARY_PATH=str(self.library))

    def run(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def flags(self, *options):
        return self.run("pkg-config", "--cflags", "--libs", *options).split()

    def output(self, compiler, standard, source, *options):
        """What the program prints, or why there is none, as contradictions to its expected output."""
        program = self.build / "program"
        self.run(*compiler.split(), standard, "-Wall", "-Wextra", "-Werror", source, "-o", program, *self.flags(*options))
        return self.run(program)


def attempt(expected, function):
    try:
        output = function()
    except RuntimeError as error:
        return [error]
    return [] if output == expected else [f"printed {output!r}, not {expected!r}"]


def archives_only(destination, copy):
    """A copy of the installation without shared libraries, so that -ltessera means the archive."""
    shutil.copytree(destination, copy, symlinks=True)
    for path in list(copy.rglob("libtessera*.so*")):
        path.unlink()


def backend(user, destination, source, cc):
    """examples/backend, built as a stranger would, as a program and as an engine that the installed suite tests."""
    place, example = user.build, source / "examples" / "backend"
    engine = [example / name for name in ("connect.c", "sockets.c", "wire.c")]
    build = [*cc.split(), "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    user.run(*build, "-fPIC", "-shared", *engine, "-o", place / "libengine.so", *user.flags("tessera-core"))
    user.run(*build, example / "main.c", *engine, "-o", place / "backend", *user.flags("tessera"))
    suite = find(destination, "tessera-conformance")
    if suite:
        user.run(suite, place / "libengine.so", "split")
    return user.run(place / "backend", "2")


def installed_files(report, destination, source, build):
    include, installed = source / "include", find(destination, "include")
    report.check("headers are there, all of them",
                 (header.name for header in tree.headers(source) if not (installed / header.relative_to(include)).is_file()))
    wanted = ["libtessera-core.so", "libtessera.so", "libtessera-core.a", "libtessera.a", "tessera-core.pc", "tessera.pc",
              "libtessera-files.so", "libtessera-files.a", "tessera-files.pc",
              "bin/tessera", "man1/tessera.1", "bash-completion/completions/tessera"]
    if (build / "src" / "libtessera-cuda.so").exists():
        wanted += ["libtessera-cuda.so", "tessera-cuda.pc"]
    if (build / "tests" / "comm" / "tessera-conformance").exists():
        wanted += ["bin/tessera-conformance"]
    there = [str(path.relative_to(destination)) for path in destination.rglob("*") if path.is_file() or path.is_symlink()]
    for name in wanted:
        report.check(f"{name} is installed", [] if any(path.endswith("/" + name) for path in there) else ["not among " + " ".join(there)])
    report.check("nothing of the tests is installed", (path for path in there if "cmocka" in path or "test" in path.rsplit("/", 1)[-1]))


def main(meson, build_root, source_root, version, cc, cxx=None):
    report = tap.Report()
    with tempfile.TemporaryDirectory() as place:
        place = pathlib.Path(place)
        destination = place / "installed"
        tap.run(*meson.split(), "install", "-C", build_root, "--no-rebuild", "--quiet", "--destdir", str(destination))
        installed_files(report, destination, pathlib.Path(source_root), pathlib.Path(build_root))

        expected = f"tessera {version}\n"
        user = Outside(destination, place)
        report.check("a C program builds with pkg-config and runs", attempt(expected, lambda: user.output(cc, "-std=c99", HERE / "user.c", "tessera")))
        report.check("a program needs libtessera-core alone for all but layers",
                     attempt(expected, lambda: user.output(cc, "-std=c99", HERE / "user.c", "tessera-core")))
        report.check("a communicator outside the library builds with pkg-config, runs, and passes the installed suite",
                     attempt("2 ranks, the last row: 32 122 212 302 392 482 572 662\n",
                             lambda: backend(user, destination, pathlib.Path(source_root), cc)))
        fact = "a C++ program builds with pkg-config and runs"
        if cxx:
            report.check(fact, attempt(f"tessera {version} S(1)\n", lambda: user.output(cxx, "-std=c++11", HERE / "user.cc", "tessera")))
        else:
            report.skip(fact, "there is no C++ compiler")

        files = f"a safetensors file, tessera {version}: 4x4 f32\n"
        report.check("a program with files builds with pkg-config and runs",
                     attempt(files, lambda: user.output(cc, "-std=c99", HERE / "files.c", "tessera-files")))
        archives_only(destination, place / "archives")
        static = Outside(place / "archives", place)
        report.check("a program with files builds with the static libraries and runs",
                     attempt(files, lambda: static.output(cc, "-std=c99", HERE / "files.c", "--static", "tessera-files")))
        report.check("a C program builds with the static libraries and runs",
                     attempt(expected, lambda: static.output(cc, "-std=c99", HERE / "user.c", "--static", "tessera")))
        report.check("the installed tool says its version", attempt(expected, lambda: user.run(find(destination, "bin") / "tessera", "--version")))
    report.finish()


main(*sys.argv[1:])
