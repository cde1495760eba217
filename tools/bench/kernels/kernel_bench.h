/** How fast one kernel of the host is in each of its ways, in turns, next to plain copies of as many bytes. */
#ifndef TESSERA_TOOLS_BENCH_KERNELS_KERNEL_BENCH_H
#define TESSERA_TOOLS_BENCH_KERNELS_KERNEL_BENCH_H

#include "bench/run/bench.h"
#include "bench/run/copy.h"

typedef struct kernel_request {
    const char *kernel; /**< "copy", "reduce" or "reduce-to-all": of two sources */
    int64_t run_bytes;  /**< that lie together; the rows of sources lie twice as far apart. All `bytes`: there is one row */
    int64_t bytes;      /**< that a call writes, on each rank */
    int ranks;          /**< that call at once, each on memory of its own */
} kernel_request;

/** One way of a kernel. Rates are of all ranks together, in bytes a second. */
typedef struct kernel_figures {
    kernel_request request; /**< with sizes as they were measured: whole elements and rows */
    const char *way;        /**< static */
    spread seconds;
    double bandwidth, of_peak;
    double of_best; /**< its rate over that of the best way */
    bool chosen;    /**< it is the way that calls have chosen, or were told */
    bool as_good;   /**< its times and those of the best way overlap */
    const char *peak_copy;
} kernel_figures;

/** Measures all ways, fills a row for each, TSR_MOST_KERNEL_WAYS at most, and says how many there are. Returns the tool's exit status. */
int kernel_bench_run(place *p, const kernel_request *request, const bench_settings *settings, kernel_figures *out, int *count);

/** A picture of the rows, for one kernel and size after the other; the caller frees `*text`, NULL if there was no memory. */
void kernel_plot(const kernel_figures *rows, size_t count, char **text, size_t *bytes);

#endif
