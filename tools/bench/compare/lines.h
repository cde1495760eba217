/** Files of the lines that benchmarks print with --json. Functions that return int return the
 * tool's exit status, having complained if it is not 0. */
#ifndef TESSERA_TOOLS_BENCH_COMPARE_LINES_H
#define TESSERA_TOOLS_BENCH_COMPARE_LINES_H

#include "bench/run/bench.h"

/** A line with seconds. */
typedef struct bench_line {
    json_t *fields; /**< the fields that are not measured */
    char *identity; /**< `fields` as text, set by bench_lines_identify(): equal for lines of the same measurement */
    char *key;      /**< `fields` as text for people: "bench=plan dtype=f32 .." */
    spread seconds;
    size_t next; /**< index of the next line with this identity; `count` if there is none */
    bool wrong;  /**< some of its results are wrong */
    bool taken;  /**< bench_lines_take() returned it */
} bench_line;

typedef struct bench_lines {
    bench_line *at;
    size_t count, capacity;
    size_t untimed; /**< number of lines without seconds, which are left out */
    json_t *first;  /**< by identity, the index of the first line that is not taken, or `count`; set by
                       bench_lines_identify() */
} bench_lines;

/** Reads a file of less than 64 MiB with a JSON object on each line, which has a field "bench".
 * `out` begins zeroed; the caller calls bench_lines_finish() in any case. */
int bench_lines_read(const char *path, bench_lines *out);
void bench_lines_finish(bench_lines *lines);

/** Sets the identities of the lines of two files. Fields that no line of the same "bench" has in
 * the other file are left out: an older version does not know them. */
int bench_lines_identify(bench_lines *a, bench_lines *b);

/** Takes the first line with this identity that is not taken; NULL if there is none. */
bench_line *bench_lines_take(bench_lines *lines, const char *identity);

#endif
