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
    int copy; /* index of the plain copy that is timed now */
    bench_loop moves, copies[MAX_PLAIN_COPIES];
} side;

/* Destroys the result before, so that there is one at a time, and makes a new one. */
static tsr_status make_result(side *s)
{
    tsr_dtensor_destroy(s->y);
    s->y = NULL;
    return tsr_redistribute(s->x, tsr_layout_placements(s->move.to), &s->y);
}

static tsr_status call(void *arg)
{
    side *const s = arg;
    if (s->bench->way->new_results)
        return make_result(s);
    if (s->x)
        return tsr_redistribute_into(s->x, s->y, s->stream);
    return move_execute(&s->move, &s->data.source.tensor, &s->data.destination.tensor);
}

static tsr_status copy_part(void *arg)
{
    const side *const s = arg;
    return peak_run(&s->bench->peak, s->rank, s->copy);
}

static void keep(samples *s, int rank, int64_t iteration, double seconds)
{
    if (iteration >= 0)
        s->seconds[rank * s->iterations + iteration] = seconds;
}

static tsr_status settle_loop(side *s, bench_body *body, bench_loop *out)
{
    *out = (bench_loop){body, s, 1};
    return bench_loop_settle(s->bench->setup.place, s->comm, &s->bench->settings, out);
}

static tsr_status settle_loops(side *s)
{
    for (s->copy = 0; peak_name(&s->bench->peak, s->copy) != NULL; s->copy++)
        TSR_TRY(settle_loop(s, copy_part, &s->copies[s->copy]));
    TSR_TRY(settle_loop(s, call, &s->moves));
    if (s->rank == 0)
        s->bench->calls = s->moves.runs;
    return TSR_OK;
}

/* Copies run first, so that the move writes the result that is checked at the end. */
static tsr_status run_iteration(side *s, int64_t iteration)
{
    move_bench *const b = s->bench;
    const place *const p = b->setup.place;
    bench_seconds seconds;
    for (s->copy = 0; peak_name(&b->peak, s->copy) != NULL; s->copy++) {
        TSR_TRY(bench_loop_time(p, s->comm, &s->copies[s->copy], &seconds));
        keep(&b->copies[s->copy], s->rank, iteration, seconds.whole);
    }
    TSR_TRY(bench_loop_time(p, s->comm, &s->moves, &seconds));
    keep(&b->moves, s->rank, iteration, seconds.whole);
    keep(&b->enqueues, s->rank, iteration, seconds.enqueue);
    bench_step(&b->settings, p, s->rank);
    return TSR_OK;
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
    TSR_TRY(peak_enter(&b->peak, s->comm, s->data.destination.tensor.data));
    bench_step(&b->settings, p, s->rank);
    return TSR_OK;
}

/* Counts the wrong elements of the last call's result: a new tensor, or `data`. */
static tsr_status count_wrong(const side *s, int64_t *wrong)
{
    move_data seen = s->data;
    if (s->bench->way->new_results)
        seen.destination.tensor = tsr_dtensor_to_local(s->y);
    return move_data_count_wrong(&seen, wrong);
}

/* Gives all processes the times and figures of all ranks. */
static tsr_status share_figures(const side *s)
{
    const move_bench *const b = s->bench;
    const place *const p = b->setup.place;
    TSR_TRY(samples_share(&b->moves, p, s->comm));
    TSR_TRY(samples_share(&b->enqueues, p, s->comm));
    for (int c = 0; peak_name(&b->peak, c) != NULL; c++)
        TSR_TRY(samples_share(&b->copies[c], p, s->comm));
    return place_share(p, s->comm, b->rows, sizeof *b->rows);
}

static tsr_status run_side(side *s)
{
    move_bench *const b = s->bench;
    struct row *const own = &b->rows[s->rank];
    own->bytes_received = tsr_plan_bytes_received(s->move.plan);
    TSR_TRY(make_data(s));
    TSR_TRY(settle_loops(s));
    for (int64_t i = -b->settings.warm_ups; i < b->moves.iterations; i++)
        TSR_TRY(run_iteration(s, i));
    if (s->rank == 0)
        b->kept = tsr_context_kept_statistics(tsr_comm_context(s->comm));
    if (b->settings.checks) {
        TSR_TRY(count_wrong(s, &own->wrong));
        bench_step(&b->settings, b->setup.place, s->rank);
    }
    return share_figures(s);
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    move_bench *const b = arg;
    side s = {.bench = b, .comm = comm, .rank = tsr_comm_rank(comm)};
    TSR_TRY(move_create(b->setup.place, comm, &b->setup.request, &s.move));
    const tsr_status status = run_side(&s);
    peak_leave(&b->peak, comm);
    tsr_dtensor_destroy(s.x);
    tsr_dtensor_destroy(s.y);
    move_data_free(&s.data);
    move_finish(&s.move);
    return status;
}

static int make_rows(move_bench *b)
{
    b->rows = calloc((size_t)b->setup.ranks, sizeof *b->rows);
    if (!b->rows)
        return complain(EXIT_REFUSED, "there is no memory for %d ranks", b->setup.ranks);
    return peak_create(b->setup.place, b->setup.to, b->setup.ranks, &b->peak);
}

static int make_samples(move_bench *b)
{
    const int64_t iterations = b->settings.iterations;
    int status = samples_create(b->setup.ranks, iterations, &b->moves);
    if (status == EXIT_DONE)
        status = samples_create(b->setup.ranks, iterations, &b->enqueues);
    for (int c = 0; status == EXIT_DONE && peak_name(&b->peak, c); c++)
        status = samples_create(b->setup.ranks, iterations, &b->copies[c]);
    return status;
}

void move_bench_finish(move_bench *b)
{
    for (int c = 0; c < MAX_PLAIN_COPIES; c++)
        free(b->copies[c].seconds);
    free(b->moves.seconds);
    free(b->enqueues.seconds);
    free(b->rows);
    peak_finish(&b->peak);
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
    if (status == EXIT_DONE) {
        settle_settings(out);
        status = make_rows(out);
    }
    if (status == EXIT_DONE)
        status = make_samples(out);
    return bench_on_ranks(settings, status, out->setup.place, out->setup.ranks, run_rank, out);
}

static double rate(double bytes, double seconds)
{
    return seconds > 0 ? bytes / seconds : 0;
}

/* Finds the plain copy with the least median. */
static void find_peak(move_bench *b, move_figures *f)
{
    for (int c = 0; peak_name(&b->peak, c) != NULL; c++) {
        const double bandwidth = rate((double)b->peak.payload, samples_spread(&b->copies[c]).median);
        if (c > 0 && bandwidth <= f->peak_bandwidth)
            continue;
        f->peak_bandwidth = bandwidth;
        f->peak_copy = peak_name(&b->peak, c);
    }
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
    const double payload = (double)b->peak.payload, touched = distinct_bytes(b->setup.from) + payload;
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
    move_figures f = {.seconds = samples_spread(&b->moves), .enqueue = samples_spread(&b->enqueues)};
    const int64_t before = largest_shard(b->setup.from), after = largest_shard(b->setup.to);
    find_peak(b, &f);
    f.bandwidth = rate((double)b->peak.payload, f.seconds.median);
    f.of_peak = rate(f.bandwidth, f.peak_bandwidth);
    find_limit(b, &f);
    f.size = before > after ? before : after;
    for (int r = 0; r < b->setup.ranks; r++) {
        f.wrong += b->rows[r].wrong;
        f.received = b->rows[r].bytes_received > f.received ? b->rows[r].bytes_received : f.received;
    }
    f.algbw = rate((double)f.size, f.seconds.median);
    f.busbw = rate((double)f.received, f.seconds.median);
    f.reduction = find_reduction(b);
    f.time = b->way->enqueues && place_enqueues(b->setup.place) ? f.enqueue : f.seconds;
    *out = f;
    return find_ratio(b, out);
}
