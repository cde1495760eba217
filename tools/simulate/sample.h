/** Figures of moves among so many ranks that not all of them can be planned for. */
#ifndef TESSERA_TOOLS_SIMULATE_SAMPLE_H
#define TESSERA_TOOLS_SIMULATE_SAMPLE_H

#include "simulate/simulation.h"

/** As many ranks are all planned for. */
#define SIMULATION_MOST_RANKS 4096

/**
 * Plans for the ranks of a mesh in row-major order that hold anything: for all where they are few, else for some that stand for them, whole
 * nodes from all over, and for those that are likely to have most; sets `planned`, `estimated` and `figures` of `out`. Returns the tool's
 * exit status.
 */
int simulation_sample(const plan_request *r, const tsr_plan *plan, simulation *out);

#endif
