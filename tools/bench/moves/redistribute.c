/* bench redistribute: how fast moves are, against plain copies of as many bytes in the same run,
 * and whether they are right; one move, or a sweep over meshes, placements, dtypes, sizes, engines,
 * devices and modes. */
#include "bench/moves/moves.h"

static int measure(bench_run *run, const tool_arguments *now, bool begins_table)
{
    static const move_way way = {.bench = "redistribute"};
    return bench_moves_measure(run, now, begins_table, &way);
}

/* loop_seconds: far longer than a barrier takes */
const bench_kind bench_redistribute_kind = {.name = "bench redistribute",
                                            .axes = move_axes,
                                            .axis_count = MOVE_AXES,
                                            .within = 2,
                                            .sizes = SIZES_FOR_SHAPES,
                                            .settings = {.iterations = 11, .warm_ups = 2, .loop_seconds = 2e-4},
                                            .measure = measure};

static int run_bench(const tool_arguments *given)
{
    return bench_run_alone(&bench_redistribute_kind, given);
}

const tool_command bench_redistribute_command = {
    .name = "bench redistribute",
    .summary = "how fast a move is, next to plain copies, and whether it is right",
    .details = "Times are those of the slowest rank from barrier to barrier, medians after a warm-up; calls that take "
               "less than 0.2 ms are made "
               "so often in between, and the mean is taken. bandwidth is the payload, the bytes of all "
               "destination shards, over that; the peak that it is compared with is the best plain copy (memcpy or "
               "non-temporal stores, by its "
               "median) of as many bytes, by as many threads as ranks but at most the cores, or by all processes, in "
               "turns with the moves. The "
               "limit is the rate of a "
               "move that reads every term of the source once and writes every result once, as fast as the copy moves "
               "bytes. After the last move "
               "every element is compared with what its global index says that it must be: #wrong.\n\n"
               "On GPUs the copy is the device's own, from device to device; streams are idle before either barrier, "
               "and what the call costs the "
               "host, which only enqueues, is reported beside.\n\n"
               "The columns are those of nccl-tests. size is the largest shard of any rank, before or after: what "
               "nccl-tests calls size for the "
               "all-gather, reduce-scatter, all-reduce and all-to-all that S(0) to R, P to S(0), P to R and S(0) to "
               "S(1) are. algbw is size over "
               "time; busbw is the most bytes that any rank receives from others over time, hence algbw times (n-1)/n "
               "or 2(n-1)/n for them. "
               "ratio is the bytes that all ranks receive over the least possible; of_peak and of_limit are shares of "
               "the copy's rate and of the "
               "limit; noise is half of what the times spread over, relative to their median.\n\n"
               "A sweep: -b, -e and -f take the place of --shape and step through sizes, of matrices that are about "
               "square; where both sides cut, "
               "every rank holds something, so that on many ranks small sizes come out larger, and those that come to "
               "one shape are measured "
               "once. "
               "--mesh and the pair of --from and --to may be repeated; --shape, --dtype, --mode, --engine and "
               "--device may be repeated and be "
               "lists. Every combination "
               "is run, sizes fastest.",
    .examples = "  tessera bench redistribute --mesh 2 --shape 8192x8192 --dtype f32 --from 'S(0)' --to 'S(1)'\n"
                "  tessera bench redistribute --mesh 2x2 --shape 4096x4096 --dtype bf16 --from 'P,R' --to 'S(0),S(1)' "
                "--iterations 21 --json\n"
                "  tessera bench redistribute --mesh 2 -b 64 -e 256M -f 4 -n 21 -w 5 -c 1 --dtype f32,bf16 --from "
                "'S(0)' --to R --from P --to R\n",
    .takes = TAKES_MOVES,
    .repeats = REPEATS_MOVES,
    .requires_all = TAKES(MESH) | TAKES(FROM) | TAKES(TO),
    .run = run_bench,
};
