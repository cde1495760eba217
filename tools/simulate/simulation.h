/** What a move comes to on a machine that need not be at hand, by plans and the model of the links. */
#ifndef TESSERA_TOOLS_SIMULATE_SIMULATION_H
#define TESSERA_TOOLS_SIMULATE_SIMULATION_H

#include "bench/run/bench.h"
#include "plan/request.h"
#include "simulate/links.h"

#include <tessera/explain.h>

typedef struct simulation {
    char *mesh, *from, *to;
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_plan_options options; /**< but for the profile, which is: */
    tsr_cost_profile links;
    int64_t ranks;
    int64_t planned;         /**< of them: all, all that hold anything, or some that stand for the others */
    bool estimated;          /**< they stand for others: another one may have more, and totals are estimates; one of -1 is not known */
    tsr_plan_survey figures; /**< of the ranks that were planned for, but for totals, which are those of all */
    const measured_links *measured_links; /**< with --validate: where `links` are from, borrowed; else NULL */
    spread measured;                      /**< with --validate; else all 0 */
} simulation;

/** Reads the options of one move, and plans. Returns the tool's exit status; the caller finishes the simulation in any case. */
int simulate(const tool_arguments *given, const tsr_cost_profile *links, simulation *out);

/** Only reads them, where another gives the figures: of a plan that runs. Otherwise as simulate(). */
int simulation_read(const tool_arguments *given, const tsr_cost_profile *links, simulation *out);
void simulation_finish(simulation *s);

/** Of a simulation that was measured as well: how far the model is off, relative to the time. */
double simulation_error(const simulation *s);

/** A picture: time, bytes and workspace against ranks, a line for each shape, dtype, mode and pair of layouts, that a legend explains, and
 * what was measured beside it. An SVG as text, which the caller frees; NULL if there is no memory. */
void simulation_plot(const simulation *all, size_t count, char **text, size_t *bytes);

#endif
