/** What `bench redistribute` and `bench dispatch` share: rows of moves. */
#ifndef TESSERA_TOOLS_BENCH_MOVES_MOVES_H
#define TESSERA_TOOLS_BENCH_MOVES_MOVES_H

#include "bench/moves/move_bench.h"
#include "bench/run/run.h"

/** Their axes; dtypes, shapes and sizes differ within a table. */
#define MOVE_AXES 7
extern const tool_option move_axes[MOVE_AXES];

#define TAKES_MOVES                                                                                                                        \
    (TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(BEGIN) | TAKES(END) | TAKES(FACTOR) | TAKES(ITERATIONS) | \
     TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE) | TAKES(JSON) | TAKES(CSV))
#define REPEATS_MOVES (TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(MODE) | TAKES(ENGINE) | TAKES(DEVICE))

/** A bench_kind's `measure`, in a way of calling. */
int bench_moves_measure(bench_run *run, const tool_arguments *now, bool begins_table, const move_way *way);

#endif
