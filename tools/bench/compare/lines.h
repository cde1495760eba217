/** Files of what benchmarks print with --json. Functions return the tool's exit status, having complained where that is not 0. */
#ifndef TESSERA_TOOLS_BENCH_COMPARE_LINES_H
#define TESSERA_TOOLS_BENCH_COMPARE_LINES_H

#include "bench/run/bench.h"

/** A line that has seconds. */
typedef struct bench_line {
    json_t *fields; /**< those that are not measured */
    char *identity; /**< the same as text, once lines were matched: equal where two lines measured the same */
    char *key;      /**< the same for people: "bench=plan dtype=f32 .." */
    spread seconds;
    size_t next; /**< the number of the next line with that identity; the number of lines if there is none */
    bool wrong;  /**< some of its results were */
    bool taken;
} bench_line;

typedef struct bench_lines {
    bench_line *at;
    size_t count, capacity;
    size_t untimed; /**< lines without seconds, which are left out */
    json_t *first;  /**< once lines were matched, by identity: the number of the first that was not taken, or that of lines */
} bench_lines;

/** Reads a file of less than 64 MiB, one JSON object on each line, of which each says its "bench". The caller calls bench_lines_finish() in
 * any case. */
int bench_lines_read(const char *path, bench_lines *out);
void bench_lines_finish(bench_lines *lines);

/** Gives lines of two files their identities: fields that no line of the same kind has in the other file, of a version that does not know
 * them, are left out. */
int bench_lines_identify(bench_lines *a, bench_lines *b);

/** The first line of that identity that was not taken yet; NULL if there is none. */
bench_line *bench_lines_take(bench_lines *lines, const char *identity);

#endif
