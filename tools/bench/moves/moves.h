/** Rows of moves, which bench redistribute and bench dispatch share. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVES_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVES_H

#include "bench/moves/move_bench.h"
#include "bench/run/run.h"

/** The options that may have several values, the slowest first; dtypes and shapes may differ within
 * a table. */
#define MOVE_AXES 7
extern const tool_option move_axes[MOVE_AXES];

#define TAKES_MOVES                                                                                                    \
    (TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) | \
     TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) |  \
     TAKES(JSON) | TAKES(CSV))
#define REPEATS_MOVES                                                                                                  \
    (TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE))

/** The `measure` of a bench_kind that measures moves by `way`. */
int bench_moves_measure(bench_run *run, const tool_arguments *now, bool begins_table, const move_way *way);

#endif
