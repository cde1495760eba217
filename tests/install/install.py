#!/usr/bin/env python3
"""Installs into an empty directory and builds programs there with pkg-config and with CMake.

usage: install.py MESON BUILD_ROOT SOURCE_ROOT VERSION CC [CXX]
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
    """examples/backend, built as a stranger would, as a program and as an engine and a device that the installed suite tests."""
    place, example = user.build, source / "examples" / "backend"
    engine = [example / name for name in ("connect.c", "sockets.c", "wire.c")]
    build = [*cc.split(), "-std=gnu11", "-Wall", "-Wextra", "-Werror"]
    user.run(*build, "-fPIC", "-shared", *engine, "-o", place / "libengine.so", *user.flags("tessera-core"))
    user.run(*build, example / "main.c", *engine, "-o", place / "backend", *user.flags("tessera"))
    device = [example / name for name in ("device.c", "product.c", "queue.c", "space.c")]
    user.run(*build, "-fPIC", "-shared", "-pthread", *device, "-o", place / "libqueue.so", *user.flags("tessera-core"))
    suite = find(destination, "tessera-conformance")
    if suite:
        user.run(suite, place / "libengine.so", "split")
        user.run("env", "TSR_TEST_THIN=1", suite, place / "libqueue.so")
    return user.run(place / "backend", "2")


def runtime(user, source, cc):
    """examples/runtime, built as a stranger would, from libtessera-core alone: one process plans, another executes."""
    example, program, plans = source / "examples" / "runtime", user.build / "runtime", user.build / "program.plans"
    files = [example / f"{name}.c" for name in ("buffers", "main", "memory", "plans", "pool", "ranks", "session", "team")]
    user.run(*cc.split(), "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-pthread", *files, "-o", program, *user.flags("tessera-core"))
    user.run(program, "plan", plans)
    return user.run(program, "run", plans)


def custom_op(user, source, cc):
    """examples/custom_op, built as a stranger would."""
    example = source / "examples" / "custom_op"
    program = user.build / "custom_op"
    user.run(*cc.split(), "-std=gnu11", "-Wall", "-Wextra", "-Werror", example / "main.c", example / "rows.c", "-o", program,
             *user.flags("tessera"), "-lm")
    return user.run(program)


RUNNER = HERE.parent / "mpi" / "runner.c"
LAUNCHERS = {"ompi": ("mpirun.openmpi", "mpirun"), "mpich": ("mpirun.mpich", "mpiexec.hydra")}


def launched(user, cc):
    """A program of libtessera-core that knows where this is, by its run path: what it prints by itself, and under each launcher whose
    library is installed. The library is found although the loader does not look there."""
    program = user.build / "runner"
    user.run(*cc.split(), "-std=gnu11", RUNNER, "-o", program, f"-Wl,-rpath,{user.library}", *user.flags("tessera-core"))
    for library in [name for name in user.environment if name.startswith(("LD_LIBRARY", "OMPI_", "PMI", "SLURM_"))]:
        del user.environment[library]
    yield "by itself", user.run("env", "TSR_RANKS=2", program, "sum")
    for name, launchers in LAUNCHERS.items():
        launcher = next(filter(None, map(shutil.which, launchers)), None)
        if launcher and find(user.destination, f"libtessera-mpi-{name}.so"):
            yield name, user.run(HERE.parent / "mpi" / "launch", launcher, "2", program, "sum")


def wrongly_launched(user, cc):
    try:
        for start, output in launched(user, cc):
            expected = f"2 ranks of {'threads' if start == 'by itself' else 'mpi'}, whose numbers add up to 1\n"
            if output != expected:
                yield f"{start}: printed {output!r}, not {expected!r}"
    except RuntimeError as error:
        yield error


def wrongly_archived(static, shared, cc):
    """A program with the archive has rank threads, and is refused where it was launched, for it would get a second libtessera-core."""
    program = static.build / "archived"
    static.run(*cc.split(), "-std=gnu11", RUNNER, "-o", program, *static.flags("--static", "tessera-core"))
    output = static.run("env", "TSR_RANKS=3", program, "sum")
    if output != "3 ranks of threads, whose numbers add up to 3\n":
        yield f"printed {output!r}"
    if find(shared.destination, "libtessera-mpi-ompi.so"):
        environment = dict(os.environ, LD_LIBRARY_PATH=str(shared.library), OMPI_COMM_WORLD_SIZE="2", OMPI_COMM_WORLD_RANK="0")
        done = subprocess.run([program, "sum"], capture_output=True, text=True, env=environment)
        if done.returncode == 0 or "a libtessera-core of its own" not in done.stderr:
            yield f"exit {done.returncode}: {done.stderr}"


def page(source):
    """The program of docs/cpp.md with the files that build it, and what it prints."""
    text = (source / "docs" / "cpp.md").read_text()
    program, output = re.search(r"^```cpp\n(.*?)^```\n\n```output\n(.*?)^```", text, re.M | re.S).groups()
    return program, re.search(r"^```cmake\n(.*?)^```", text, re.M | re.S).group(1), output


class CMake:
    """A user with CMake, who knows the prefix alone."""

    def __init__(self, prefix, place):
        self.prefix, self.place = prefix, place
        self.environment = {name: value for name, value in os.environ.items() if name not in ("LD_LIBRARY_PATH", "PKG_CONFIG_PATH")}
        self.package = find(prefix, "tesseraConfig.cmake").parent

    def run(self, *command):
        done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=self.environment)
        if done.returncode:
            raise RuntimeError(f"{' '.join(map(str, command))}\nexit {done.returncode}\n{done.stdout}{done.stderr}")
        return done.stdout

    def configure(self, project, *options):
        """What `cmake` says of a project; it is built in a directory of its own."""
        build = self.place / "build"
        shutil.rmtree(build, ignore_errors=True)
        return self.run("cmake", "-S", project, "-B", build, f"-DCMAKE_PREFIX_PATH={self.prefix}", *options)

    def output(self, project, *options):
        self.configure(project, *options)
        self.run("cmake", "--build", self.place / "build")
        return self.run(self.place / "build" / "program")

    def ask(self, call):
        """What find_package(`call`) finds, without compilers, in a project that prints it."""
        project = self.place / "ask"
        project.mkdir(exist_ok=True)
        (project / "CMakeLists.txt").write_text(ASK.format(call=call))
        said = self.configure(project, f"-Dtessera_DIR={self.package}")
        return re.search(r"^-- (found.*|not found.*)$", said, re.M).group(1)


ASK = """cmake_minimum_required(VERSION 3.13)
project(ask LANGUAGES NONE)
find_package({call})
set(there "")
foreach(name core tessera files programs bench cuda mpi-ompi mpi-mpich mpi)
    if(TARGET tessera::${{name}})
        string(APPEND there " ${{name}}")
    endif()
endforeach()
if(tessera_FOUND)
    message(STATUS "found ${{tessera_VERSION}}:${{there}}")
else()
    message(STATUS "not found: ${{tessera_NOT_FOUND_MESSAGE}} ${{tessera_CONSIDERED_VERSIONS}}")
endif()
"""


def targets(prefix):
    """The targets that the package has: one for each library."""
    names = {"core": "tessera-core", "tessera": "tessera", "files": "tessera-files", "programs": "tessera-programs", "bench": "tessera-bench", "cuda": "tessera-cuda", "mpi-ompi": "tessera-mpi-ompi",
             "mpi-mpich": "tessera-mpi-mpich"}
    there = [name for name, library in names.items() if find(prefix, f"lib{library}.so")]
    return " ".join(there + ["mpi"] * any(name.startswith("mpi-") for name in there))


def absolute(user):
    """Lines of the package that name the place in which it was built or installed."""
    return (f"{path.name}: {line}" for path in user.package.iterdir() for line in path.read_text().split("\n")
            if re.search(r"[\"; ]/(usr|opt|home|tmp)", line.split("#")[0]) or str(user.prefix) in line)


def cmake_package(report, prefix, place, source, version, cxx):
    """find_package(tessera): versions, components, programs; and after the prefix has moved."""
    if not shutil.which("cmake"):
        report.skip("find_package(tessera) works", "there is no cmake")
        return
    user = CMake(prefix, place)
    found = f"found {version}: {targets(prefix)}"
    report.check("the CMake package has a target for each library", attempt(found, lambda: user.ask("tessera")))
    short = ".".join(version.split(".")[:2])
    for asked, answer in {short: found, f"{version} EXACT": found, f"{short} COMPONENTS core": found, f"{short}...99": found,
                          "99": f"not found:  {version}", f"{version}.1": f"not found:  {version}", f"0.0.0...<{version}": f"not found:  {version}"}.items():
        report.check(f"find_package(tessera {asked}) says: {answer}", attempt(answer, lambda: user.ask(f"tessera {asked} QUIET")))
    report.check("a component that is not there is named",
                 attempt(f"not found: There is no library for the component nothing in {user.package.parent.parent}. {version}",
                         lambda: user.ask("tessera QUIET COMPONENTS core nothing")))
    report.check("the CMake package has no absolute paths", absolute(user))

    project = place / "project"
    project.mkdir()
    program, lists, expected = page(source)
    if cxx:
        (project / "mlp.cpp").write_text(program)
        (project / "CMakeLists.txt").write_text(lists.replace("add_executable(mlp ", "add_executable(program ").replace("(mlp PRIVATE", "(program PRIVATE"))
        report.check("the CMake project of docs/cpp.md builds and runs", attempt(expected, lambda: user.output(project)))
    else:
        report.skip("the CMake project of docs/cpp.md builds and runs", "there is no C++ compiler")
    moved = place / "moved" / "elsewhere"
    moved.parent.mkdir()
    prefix.rename(moved)
    user = CMake(moved, place)
    expected = f"tessera {version}\n"
    report.check("a C program builds after the prefix has moved", attempt(expected, lambda: user.output(HERE / "cmake", "-DLIBRARY=tessera::core")))
    report.check("a C program builds with the archives", attempt(expected, lambda: user.output(
        HERE / "cmake", "-DLIBRARY=tessera::tessera", "-Dtessera_USE_STATIC_LIBS=ON")))
    if "files" in targets(moved).split():
        said = f"a safetensors file, tessera {version}: 4x4 f32\n"
        for static in ("OFF", "ON"):
            report.check(f"a C program builds with tessera::files, archives {static}", attempt(said, lambda: user.output(
                HERE / "cmake", "-DPROGRAM=files.c", "-DLIBRARY=tessera::files", f"-Dtessera_USE_STATIC_LIBS={static}")))
    if "programs" in targets(moved).split():
        said = f"a program of 1 step, tessera {version}\n"
        for static in ("OFF", "ON"):
            report.check(f"a C program builds with tessera::programs, archives {static}", attempt(said, lambda: user.output(
                HERE / "cmake", "-DPROGRAM=programs.c", "-DLIBRARY=tessera::programs", f"-Dtessera_USE_STATIC_LIBS={static}")))
    if "mpi" in targets(moved).split():
        report.check("a C program builds with tessera::mpi", attempt(expected, lambda: user.output(
            HERE / "cmake", "-DLIBRARY=tessera::core;tessera::mpi")))
    moved.rename(prefix)


def alone(*command):
    """What a program prints that finds its libraries by itself."""
    environment = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run([str(word) for word in command], capture_output=True, text=True, env=environment)
    return done.stdout if not done.returncode else f"exit {done.returncode}\n{done.stdout}{done.stderr}"


def own_libraries(report, prefix, version):
    """Installed programs find their libraries, wherever the prefix is."""
    report.check("the installed tool finds its libraries", attempt(f"tessera {version}\n", lambda: alone(find(prefix, "bin") / "tessera", "--version")))
    moved = prefix.parent / "tool-elsewhere"
    prefix.rename(moved)
    report.check("the installed tool finds its libraries after the prefix has moved",
                 attempt(f"tessera {version}\n", lambda: alone(find(moved, "bin") / "tessera", "--version")))
    # `info` opens the libraries of engines and devices, and says why one cannot be opened.
    report.check("the installed tool opens the libraries of engines",
                 re.findall(r"^.*libtessera-.*$|^exit.*", alone(find(moved, "bin") / "tessera", "info"), re.M))
    moved.rename(prefix)
    suite = find(prefix, "tessera-conformance")
    if suite:
        report.check("the installed conformance suite finds its libraries", [said for said in [alone(suite, "threads", "split")] if said.startswith("exit")])


def installed_files(report, destination, source, build):
    include, installed = source / "include", find(destination, "include")
    report.check("headers are there, all of them",
                 (header.name for header in tree.headers(source) if not (installed / header.relative_to(include)).is_file()))
    wanted = ["libtessera-core.so", "libtessera.so", "libtessera-core.a", "libtessera.a", "tessera-core.pc", "tessera.pc",
              "libtessera-bench.so", "libtessera-bench.a", "tessera-bench.pc",
              "cmake/tessera/tesseraConfig.cmake", "cmake/tessera/tesseraConfigVersion.cmake", "include/tessera/tessera.hpp",
              "libtessera-files.so", "libtessera-files.a", "tessera-files.pc",
              "libtessera-programs.so", "libtessera-programs.a", "tessera-programs.pc",
              "bin/tessera", "man1/tessera.1", "bash-completion/completions/tessera"]
    if (build / "src" / "libtessera-cuda.so").exists():
        wanted += ["libtessera-cuda.so", "tessera-cuda.pc"]
    if (build / "tests" / "conformance" / "tessera-conformance").exists():
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
        report.check("a communicator and a device outside the library build with pkg-config, run, and pass the installed suite",
                     attempt("2 ranks, the last row: 32 122 212 302 392 482 572 662\n",
                             lambda: backend(user, destination, pathlib.Path(source_root), cc)))
        report.check("a runtime that embeds the library builds with pkg-config and runs",
                     attempt("14 executions of 3 moves on 4 ranks, 2 at once\na rank met the others 6 times in each\n"
                             "Tessera called the allocator 0 times\nevery element is right\n", lambda: runtime(user, pathlib.Path(source_root), cc)))
        report.check("ops outside the library build with pkg-config and run",
                     attempt("relu_squared(x) is S(1)\nits gradient is S(1)\nunit(x) is S(1)\n" + " ".join(["0.141421 0.424264"] * 5) + "\n",
                             lambda: custom_op(user, pathlib.Path(source_root), cc)))
        report.check("a program of tsr_run() finds the MPI of each launcher beside libtessera-core", wrongly_launched(Outside(destination, place), cc))
        report.check("a harness builds with tessera-bench and libtessera-core alone, and runs",
                     attempt("0 wrong in 3 iterations\n", lambda: user.output(cc, "-std=c99", HERE / "harness.c", "tessera-bench")))
        fact = "a C++ program builds with pkg-config and runs"
        if cxx:
            report.check(fact, attempt(f"tessera {version} S(1)\n", lambda: user.output(cxx, "-std=c++11", HERE / "user.cc", "tessera")))
        else:
            report.skip(fact, "there is no C++ compiler")

        files = f"a safetensors file, tessera {version}: 4x4 f32\n"
        report.check("a program with files builds with pkg-config and runs",
                     attempt(files, lambda: user.output(cc, "-std=c99", HERE / "files.c", "tessera-files")))
        programs = f"a program of 1 step, tessera {version}\n"
        report.check("a program that reads programs builds with pkg-config and runs",
                     attempt(programs, lambda: user.output(cc, "-std=c99", HERE / "programs.c", "tessera-programs")))
        prefix = find(destination, "include").parent
        own_libraries(report, prefix, version)
        cmake_package(report, prefix, place, pathlib.Path(source_root), version, cxx)

        archives_only(destination, place / "archives")
        static = Outside(place / "archives", place)
        report.check("a program with files builds with the static libraries and runs",
                     attempt(files, lambda: static.output(cc, "-std=c99", HERE / "files.c", "--static", "tessera-files")))
        report.check("a program that reads programs builds with the static libraries and runs",
                     attempt(programs, lambda: static.output(cc, "-std=c99", HERE / "programs.c", "--static", "tessera-programs")))
        report.check("a C program builds with the static libraries and runs",
                     attempt(expected, lambda: static.output(cc, "-std=c99", HERE / "user.c", "--static", "tessera")))
        report.check("a program of tsr_run() with the static library has rank threads alone", wrongly_archived(static, user, cc))
        report.check("so does a harness", attempt("0 wrong in 3 iterations\n",
                                                  lambda: static.output(cc, "-std=c99", HERE / "harness.c", "--static", "tessera-bench")))
    report.finish()


main(*sys.argv[1:])
