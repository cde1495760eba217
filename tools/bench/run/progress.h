/**
 * A line of progress of a long run on a terminal.
 *
 * It appears on standard error after two seconds, only if that is a terminal, and is cleared before
 * anything else is printed. One thread calls these functions.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_PROGRESS_H
#define TESSERA_TOOLS_BENCH_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool shown;          /**< the line is on the terminal now */
    bool allowed;        /**< standard error is a terminal */
    int64_t done, steps; /**< steps so far, and in all */
    double start, last;  /**< seconds of the clock: the begin of the run, and the last write of the line */
} progress;

/** Begins a run of `steps` steps. */
void progress_begin(progress *p, int64_t steps);

/** Counts a step. NULL is fine. */
void progress_step(progress *p);

/** Clears the line, before anything else is printed. NULL is fine. */
void progress_clear(progress *p);

#endif
