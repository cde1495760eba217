/** Measures a kernel of the host in each of its ways, in turns with plain copies of as many
 * bytes. */
#ifndef TESSERA_TOOLS_BENCH_KERNELS_KERNEL_BENCH_H
#define TESSERA_TOOLS_BENCH_KERNELS_KERNEL_BENCH_H

#include "bench/run/bench.h"

typedef struct kernel_request {
    const char *kernel; /**< "copy", "reduce" or "reduce-to-all": of two sources */
    int64_t run_bytes;  /**< bytes of a row; rows of a source start twice as far apart. If not less than the bytes of a
                           destination, there is  one row */
    int64_t bytes;      /**< bytes that a call writes, on each rank */
    int ranks;          /**< number of ranks that call at once, each on its own memory */
} kernel_request;

/** The results of one way of a kernel. Rates are bytes a second of all ranks together. */
typedef struct kernel_figures {
    kernel_request request; /**< with the sizes that were measured: whole elements and rows */
    const char *way;        /**< static */
    spread seconds;
    double bandwidth, of_peak;
    double of_best; /**< rate over that of the best way */
    bool chosen;    /**< calls choose this way, or TSR_KERNELS tells them to */
    bool as_good;   /**< its least time is not above the greatest of the best way */
    const char *peak_copy;
} kernel_figures;

/** Measures all ways and fills a row of `out` for each; `*count`, at most TSR_MOST_KERNEL_WAYS, is
 * the number of rows. Returns the tool's exit status. */
int kernel_bench_run(place *p, const kernel_request *request, const bench_settings *settings, kernel_figures *out,
                     int *count);

/** Draws the rows as an SVG of `*bytes`, with a panel for each kernel and size; the caller frees
 * `*text`, NULL if there was no memory. */
void kernel_plot(const kernel_figures *rows, size_t count, char **text, size_t *bytes);

#endif
