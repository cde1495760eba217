/**
 * Sweeps: visits every combination of the values of options that have several.
 *
 * Options are repeated (--mesh 2 --mesh 2x2), or given a list (--dtype f32,bf16) unless commas are
 * part of their values, as in meshes and placements. The first --from goes with the first --to, the
 * second with the second; if one of the two is given once it goes with each of the other.
 */
#ifndef TESSERA_TOOLS_BENCH_RUN_SWEEP_H
#define TESSERA_TOOLS_BENCH_RUN_SWEEP_H

#include "command.h"

#define SWEEP_AXES 8

/** The values of one option. */
typedef struct sweep_list {
    tool_option option;
    size_t count;
    char *values[MAX_GIVEN]; /**< on the heap; one NULL if the option is not given */
} sweep_list;

/** Options that advance together: one option, or --from and --to. */
typedef struct sweep_axis {
    sweep_list lists[2];
    int list_count;
    size_t at, count; /**< index of the current value, and number of values */
} sweep_axis;

typedef struct sweep {
    tool_arguments now; /**< the current combination */
    sweep_axis axes[SWEEP_AXES];
    int axis_count;
} sweep;

/** Begins a sweep at its first combination. `order` lists the options that may have several values,
 * the slowest first; OPT_FROM stands for --from and --to. Refuses values that do not parse, of all
 * combinations. Returns the tool's exit status; the caller calls sweep_finish() in any case. */
int sweep_begin(const tool_arguments *given, const tool_option *order, int count, sweep *out);
void sweep_finish(sweep *s);

/** Advances to the next combination; false after the last, when the first is current again. */
bool sweep_next(sweep *s);

/** The number of combinations. */
int64_t sweep_count(const sweep *s);

#endif
