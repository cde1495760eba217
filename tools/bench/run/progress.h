/**
 * A line on a terminal that says how far a long run is.
 *
 * It appears on standard error, after two seconds, and only where that is a terminal; it is gone before anything else is printed. One
 * thread steps.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_PROGRESS_H
#define TESSERA_TOOLS_BENCH_RUN_PROGRESS_H

#include <stdbool.h>
#include <stdint.h>

typedef struct progress {
    bool shown;   /**< the line stands there now */
    bool allowed; /**< standard error is a terminal */
    int64_t done, steps;
    double start, last; /**< seconds: of the run, and when the line was written */
} progress;

/** A run of so many steps begins. */
void progress_begin(progress *p, int64_t steps);

/** One step is done. NULL is fine. */
void progress_step(progress *p);

/** Takes the line away, before anything else is written. NULL is fine. */
void progress_clear(progress *p);

#endif
