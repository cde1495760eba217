/** Simulates a move, also for a machine that is not at hand, by plans and the model of the
 * links. */
#ifndef TESSERA_TOOLS_SIMULATE_SIMULATION_H
#define TESSERA_TOOLS_SIMULATE_SIMULATION_H

#include "bench/run/bench.h"
#include "plan/request.h"
#include "simulate/links.h"

#include <tessera/explain.h>

typedef struct simulation {
    char *mesh, *from, *to; /**< as text; on the heap */
    tensor_shape shape;
    tsr_dtype dtype;
    tsr_plan_options options; /**< without the profile, which is `links` */
    tsr_profile *links;       /**< the profile, a reference of its own */
    int64_t ranks;            /**< of the mesh */
    int64_t planned;          /**< number of ranks planned for: all, all holders, or a sample of them */
    bool estimated; /**< the planned ranks are a sample: another rank may exceed the maxima, and totals are estimates,
                       or -1 for unknown */
    tsr_plan_survey figures;              /**< maxima of the planned ranks, and totals of all ranks */
    const measured_links *measured_links; /**< with --validate: the measured links, borrowed; else NULL */
    spread measured;                      /**< with --validate: measured times; else all 0 */
} simulation;

/** Reads the options of one move, plans it and counts its figures. Returns the tool's exit status;
 * the caller calls simulation_finish() in any case. */
int simulate(const tool_arguments *given, tsr_profile *links, simulation *out);

/** simulate() without planning: the caller sets the figures, from a plan that runs. */
int simulation_read(const tool_arguments *given, tsr_profile *links, simulation *out);
void simulation_finish(simulation *s);

/** The error of the model, relative to the measured median; only for a simulation that was
 * measured. */
double simulation_error(const simulation *s);

/** Draws time, bytes and workspace against ranks, with a line and an entry in the legend for each
 * shape, dtype, mode and pair of layouts, and the measured times. `*text`, an SVG of `*bytes`, is
 * the caller's to free; NULL if there is no memory. */
void simulation_plot(const simulation *all, size_t count, char **text, size_t *bytes);

#endif
