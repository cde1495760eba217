/** A cost profile from measured times of links inside a node and between nodes. Pure. */
#ifndef TESSERA_TOOLS_BENCH_CALIBRATE_FIT_PROFILE_H
#define TESSERA_TOOLS_BENCH_CALIBRATE_FIT_PROFILE_H

#include "bench/calibrate/fit.h"

/** The points of one kind of link; none if it was not measured. */
typedef struct link_points {
    const fit_point *at;
    size_t count;
} link_points;

/**
 * Fits the links that have points; `profile` keeps the others. The latency between nodes is then
 * made no less than inside: if it is less, the latency between is raised to that inside or, if only
 * links between were measured, the latency inside is lowered. `error` gets the errors of the final
 * links inside and between, 0 without points. False, with nothing written, if the points of a link
 * determine none (fit_link()).
 */
bool fit_profile(link_points inside, link_points between, tsr_cost_profile *profile, fit_error error[2]);

#endif
