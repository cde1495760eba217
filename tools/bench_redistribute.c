/* How fast a redistribution is, next to plain copies of as many bytes in the same run, and whether it was right. */
#include "bench.h"
#include "bench_copy.h"
#include "bench_oracle.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define WARM_UPS 2

/** What the rank threads share; each writes its own rows only. */
typedef struct job {
    move_setup setup;
    samples moves;
    samples copies[MAX_PLAIN_COPIES];
    int copy_count;
    int copiers; /**< the first so many ranks copy */
    size_t payload;
    struct row {
        void *copy_source;      /**< as many bytes as the rank's destination */
        tsr_tensor destination; /**< outside the mesh: of 0 bytes */
        size_t bytes;
        size_t begin; /**< where they are in the payload, all destinations one after another */
        int64_t bytes_received;
        int64_t wrong;
    } * rows;
} job;

/** One rank's side. */
typedef struct side {
    job *job;
    tsr_comm *comm;
    int rank;
    move move;
    tsr_dtensor *source, *destination;
    const plain_copy *copy; /**< which one is timed now */
} side;

static tsr_status execute(void *arg)
{
    side *const s = arg;
    const tsr_tensor src = tsr_dtensor_to_local(s->source), dst = tsr_dtensor_to_local(s->destination);
    return move_execute(&s->move, &src, &dst);
}

/** This rank's share of the payload: an equal part of all destinations in a row, wherever its ends fall. */
static tsr_status copy_share(void *arg)
{
    const side *const s = arg;
    const job *const j = s->job;
    if (s->rank >= j->copiers)
        return TSR_OK;
    const size_t share = j->payload / (size_t)j->copiers;
    const size_t begin = share * (size_t)s->rank, end = s->rank + 1 == j->copiers ? j->payload : begin + share;
    for (int r = 0; r < j->setup.ranks; r++) {
        const struct row *const row = &j->rows[r];
        const size_t from = begin > row->begin ? begin : row->begin, to = end < row->begin + row->bytes ? end : row->begin + row->bytes;
        if (from < to)
            s->copy->copy((char *)row->destination.data + (from - row->begin), (const char *)row->copy_source + (from - row->begin),
                          to - from);
    }
    return TSR_OK;
}

/** Copies come first, so that what is checked in the end was written by the move. */
static tsr_status run_iteration(side *s, int64_t iteration)
{
    job *const j = s->job;
    for (int c = 0; c < j->copy_count; c++) {
        double seconds;
        s->copy = plain_copy_get(c);
        TSR_TRY(bench_time(s->comm, copy_share, s, &seconds));
        if (iteration >= 0)
            j->copies[c].seconds[s->rank * j->copies[c].iterations + iteration] = seconds;
    }
    double seconds;
    TSR_TRY(bench_time(s->comm, execute, s, &seconds));
    if (iteration >= 0)
        j->moves.seconds[s->rank * j->moves.iterations + iteration] = seconds;
    return TSR_OK;
}

/** Big buffers are touched first by the rank that uses them. */
static tsr_status make_buffers(side *s)
{
    struct row *const row = &s->job->rows[s->rank];
    const tsr_device host = tsr_device_host();
    TSR_TRY(tsr_dtensor_create(s->move.from, host, &s->source));
    TSR_TRY(tsr_dtensor_create(s->move.to, host, &s->destination));
    TSR_TRY(tsr_layout_local_bytes(s->move.to, NULL, &row->bytes));
    row->destination = tsr_dtensor_to_local(s->destination);
    row->bytes_received = tsr_plan_bytes_received(s->move.plan);
    TSR_TRY(tsr_comm_alloc(s->comm, row->bytes, &row->copy_source));
    if (row->bytes > 0) {
        memset(row->copy_source, 0x5a, row->bytes);
        memset(row->destination.data, 0xa5, row->bytes);
    }
    return TSR_OK;
}

static tsr_status fill_source(side *s, const int64_t *coordinate, int inside)
{
    return inside ? oracle_fill(s->move.from, coordinate, tsr_dtensor_to_local(s->source).data) : TSR_OK;
}

static tsr_status check_destination(side *s, const int64_t *coordinate, int inside)
{
    struct row *const row = &s->job->rows[s->rank];
    return inside ? oracle_count_wrong(s->move.from, s->move.to, coordinate, row->destination.data, &row->wrong) : TSR_OK;
}

static tsr_status run_side(side *s)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(make_buffers(s));
    TSR_TRY(tsr_mesh_coordinate(s->move.mesh, coordinate, &inside));
    TSR_TRY(fill_source(s, coordinate, inside));
    for (int64_t i = -WARM_UPS; i < s->job->moves.iterations; i++)
        TSR_TRY(run_iteration(s, i));
    return check_destination(s, coordinate, inside);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.job = j, .comm = comm, .rank = tsr_comm_rank(comm)};
    TSR_TRY(move_create(comm, &j->setup.request, &s.move));
    const tsr_status status = run_side(&s);
    struct row *const row = &j->rows[s.rank];
    tsr_comm_free(comm, row->copy_source, row->bytes);
    tsr_dtensor_destroy(s.source);
    tsr_dtensor_destroy(s.destination);
    move_finish(&s.move);
    return status;
}

/** What is reported, from the ranks' rows. */
typedef struct figures {
    spread seconds;
    double bandwidth, peak_bandwidth, of_peak;
    const char *peak_copy;
    int64_t wrong;
    int64_t received; /**< most bytes that a rank receives */
    int64_t size;     /**< largest shard of any rank, before or after */
    double busbw;
} figures;

static double rate(double bytes, double seconds)
{
    return seconds > 0 ? bytes / seconds : 0;
}

/** The best plain copy, by its median as the move is by its own. */
static void find_peak(job *j, figures *f)
{
    for (int c = 0; c < j->copy_count; c++) {
        const double bandwidth = rate((double)j->payload, samples_spread(&j->copies[c]).median);
        if (c > 0 && bandwidth <= f->peak_bandwidth)
            continue;
        f->peak_bandwidth = bandwidth;
        f->peak_copy = plain_copy_get(c)->name;
    }
}

static int64_t largest_shard(const tsr_layout *layout)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, largest = 0;
    do {
        size_t bytes = 0;
        if (tsr_layout_local_bytes(layout, coordinate, &bytes) == TSR_OK && (int64_t)bytes > largest)
            largest = (int64_t)bytes;
    } while (next_coordinate(tsr_layout_mesh(layout), coordinate));
    return largest;
}

static figures sum_up(job *j)
{
    figures f = {.seconds = samples_spread(&j->moves)};
    const int64_t before = largest_shard(j->setup.from), after = largest_shard(j->setup.to);
    find_peak(j, &f);
    f.bandwidth = rate((double)j->payload, f.seconds.median);
    f.of_peak = rate(f.bandwidth, f.peak_bandwidth);
    f.size = before > after ? before : after;
    for (int r = 0; r < j->setup.ranks; r++) {
        f.wrong += j->rows[r].wrong;
        f.received = j->rows[r].bytes_received > f.received ? j->rows[r].bytes_received : f.received;
    }
    f.busbw = rate((double)f.received, f.seconds.median);
    return f;
}

static int print_figures_json(const job *j, const figures *f)
{
    const move_setup *const s = &j->setup;
    const move_request *const request = &s->request;
    return print_json(json_pack("{ss ss ss ss sI ss so ss ss ss sI so sf sf sf ss sI sI}", "bench", "redistribute", "engine", "threads",
                                "device", "host", "mode", mode_name(request->mode), "ranks", (json_int_t)tsr_mesh_count(s->mesh), "mesh",
                                s->names.mesh, "shape", sizes_to_json(request->shape.size, request->shape.ndim), "dtype",
                                tsr_dtype_name(request->dtype), "from", s->names.from, "to", s->names.to, "payload_bytes",
                                (json_int_t)j->payload, "seconds", spread_to_json(f->seconds), "bandwidth", f->bandwidth, "peak_bandwidth",
                                f->peak_bandwidth, "of_peak", f->of_peak, "peak_copy", f->peak_copy, "iterations",
                                (json_int_t)j->moves.iterations, "wrong", (json_int_t)f->wrong));
}

static int print_figures(const job *j, const figures *f)
{
    const move_setup *const s = &j->setup;
    const tsr_dtype dtype = s->request.dtype;
    printf("# %s -> %s on mesh %s, rank threads, %s\n", s->names.from, s->names.to, s->names.mesh, mode_name(s->request.mode));
    printf("# payload %zu bytes at %.2f GB/s; %.2f of the best plain copy (%s, %.2f GB/s)\n", j->payload, 1e-9 * f->bandwidth, f->of_peak,
           f->peak_copy, 1e-9 * f->peak_bandwidth);
    printf("#%13s %13s %8s %11s %8s %8s %8s\n", "size", "count", "type", "time", "algbw", "busbw", "#wrong");
    printf("#%13s %13s %8s %11s %8s %8s\n", "(B)", "(elements)", "", "(us)", "(GB/s)", "(GB/s)");
    printf(" %13lld %13lld %8s %11.2f %8.2f %8.2f %8lld\n", (long long)f->size, (long long)(f->size / (int64_t)tsr_dtype_bytes(dtype)),
           tsr_dtype_name(dtype), 1e6 * f->seconds.median, 1e-9 * rate((double)f->size, f->seconds.median), 1e-9 * f->busbw,
           (long long)f->wrong);
    return EXIT_DONE;
}

static int report_job(const tool_arguments *given, job *j)
{
    const figures f = sum_up(j);
    const int status = given->value[OPT_JSON] != NULL ? print_figures_json(j, &f) : print_figures(j, &f);
    if (status == EXIT_DONE && f.wrong > 0)
        return complain(EXIT_REFUSED, "%lld elements are not what %s -> %s must give", (long long)f.wrong, j->setup.names.from,
                        j->setup.names.to);
    return status;
}

/** The ranks' rows, and where each destination lies in the payload. */
static int make_rows(job *j)
{
    const tsr_mesh *const mesh = j->setup.mesh;
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    j->rows = calloc((size_t)j->setup.ranks, sizeof *j->rows);
    if (j->rows == NULL)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", j->setup.ranks);
    do {
        int64_t rank;
        size_t bytes;
        if (tsr_mesh_rank_at(mesh, coordinate, &rank) != TSR_OK || tsr_layout_local_bytes(j->setup.to, coordinate, &bytes) != TSR_OK)
            return complain_status(EXIT_REFUSED);
        j->rows[rank].begin = j->payload;
        if (__builtin_add_overflow(j->payload, bytes, &j->payload))
            return complain(EXIT_REFUSED, "the destination shards have more than 2^64-1 bytes together");
    } while (next_coordinate(mesh, coordinate));
    j->copiers = core_count() < j->setup.ranks ? core_count() : j->setup.ranks;
    return EXIT_DONE;
}

static int make_samples(const tool_arguments *given, job *j)
{
    int64_t iterations;
    int status = parse_iterations(given->value[OPT_ITERATIONS], 11, &iterations);
    if (status == EXIT_DONE)
        status = samples_create(j->setup.ranks, iterations, &j->moves);
    for (; status == EXIT_DONE && plain_copy_get(j->copy_count) != NULL; j->copy_count++)
        status = samples_create(j->setup.ranks, iterations, &j->copies[j->copy_count]);
    return status;
}

static void finish_job(job *j)
{
    for (int c = 0; c < MAX_PLAIN_COPIES; c++)
        free(j->copies[c].seconds);
    free(j->moves.seconds);
    free(j->rows);
    move_setup_finish(&j->setup);
}

static int run_bench(const tool_arguments *given)
{
    job j = {.payload = 0};
    int status = move_setup_read(given, &j.setup);
    if (status == EXIT_DONE)
        status = make_rows(&j);
    if (status == EXIT_DONE)
        status = make_samples(given, &j);
    if (status == EXIT_DONE && tsr_threads_run(j.setup.ranks, run_rank, &j, NULL) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = report_job(given, &j);
    finish_job(&j);
    return status;
}

const tool_command bench_redistribute_command = {
    .name = "bench redistribute",
    .summary = "how fast a move is, next to plain copies, and whether it is right",
    .details =
        "Times are those of the slowest rank from barrier to barrier. bandwidth is the payload, the bytes of all destination shards, over "
        "the "
        "median time; the peak that it is compared with is the best plain copy (memcpy or non-temporal stores, by its median) of as many "
        "bytes, by as many threads as ranks but at most the cores, in turns with the moves. After the last move every element is compared "
        "with what its global index says that it must be: #wrong.\n\n"
        "The columns are those of nccl-tests. size is the largest shard of any rank, before or after: what nccl-tests calls size for the "
        "all-gather, reduce-scatter, all-reduce and all-to-all that S(0) to R, P to S(0), P to R and S(0) to S(1) are. algbw is size over "
        "time; busbw is the most bytes that any rank receives from others over time, hence algbw times (n-1)/n or 2(n-1)/n for them.",
    .examples =
        "  tessera bench redistribute --mesh 2 --shape 8192x8192 --dtype f32 --from 'S(0)' --to 'S(1)'\n"
        "  tessera bench redistribute --mesh 2x2 --shape 4096x4096 --dtype bf16 --from 'P,R' --to 'S(0),S(1)' --iterations 21 --json\n",
    .takes = TAKES(MESH) | TAKES(SHAPE) | TAKES(DTYPE) | TAKES(FROM) | TAKES(TO) | TAKES(ITERATIONS) | TAKES(MODE) | TAKES(ENGINE) |
             TAKES(DEVICE) | TAKES(JSON),
    .requires_all = TAKES(MESH) | TAKES(SHAPE) | TAKES(FROM) | TAKES(TO),
    .run = run_bench,
};
