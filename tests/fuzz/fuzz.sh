#!/bin/sh
# Fuzzes one target for TSR_FUZZ_SECONDS (6) from its corpus; what it finds on the way goes to a directory that is thrown away. A
# failure prints the input, in hexadecimal, to be added to the corpus.
# usage: fuzz.sh TARGET CORPUS
set -eu
found=$(mktemp -d)
trap 'rm -rf "$found"' EXIT
mkdir "$found/new" "$found/bad"
if ! "$1" -max_total_time="${TSR_FUZZ_SECONDS:-6}" -timeout=10 -rss_limit_mb=2048 -max_len=4096 -print_final_stats=1 \
    -artifact_prefix="$found/bad/" "$found/new" "$2" 2> "$found/log"; then
    tail -n 60 "$found/log"
    for file in $(find "$found/bad" -type f); do
        od -An -tx1 "$file"
    done
    exit 1
fi
grep -e '^stat::number_of_executed_units' -e '^INFO: Seed' "$found/log"
