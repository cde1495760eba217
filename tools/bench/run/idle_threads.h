/**
 * Threads that nobody asked for: a BLAS starts its own when it is loaded, which spin for a while before they sleep, and take the cores of
 * whatever is timed meanwhile.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_IDLE_THREADS_H
#define TESSERA_TOOLS_BENCH_RUN_IDLE_THREADS_H

#include <stdbool.h>

/** Waits until every other thread of this process sleeps, for three seconds at most; returns at once if they do already. False if some
 * still run, or the system does not tell. To be called before anything is timed, while the process has no rank threads. */
bool idle_threads_await(void);

#endif
