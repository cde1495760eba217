# What the scripts share. Sourced by them, from the root of the tree. Functions that have variables run in a shell of their own.

say() {
    printf '\n== %s\n' "$*"
}

# What meson.build looks for by pkg-config and by name: tests/bench_scripts holds this against it.
packages_looked_for='openblas scipy-openblas mkl-sdl jansson cmocka ompi-c mpich'
programs_looked_for='c++ python3 doxygen mpirun.openmpi mpirun mpirun.mpich mpiexec.hydra valgrind localedef nvcc /usr/local/cuda/bin/nvcc bin2c
    /usr/local/cuda/bin/bin2c'

# surroundings: all that a configuration depends on besides its options, a line each, which begins with its name.
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

# changed_since FILE: the names of the surroundings that are not as they were when they were written to it.
changed_since() {
    if [ -f "$1" ]; then
        surroundings | grep -vxF -f "$1" | cut -d ' ' -f 1 | tr '\n' ' '
    else
        echo "all that it depends on "
    fi
}

# reconfigure DIRECTORY OPTION..: brings a build directory up to date with what is installed now, and says for what. Options that are not
# given stay. A directory of another compiler or Meson is made anew; otherwise Meson is told to look again for packages that it found.
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

# configure DIRECTORY OPTION..: makes a build directory once; later calls touch it only where the options, or what is installed, changed.
configure() (
    directory=$1
    shift
    if [ ! -f "$directory/build.ninja" ]; then
        meson setup "$directory" "$@" || return 1
        surroundings > "$directory/surroundings.txt"
    else
        had=$(cat "$directory/options.txt" 2> /dev/null || true)
        reconfigure "$directory" "$@" || return 1
        [ "$had" = "$*" ] || meson configure "$directory" "$@" || return 1
    fi
    printf '%s\n' "$*" > "$directory/options.txt"
)

# build_tool DIRECTORY: builds the tool and the Llama, for release; a directory that is there keeps its options.
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

# Warnings are errors where CI is set, never for users: a newer compiler must not break their build.
werror() {
    [ -n "${CI:-}" ] && echo true || echo false
}

# The OpenBLAS of PyPI that was tried with this tree.
newer_blas='scipy-openblas32==0.3.34.481.3'

# warns_of_blas DIRECTORY: true if the BLAS that the build's layers take has kernels for less than this processor.
warns_of_blas() {
    "$1/tools/tessera" info --json | python3 -c 'import json, sys
sys.exit(not any(row["warning"] for row in json.load(sys.stdin)["providers"][:1]))'
}

# install_newer_blas VENV: an OpenBLAS and its pkg-config file, in a directory of its own.
install_newer_blas() {
    python3 -c 'import ensurepip' 2> /dev/null || scripts/packages blas || return 1
    python3 -m venv "$1" && "$1/bin/pip" install --quiet "$newer_blas" || return 1
    "$1/bin/python" -c 'import scipy_openblas32 as blas; print(blas.get_pkg_config())' > "$1/scipy-openblas.pc"
}

# fit_blas DIRECTORY TARGET..: where the BLAS of a build does not know this processor, as Debian's OpenBLAS does not know those that are
# newer than it, the build gets a newer one from PyPI, into itself, and the targets are built again. Where none can be had it stays as it
# is. Says what it does. What is installed of this tree never needs PyPI.
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
