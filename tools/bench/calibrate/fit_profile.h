/** A cost profile from measured times, of links inside a node and between nodes. Pure. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_FIT_PROFILE_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_FIT_PROFILE_H

#include "bench/calibrate/fit.h"

/** What was measured over one kind of link: no points, where nothing was. */
typedef struct link_points {
    const fit_point *at;
    size_t count;
} link_points;

/**
 * Fits the links that have points. None between nodes begins earlier than those inside: where one would, what is between begins as late as
 * what is inside, unless only what is between was measured; then what is inside begins as early. `error` is of the links as they are then,
 * inside and between, and 0 without points. False, and nothing is written, where some points tell of no link (fit_link()).
 */
bool fit_profile(link_points inside, link_points between, tsr_cost_profile *profile, fit_error error[2]);

#endif
