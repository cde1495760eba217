/* How fast a redistribution is, next to plain copies of as many bytes in the same run, and whether it was right. */
#include "bench.h"
#include "bench_oracle.h"
#include "bench_peak.h"
#include "local.h"
#include "report.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define WARM_UPS 2

/** What the ranks share; each writes its own rows only. */
typedef struct job {
    move_setup setup;
    samples moves, enqueues, copies[MAX_PLAIN_COPIES];
    peak peak;
    struct row {
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
    local source, destination;
    int copy; /**< which one is timed now */
} side;

static tsr_status execute(void *arg)
{
    const side *const s = arg;
    return move_execute(&s->move, &s->source.tensor, &s->destination.tensor);
}

static tsr_status copy_part(void *arg)
{
    const side *const s = arg;
    return peak_run(&s->job->peak, s->rank, s->copy);
}

static void keep(samples *s, int rank, int64_t iteration, double seconds)
{
    if (iteration >= 0)
        s->seconds[rank * s->iterations + iteration] = seconds;
}

/** Copies come first, so that what is checked in the end was written by the move. */
static tsr_status run_iteration(side *s, int64_t iteration)
{
    job *const j = s->job;
    bench_seconds seconds;
    for (s->copy = 0; peak_name(&j->peak, s->copy) != NULL; s->copy++) {
        TSR_TRY(bench_time(j->setup.place, s->comm, copy_part, s, &seconds));
        keep(&j->copies[s->copy], s->rank, iteration, seconds.whole);
    }
    TSR_TRY(bench_time(j->setup.place, s->comm, execute, s, &seconds));
    keep(&j->moves, s->rank, iteration, seconds.whole);
    keep(&j->enqueues, s->rank, iteration, seconds.enqueue);
    return TSR_OK;
}

/** Big buffers are touched first by the rank that uses them. */
static tsr_status make_buffers(side *s)
{
    const place *const p = s->job->setup.place;
    TSR_TRY(local_create(p, s->comm, s->move.from, &s->source));
    TSR_TRY(local_create(p, s->comm, s->move.to, &s->destination));
    if (s->destination.bytes > 0 && !place_enqueues(p))
        memset(s->destination.tensor.data, 0xa5, s->destination.bytes);
    return peak_enter(&s->job->peak, s->comm, s->destination.tensor.data);
}

static tsr_status fill_source(side *s, const int64_t *coordinate)
{
    void *staged;
    TSR_TRY(local_stage(&s->source, &staged));
    tsr_status status = oracle_fill(s->move.from, coordinate, staged);
    if (status == TSR_OK)
        status = local_push(&s->source, staged);
    local_unstage(&s->source, staged);
    return status;
}

static tsr_status check_destination(side *s, const int64_t *coordinate)
{
    void *staged;
    TSR_TRY(local_stage(&s->destination, &staged));
    tsr_status status = local_pull(&s->destination, staged);
    if (status == TSR_OK)
        status = oracle_count_wrong(s->move.from, s->move.to, coordinate, staged, &s->job->rows[s->rank].wrong);
    local_unstage(&s->destination, staged);
    return status;
}

/** Everybody's figures, for whoever prints. */
static tsr_status share_figures(const side *s)
{
    const job *const j = s->job;
    const place *const p = j->setup.place;
    TSR_TRY(samples_share(&j->moves, p, s->comm));
    TSR_TRY(samples_share(&j->enqueues, p, s->comm));
    for (int c = 0; peak_name(&j->peak, c) != NULL; c++)
        TSR_TRY(samples_share(&j->copies[c], p, s->comm));
    return place_share(p, s->comm, j->rows, sizeof *j->rows);
}

static tsr_status run_side(side *s)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    s->job->rows[s->rank].bytes_received = tsr_plan_bytes_received(s->move.plan);
    TSR_TRY(make_buffers(s));
    TSR_TRY(tsr_mesh_coordinate(s->move.mesh, coordinate, &inside));
    if (inside)
        TSR_TRY(fill_source(s, coordinate));
    for (int64_t i = -WARM_UPS; i < s->job->moves.iterations; i++)
        TSR_TRY(run_iteration(s, i));
    if (inside)
        TSR_TRY(check_destination(s, coordinate));
    return share_figures(s);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.job = j, .comm = comm, .rank = tsr_comm_rank(comm)};
    TSR_TRY(move_create(j->setup.place, comm, &j->setup.request, &s.move));
    const tsr_status status = run_side(&s);
    peak_leave(&j->peak, comm);
    local_free(&s.destination);
    local_free(&s.source);
    move_finish(&s.move);
    return status;
}

/** What is reported, from the ranks' rows. */
typedef struct figures {
    spread seconds, enqueue;
    double bandwidth, peak_bandwidth, of_peak;
    double limit_bandwidth, of_limit; /**< of a move that reads every term once and writes every result once at the peak's rate */
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
    for (int c = 0; peak_name(&j->peak, c) != NULL; c++) {
        const double bandwidth = rate((double)j->peak.payload, samples_spread(&j->copies[c]).median);
        if (c > 0 && bandwidth <= f->peak_bandwidth)
            continue;
        f->peak_bandwidth = bandwidth;
        f->peak_copy = peak_name(&j->peak, c);
    }
}

/** Bytes of the source that are not copies of others: every term of a Partial counts. */
static double distinct_bytes(const tsr_layout *from)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(from);
    double bytes = (double)tsr_dtype_bytes(tsr_layout_dtype(from));
    for (int d = 0; d < tsr_layout_ndim(from); d++)
        bytes *= (double)tsr_layout_shape(from)[d];
    for (int d = 0; d < tsr_mesh_ndim(mesh); d++)
        if (tsr_layout_placements(from)[d].kind == TSR_PARTIAL)
            bytes *= (double)tsr_mesh_size(mesh, d);
    return bytes;
}

/** A plain copy reads and writes each byte of the payload once, so it moves two. */
static void find_limit(const job *j, figures *f)
{
    const double payload = (double)j->peak.payload, touched = distinct_bytes(j->setup.from) + payload;
    f->limit_bandwidth = touched > 0 ? f->peak_bandwidth * 2 * payload / touched : 0;
    f->of_limit = rate(f->bandwidth, f->limit_bandwidth);
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
    figures f = {.seconds = samples_spread(&j->moves), .enqueue = samples_spread(&j->enqueues)};
    const int64_t before = largest_shard(j->setup.from), after = largest_shard(j->setup.to);
    find_peak(j, &f);
    f.bandwidth = rate((double)j->peak.payload, f.seconds.median);
    f.of_peak = rate(f.bandwidth, f.peak_bandwidth);
    find_limit(j, &f);
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
    return print_json(json_pack(
        "{ss ss ss ss sI ss so ss ss ss sI so sf sf sf ss sI sI sf sf so}", "bench", "redistribute", "engine", place_engine(s->place),
        "device", place_device_name(s->place), "mode", mode_name(request->mode), "ranks", (json_int_t)tsr_mesh_count(s->mesh), "mesh",
        s->names.mesh, "shape", sizes_to_json(request->shape.size, request->shape.ndim), "dtype", tsr_dtype_name(request->dtype), "from",
        s->names.from, "to", s->names.to, "payload_bytes", (json_int_t)j->peak.payload, "seconds", spread_to_json(f->seconds), "bandwidth",
        f->bandwidth, "peak_bandwidth", f->peak_bandwidth, "of_peak", f->of_peak, "peak_copy", f->peak_copy, "iterations",
        (json_int_t)j->moves.iterations, "wrong", (json_int_t)f->wrong, "limit_bandwidth", f->limit_bandwidth, "of_limit", f->of_limit,
        "enqueue_seconds", place_enqueues(s->place) ? spread_to_json(f->enqueue) : json_null()));
}

static int print_figures(const job *j, const figures *f)
{
    const move_setup *const s = &j->setup;
    const tsr_dtype dtype = s->request.dtype;
    printf("# %s -> %s on mesh %s, engine %s, device %s, %s\n", s->names.from, s->names.to, s->names.mesh, place_engine(s->place),
           place_device_name(s->place), mode_name(s->request.mode));
    printf("# payload %zu bytes at %.2f GB/s; %.2f of the best plain copy (%s, %.2f GB/s), %.2f of the limit\n", j->peak.payload,
           1e-9 * f->bandwidth, f->of_peak, f->peak_copy, 1e-9 * f->peak_bandwidth, f->of_limit);
    if (place_enqueues(s->place))
        printf("# enqueuing takes the host %.2f us a call\n", 1e6 * f->enqueue.median);
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
    if (!place_speaks(j->setup.place))
        return f.wrong > 0 ? EXIT_REFUSED : EXIT_DONE;
    const int status = given->value[OPT_JSON] != NULL ? print_figures_json(j, &f) : print_figures(j, &f);
    if (status == EXIT_DONE && f.wrong > 0)
        return complain(EXIT_REFUSED, "%lld elements are not what %s -> %s must give", (long long)f.wrong, j->setup.names.from,
                        j->setup.names.to);
    return status;
}

static int make_rows(job *j)
{
    j->rows = calloc((size_t)j->setup.ranks, sizeof *j->rows);
    if (j->rows == NULL)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", j->setup.ranks);
    return peak_create(j->setup.place, j->setup.to, j->setup.ranks, &j->peak);
}

static int make_samples(const tool_arguments *given, job *j)
{
    int64_t iterations;
    int status = parse_iterations(given->value[OPT_ITERATIONS], 11, &iterations);
    if (status == EXIT_DONE)
        status = samples_create(j->setup.ranks, iterations, &j->moves);
    if (status == EXIT_DONE)
        status = samples_create(j->setup.ranks, iterations, &j->enqueues);
    for (int c = 0; status == EXIT_DONE && peak_name(&j->peak, c) != NULL; c++)
        status = samples_create(j->setup.ranks, iterations, &j->copies[c]);
    return status;
}

static void finish_job(job *j)
{
    for (int c = 0; c < MAX_PLAIN_COPIES; c++)
        free(j->copies[c].seconds);
    free(j->moves.seconds);
    free(j->enqueues.seconds);
    free(j->rows);
    peak_finish(&j->peak);
    move_setup_finish(&j->setup);
}

static int run_bench(const tool_arguments *given)
{
    job j = {.rows = NULL};
    int status = move_setup_read(given, &j.setup);
    if (status == EXIT_DONE)
        status = make_rows(&j);
    if (status == EXIT_DONE)
        status = make_samples(given, &j);
    if (status == EXIT_DONE && place_run(j.setup.place, j.setup.ranks, run_rank, &j) != TSR_OK)
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
        "with what its global index says that it must be: #wrong. The limit is the rate of a move that reads every term of the source once "
        "and writes every result once, as fast as the copy moves bytes.\n\n"
        "On GPUs the copy is the device's own, from device to device; streams are idle before either barrier, and what the call costs the "
        "host, which only enqueues, is reported beside.\n\n"
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
