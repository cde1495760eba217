# What scripts/test, scripts/demo and .ci/run share. Sourced by them, from the root of the tree.

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
