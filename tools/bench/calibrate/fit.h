/** A link's latency and bandwidth from measured times. Pure. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_FIT_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_FIT_H

#include <stdbool.h>
#include <stddef.h>
#include <tessera/cost.h>

/** Most points of one fit. */
#define FIT_POINTS 64

typedef struct fit_point {
    double bytes, seconds; /**< both above 0 */
} fit_point;

/** How far the line is from the points, relative to their times. */
typedef struct fit_error {
    double median, max;
} fit_error;

/** What the link takes for so many bytes. */
double fit_seconds(const tsr_link *link, double bytes);

/**
 * The link whose latency + bytes / bandwidth has the least sum of squared relative errors over the points, among those with a latency of 0
 * or more. False where the points tell of none: all have the same bytes, or more bytes do not take longer.
 */
bool fit_link(const fit_point *points, size_t count, tsr_link *out);

/** Of a link and at least one point. */
fit_error fit_measure(const fit_point *points, size_t count, const tsr_link *link);

#endif
