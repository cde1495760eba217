/**
 * Waits for idle threads: a BLAS starts threads when it is loaded, which spin for a while before
 * they sleep, and meanwhile take cores from what is timed.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_IDLE_THREADS_H
#define TESSERA_TOOLS_BENCH_RUN_IDLE_THREADS_H

#include <stdbool.h>

/** Waits until every other thread of this process sleeps, at most about three seconds. False if
 * some still run, or the system does not tell. Call before anything is timed, while the process has
 * no rank threads. */
bool idle_threads_await(void);

#endif
