/** A link's latency and bandwidth from measured times. Pure. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_FIT_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_FIT_H

#include <tessera/cost.h>

#include <stdbool.h>
#include <stddef.h>

/** Upper bound of the points of one fit. */
#define FIT_POINTS 64

typedef struct fit_point {
    double bytes, seconds; /**< both above 0 */
} fit_point;

/** Errors of the fitted times, relative to the measured times. */
typedef struct fit_error {
    double median, max;
} fit_error;

/** Seconds that the link takes for `bytes`. */
double fit_seconds(const tsr_link *link, double bytes);

/**
 * Finds the link whose latency + bytes / bandwidth has the least sum of squared relative errors
 * over the points, with a latency of 0 or more. False if the points determine no link: all have the
 * same bytes, or more bytes do not take longer.
 */
bool fit_link(const fit_point *points, size_t count, tsr_link *out);

/** The errors of a link over at least one point. */
fit_error fit_measure(const fit_point *points, size_t count, const tsr_link *link);

#endif
