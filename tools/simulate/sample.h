/** Figures of moves on meshes of too many ranks to plan for each. */
#ifndef TESSERA_TOOLS_SIMULATE_SAMPLE_H
#define TESSERA_TOOLS_SIMULATE_SAMPLE_H

#include "simulate/simulation.h"

/** Up to this number of holders, all are planned for. */
#define SIMULATION_MOST_RANKS 4096

/**
 * Plans for the holders (simulate/holders.h) of a move on a mesh whose ranks follow each other: for
 * all of them if they are at most SIMULATION_MOST_RANKS, else for a spread sample in whole nodes,
 * and for those that are likely to have the greatest figures. Sets `planned`, `estimated` and
 * `figures` of `out`. Returns the tool's exit status.
 */
int simulation_sample(const plan_request *r, const tsr_plan *plan, simulation *out);

#endif
