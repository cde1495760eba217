/**
 * Benchmarks of many things in one run: the options of a command that hold several values, and every combination of them in turn.
 *
 * Meshes and placements are repeated (--mesh 2 --mesh 2x2), for commas are part of them; others may be lists too (--dtype f32,bf16). The
 * first --from goes with the first --to, the second with the second; where one of the two is given once it goes with all of the other.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_SWEEP_H
#define TESSERA_TOOLS_BENCH_RUN_SWEEP_H

#include "command.h"

#define SWEEP_AXES 8

/** The values of one option. */
typedef struct sweep_list {
    tool_option option;
    size_t count;
    char *values[MAX_GIVEN]; /**< on the heap; NULL alone where the option was not given */
} sweep_list;

/** Options that are stepped together: one, or --from and --to. */
typedef struct sweep_axis {
    sweep_list lists[2];
    int list_count;
    size_t at, count;
} sweep_axis;

typedef struct sweep {
    tool_arguments now; /**< the combination that is at hand */
    sweep_axis axes[SWEEP_AXES];
    int axis_count;
} sweep;

/** The axes are those options of `command` that may hold several values, the first in `order` the slowest; OPT_FROM stands for the pair.
 * What reads wrong is refused here, whenever its turn would be.
 * Returns the tool's exit status; the caller finishes the sweep in any case. */
int sweep_begin(const tool_arguments *given, const tool_option *order, int count, sweep *out);
void sweep_finish(sweep *s);

/** Goes on to the next combination; false after the last. */
bool sweep_next(sweep *s);

/** How many combinations there are. */
int64_t sweep_count(const sweep *s);

#endif
