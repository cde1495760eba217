# What scripts/test, scripts/demo, scripts/bench-peers and .ci/run share. Sourced by them, from the root of the tree.

say() {
    printf '\n== %s\n' "$*"
}

# configure DIRECTORY OPTION..: makes a build directory once; later calls touch it only where the options changed.
configure() {
    directory=$1
    shift
    if [ ! -f "$directory/build.ninja" ]; then
        meson setup "$directory" "$@" || return 1
    elif [ "$(cat "$directory/options.txt" 2> /dev/null)" != "$*" ]; then
        meson configure "$directory" "$@" || return 1
    fi
    printf '%s\n' "$*" > "$directory/options.txt"
}

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
fit_blas() {
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
}
