# Functions that the scripts share; sourced from the root of the tree. Functions with variables run in a subshell.

say() {
    printf '\n== %s\n' "$*"
}

# The packages and programs that meson.build looks for; tests/bench_scripts compares these lists with it.
packages_looked_for='openblas scipy-openblas mkl-sdl jansson cmocka ompi-c mpich'
programs_looked_for='c++ clang++ python3 doxygen mpirun.openmpi mpirun mpirun.mpich mpiexec.hydra valgrind localedef nvcc /usr/local/cuda/bin/nvcc bin2c
    /usr/local/cuda/bin/bin2c'

# surroundings: prints what a configuration depends on besides its options, a line each that begins with a name.
surroundings() {
    printf 'meson %s\n' "$(meson --version)"
    printf 'cc %s %s\n' "${CC:-cc}" "$(${CC:-cc} --version 2> /dev/null | head -n 1)"
    printf 'flags %s\n' "${CFLAGS-} ${LDFLAGS-} ${PKG_CONFIG_PATH-}"
    for name in $packages_looked_for; do
        printf '%s %s\n' "$name" "$(pkg-config --modversion "$name" 2> /dev/null)"
    done
    for name in $programs_looked_for; do
        printf '%s %s\n' "$name" "$(command -v "$name")"
    done
    printf 'cuda %s\n' "$(nvcc --version 2> /dev/null | tail -n 1)"
}

# changed_since FILE: prints the names of surroundings that differ from those in FILE.
changed_since() {
    if [ -f "$1" ]; then
        surroundings | grep -vxF -f "$1" | cut -d ' ' -f 1 | tr '\n' ' '
    else
        echo "all that it depends on "
    fi
}

# reconfigure DIRECTORY OPTION..: configures a build directory again if its surroundings changed, and prints which. Options that are not
# given stay. For another compiler, flags or Meson the directory is made anew; else Meson looks again for packages that it cached.
reconfigure() (
    directory=$1
    shift
    changed=$(changed_since "$directory/surroundings.txt")
    [ -n "$changed" ] || return 0
    echo "configuring $directory again, for what is installed now: ${changed% }" >&2
    case " $changed" in
    *" meson "* | *" cc "* | *" flags "*) meson setup --wipe "$directory" "$@" || return 1 ;;
    *) meson configure "$directory" --clearcache && meson setup --reconfigure "$directory" "$@" || return 1 ;;
    esac
    surroundings > "$directory/surroundings.txt"
)

# configure DIRECTORY OPTION..: makes a build directory; later calls configure it again only if the options or the surroundings changed.
configure() (
    directory=$1
    shift
    if [ ! -f "$directory/build.ninja" ]; then
        meson setup "$directory" "$@" || return 1
        surroundings > "$directory/surroundings.txt"
    else
        had=$(cat "$directory/options.txt" 2> /dev/null || true)
        reconfigure "$directory" "$@" || return 1
        # Unlike `meson configure`, this knows options that came after the directory was made.
        [ "$had" = "$*" ] || meson setup --reconfigure "$directory" "$@" || return 1
    fi
    printf '%s\n' "$*" > "$directory/options.txt"
)

# prepare_hosts: fetches and builds the other runtimes that the release build is tested in, into build-hosts.
prepare_hosts() {
    scripts/packages hosts && tests/hosts/xla/prepare && tests/hosts/ggml/prepare && tests/hosts/tvm/prepare
}

# host_options: prints the options that build Tessera for the runtimes that are there.
host_options() {
    [ ! -f build-hosts/xla/include/xla_cpu_pjrt.so ] || echo -Dxla=build-hosts/xla/include
    [ ! -f build-hosts/ggml/built ] || echo -Dggml=build-hosts/ggml
    [ ! -f build-hosts/tvm/ffi/version ] || echo -Dtvm=build-hosts/tvm/ffi
}

# configure_for SUITE: configures the directory build-SUITE for tests: release, asan (address and undefined), tsan (thread) or fuzz.
configure_for() {
    case $1 in
    # shellcheck disable=SC2046
    release) configure build-release -Dbuildtype=release -Dtests=enabled -Dwerror="$(werror)" $(host_options) ;;
    # CUDA is built only without sanitizers, which do not see code on a device.
    asan) sanitized build-asan -Db_sanitize=address,undefined ;;
    # No MPI with ThreadSanitizer: it reports the MPI's own threads, and cannot suppress libraries opened at run time.
    tsan) sanitized build-tsan -Db_sanitize=thread -Dmpi=disabled ;;
    # clang's UBSan, unlike gcc's, finds offsets from NULL, even of 0.
    fuzz) CC=clang sanitized build-fuzz -Db_sanitize=address,undefined -Dfuzz=true ;;
    esac
}

# Lines of the source in reports need no more than -g1, which compiles faster than -g. Fuzzers run for a given time, and are compiled for less.
sanitized() (
    lines=-g1
    [ "$1" != build-fuzz ] || lines='-O1 -g1'
    configure "$@" -Dbuildtype=debugoptimized -Dtests=enabled -Dcuda=disabled -Db_lundef=false -Dwerror=false \
        -Dc_args="$lines ${CFLAGS-}" -Dcpp_args="$lines ${CXXFLAGS-}"
)

# programs_of DIRECTORY SUITE..: prints the programs that Meson's suites of a build run, as targets of ninja; -SUITE leaves out the tests
# of a suite, and takes all others if no suite is named.
programs_of() (
    directory=$1
    shift
    python3 - "$directory" "$@" << 'END'
import json
import pathlib
import sys

build = pathlib.Path(sys.argv[1]).resolve()
told = {name: json.loads((build / "meson-info" / f"intro-{name}.json").read_text()) for name in ("tests", "targets")}
files = {target["id"]: target["filename"] for target in told["targets"]}
unwanted = {word[1:] for word in sys.argv[2:] if word.startswith("-")}
wanted = {word for word in sys.argv[2:] if not word.startswith("-")}
suites = [({suite.split(":")[-1] for suite in test["suite"]}, test["depends"]) for test in told["tests"]]
programs = {name for named, depends in suites if not named & unwanted and (named & wanted or not wanted)
            for target in depends for name in files[target]}
print(*sorted(str(pathlib.Path(name).relative_to(build)) for name in programs))
END
)

# build_tool DIRECTORY: builds the tool and the Llama, for release; an existing directory keeps its options.
build_tool() (
    mkdir -p "$1"
    if [ -f "$1/build.ninja" ]; then
        reconfigure "$1" > "$1.log"
    else
        configure "$1" -Dbuildtype=release > "$1.log"
    fi || { cat "$1.log"; return 1; }
    rm "$1.log"
    ninja -C "$1" tools/tessera examples/llama/tessera-llama > "$1/build.log" || { cat "$1/build.log"; return 1; }
)

# Prints true, to make warnings errors, if CI is set; never for users, whose newer compiler must not break the build.
werror() {
    [ -n "${CI:-}" ] && echo true || echo false
}

# The OpenBLAS of PyPI that this tree was tested with.
newer_blas='scipy-openblas32==0.3.34.481.3'

# warns_of_blas DIRECTORY: true if the BLAS of the build's layers lacks kernels for this processor.
warns_of_blas() {
    "$1/tools/tessera" info --json | python3 -c 'import json, sys
sys.exit(not any(row["warning"] for row in json.load(sys.stdin)["providers"][:1]))'
}

# install_newer_blas VENV: installs an OpenBLAS and its pkg-config file in a virtual environment of its own.
install_newer_blas() {
    python3 -c 'import ensurepip' 2> /dev/null || scripts/packages blas || return 1
    python3 -m venv "$1" && "$1/bin/pip" install --quiet "$newer_blas" || return 1
    "$1/bin/python" -c 'import scipy_openblas32 as blas; print(blas.get_pkg_config())' > "$1/scipy-openblas.pc"
}

# fit_blas DIRECTORY TARGET..: if the BLAS of a build lacks kernels for this processor, as Debian's OpenBLAS does for newer ones, installs
# a newer BLAS from PyPI into the build directory, and builds the targets again. If that fails the build stays as it is. Prints what it
# does. Builds that users install never need PyPI.
fit_blas() (
    fitted=$(cd "$1" && pwd)
    shift
    if [ -f "$fitted/blas/scipy-openblas.pc" ] || ! warns_of_blas "$fitted"; then
        return 0
    fi
    say "a BLAS that knows this processor ($newer_blas, into $fitted/blas)"
    if ! install_newer_blas "$fitted/blas"; then
        echo "it cannot be had; products are slower than this processor: $fitted/tools/tessera info says by how much"
        return 0
    fi
    meson configure "$fitted" -Dblas=scipy-openblas -Dpkg_config_path="$fitted/blas"
    ninja -C "$fitted" "$@" > "$fitted/build.log" || { cat "$fitted/build.log"; return 1; }
    tail -n 1 "$fitted/build.log"
)
