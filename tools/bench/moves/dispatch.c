/* bench dispatch: what a small repeated redistribute costs, in rendezvous and bookkeeping more than
 * in bytes. */
#include "bench/moves/moves.h"

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    static const move_way into = {.bench = "dispatch", .dtensors = true, .enqueues = true};
    static const move_way new_results = {.bench = "dispatch", .dtensors = true, .new_results = true, .enqueues = true};
    return bench_moves_measure(run, now, begins_table, now->value[OPT_NEW_RESULT] ? &new_results : &into);
}

/* warm_seconds, so that caches and the clock rate of cores are those of a running program. */
const bench_kind bench_dispatch_kind = {.name = "bench dispatch",
                                        .axes = move_axes,
                                        .axis_count = MOVE_AXES,
                                        .within = 2,
                                        .sizes = SIZES_FOR_SHAPES,
                                        .settings = {.iterations = 11, .loop_seconds = 0.02, .warm_seconds = 0.3},
                                        .measure = measure};

static int run_bench(const tool_arguments *given)
{
    return bench_run_alone(&bench_dispatch_kind, given);
}

const tool_command bench_dispatch_command = {
    .name = "bench dispatch",
    .summary = "what a small repeated redistribute costs",
    .details = "Repeats one tsr_redistribute_into() with the same tensors, in loops of about 20 ms, or of --calls "
               "calls: time is the mean of a "
               "loop "
               "on its slowest rank, the median of --iterations loops. --mode message repeats a plan's execution where "
               "the engine's own mode is "
               "another. The first row comes after calls for 0.3 s, unless --warm-up says how many loops come before. "
               "With --device cuda it is "
               "what a call costs the host, which only enqueues, and a loop has 32 calls, so that they never wait for "
               "room in the GPU's queue; "
               "the "
               "rates are of calls that are waited for.\n\n"
               "With --new-result a call is tsr_redistribute(), which makes new memory for its result, and "
               "tsr_dtensor_destroy() of the result "
               "before, as frameworks do it. That is done in the engine's own mode and on the host only.\n\n"
               "Columns, and what they are compared with, are those of bench redistribute, and so are sweeps: -b, -e "
               "and -f take the place of "
               "--shape; --mesh and the pair of --from and --to may be repeated; --shape, --dtype, --mode, --engine "
               "and --device may be repeated "
               "and be lists. Every combination is run, sizes fastest.",
    .examples = "  tessera bench dispatch --mesh 2 --shape 16 --dtype f32 --from 'S(0)' --to R\n"
                "  tessera bench dispatch --mesh 4 --shape 64x64 --dtype f32 --from P --to R --calls 10000 --json\n"
                "  tessera bench dispatch --mesh 2 --shape 32x32 --dtype f32 --from 'S(0)' --to 'S(1)' --new-result\n"
                "  tessera bench dispatch --mesh 2 -b 64 -e 1M -f 4 -n 5 --from 'S(0)' --to R --from P --to R --csv\n",
    .takes = TAKES_MOVES | TAKES(NEW_RESULT),
    .repeats = REPEATS_MOVES,
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO),
    .defaults = {{OPT_WARM_UP, "calls for 0.3 seconds"}},
    .run = run_bench,
};
