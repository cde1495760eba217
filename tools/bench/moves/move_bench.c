#include "bench/moves/move_bench.h"

#include "bench/moves/move_data.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

/* Calls of a loop that times enqueuing on a GPU: more would wait for room in the GPU's queue. */
#define ENQUEUED_CALLS 32

/* One rank's side. */
typedef struct side {
    move_bench *bench;
    tsr_comm *comm;
    int rank;
    move move;
    move_data data;
    tsr_dtensor *x, *y; /* over `data`, but `y` is a new tensor for new results; NULL if plans are executed */
    tsr_stream stream;
} side;

/* Destroys the result before, so that there is one at a time, and makes a new one. */
static tsr_status make_result(side *s)
{
    tsr_dtensor_destroy(s->y);
    s->y = NULL;
    return tsr_redistribute(s->x, tsr_layout_placements(s->move.to), &s->y);
}

static tsr_status call(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    (void)comm;
    if (s->bench->way->new_results)
        return make_result(s);
    if (s->x)
        return tsr_redistribute_into(s->x, s->y, s->stream);
    return move_execute(&s->move, &s->data.source.tensor, &s->data.destination.tensor);
}

/* True if the call uses dtensors, which move in the engine's default mode alone. */
static bool takes_dtensors(const move_bench *b)
{
    tsr_mode own;
    return b->way->dtensors && place_parse_mode(b->setup.place, NULL, &own) == EXIT_DONE &&
           b->setup.request.mode == own;
}

static tsr_status make_data(side *s)
{
    move_bench *const b = s->bench;
    const place *const p = b->setup.place;
    s->stream = place_stream(p, s->rank);
    TSR_TRY(move_data_create(p, s->comm, s->move.from, s->move.to, &s->data));
    if (takes_dtensors(b)) {
        TSR_TRY(tsr_dtensor_from_local(&s->data.source.tensor, s->move.from, NULL, &s->x));
        if (!b->way->new_results)
            TSR_TRY(tsr_dtensor_from_local(&s->data.destination.tensor, s->move.to, NULL, &s->y));
    }
    bench_step(&b->settings, p, s->rank);
    return TSR_OK;
}

/* Counts the wrong elements of the last call's result: a new tensor, or `data`. */
static tsr_status count_wrong(tsr_comm *comm, void *arg, int64_t *wrong)
{
    const side *const s = arg;
    move_data seen = s->data;
    (void)comm;
    if (s->bench->way->new_results)
        seen.destination.tensor = tsr_dtensor_to_local(s->y);
    return move_data_count_wrong(&seen, wrong);
}

/* Sets the bytes that the busiest rank receives. */
static tsr_status find_received(const side *s)
{
    int64_t received = tsr_plan_bytes_received(s->move.plan);
    TSR_TRY(tsr_comm_all_reduce(s->comm, &received, &received, 1, TSR_I64, TSR_MAX, tsr_device_host(), NULL));
    if (bench_keeps(s->bench->setup.place, s->rank))
        s->bench->received = received;
    return TSR_OK;
}

static tsr_status run_side(side *s)
{
    move_bench *const b = s->bench;
    const place *const p = b->setup.place;
    const local *const destination = &s->data.destination;
    tsr_bench_options options = bench_options(&b->settings, p, s->rank);
    tsr_bench_result result;
    options.no_copy = 0;
    TSR_TRY(find_received(s));
    TSR_TRY(make_data(s));
    const tsr_bench_subject subject = {
        .call = call, .check = count_wrong, .arg = s, .bytes = destination->bytes, .result = destination->tensor.data};
    TSR_TRY(tsr_bench_call(s->comm, &subject, &options, &result));
    if (b->settings.checks)
        bench_step(&b->settings, p, s->rank);
    if (s->rank == 0)
        b->kept = tsr_context_kept_statistics(tsr_comm_context(s->comm));
    if (bench_keeps(p, s->rank))
        b->result = result;
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    move_bench *const b = arg;
    side s = {.bench = b, .comm = comm, .rank = tsr_comm_rank(comm)};
    TSR_TRY(move_create(b->setup.place, comm, &b->setup.request, &s.move));
    const tsr_status status = run_side(&s);
    tsr_dtensor_destroy(s.x);
    tsr_dtensor_destroy(s.y);
    move_data_free(&s.data);
    move_finish(&s.move);
    return status;
}

void move_bench_finish(move_bench *b)
{
    move_setup_finish(&b->setup);
}

/* Refuses --new-result with a mode or a stream, which tsr_redistribute() does not take. */
static int check_way(const move_bench *b)
{
    const place *const p = b->setup.place;
    if (!b->way->new_results)
        return EXIT_DONE;
    if (place_enqueues(p))
        return complain(
            EXIT_REFUSED,
            "--new-result is not timed on device %s, for tsr_redistribute() takes no stream; give --device host",
            place_device_name(p));
    if (!takes_dtensors(b))
        return complain(
            EXIT_REFUSED,
            "--new-result with --mode %s: tsr_redistribute() moves in the engine's own mode; leave --mode out",
            mode_name(b->setup.request.mode));
    return EXIT_DONE;
}

/* Timing of enqueuing gets short loops and no long warm-up. */
static void settle_settings(move_bench *b)
{
    if (!b->way->enqueues || !place_enqueues(b->setup.place))
        return;
    b->settings.warm_seconds = 0;
    if (b->settings.calls == 0)
        b->settings.calls = ENQUEUED_CALLS;
}

int move_bench_run(const tool_arguments *given, const bench_settings *settings, const move_way *way, move_bench *out)
{
    *out = (move_bench){.way = way, .settings = *settings};
    int status = move_setup_read(given, &out->setup);
    if (status == EXIT_DONE)
        status = check_way(out);
    if (status == EXIT_DONE)
        settle_settings(out);
    return bench_on_ranks(settings, status, out->setup.place, out->setup.ranks, run_rank, out);
}

static double rate(double bytes, double seconds)
{
    return seconds > 0 ? bytes / seconds : 0;
}

/* Bytes of the source without replicas; every term of a Partial counts. */
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

/* A plain copy reads and writes each byte of the payload, so it touches twice the payload. */
static void find_limit(const move_bench *b, move_figures *f)
{
    const double payload = (double)b->result.bytes, touched = distinct_bytes(b->setup.from) + payload;
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

/* Sets f->ratio, by a survey of the plan for all ranks. */
static int find_ratio(const move_bench *b, move_figures *f)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    tsr_plan_survey survey;
    tsr_plan *plan;
    options.rank = TSR_RANK_NONE;
    options.mode = b->setup.request.mode;
    if (tsr_plan_create(b->setup.from, b->setup.to, &options, &plan) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    const tsr_status status = tsr_plan_survey_of(plan, &survey);
    tsr_plan_destroy(plan);
    f->ratio = survey.ratio;
    return status == TSR_OK ? EXIT_DONE : complain_status(EXIT_REFUSED);
}

/* The name of the reduction of the first Partial mesh dim that is reduced; "none" if there is
 * none. */
static const char *find_reduction(const move_bench *b)
{
    const tsr_layout *const from = b->setup.from, *const to = b->setup.to;
    for (int d = 0; d < tsr_mesh_ndim(b->setup.mesh); d++) {
        const tsr_placement *const before = &tsr_layout_placements(from)[d], *const after =
                                                                                 &tsr_layout_placements(to)[d];
        if (before->kind == TSR_PARTIAL && after->kind != TSR_PARTIAL)
            return tsr_reduce_op_name(before->op);
    }
    return "none";
}

int move_bench_sum_up(move_bench *b, move_figures *out)
{
    const tsr_bench_result *const r = &b->result;
    const int64_t before = largest_shard(b->setup.from), after = largest_shard(b->setup.to);
    move_figures f = {.seconds = r->seconds,
                      .enqueue = r->enqueue,
                      .bandwidth = r->bandwidth,
                      .peak_bandwidth = r->peak_bandwidth,
                      .of_peak = r->of_peak,
                      .peak_copy = r->peak_copy,
                      .wrong = b->settings.checks ? r->wrong : 0,
                      .received = b->received};
    find_limit(b, &f);
    f.size = before > after ? before : after;
    f.algbw = rate((double)f.size, f.seconds.median);
    f.busbw = rate((double)f.received, f.seconds.median);
    f.reduction = find_reduction(b);
    f.time = b->way->enqueues && place_enqueues(b->setup.place) ? f.enqueue : f.seconds;
    *out = f;
    return find_ratio(b, out);
}
