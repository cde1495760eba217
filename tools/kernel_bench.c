#include "kernel_bench.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/sys/status.h>

#define ELEMENT 4 /* bytes: f32 */
#define SOURCES 2
#define APART   2 /* rows of sources: so many rows from one to the next */

/** Calls after which ways that are still being tried are left to that. */
#define MOST_TRIALS 64

/** One of what takes turns: the ways, then calls that choose for themselves, then plain copies. */
enum { CHOOSING = TSR_MOST_KERNEL_WAYS, COPIES, TURNS = COPIES + MAX_PLAIN_COPIES };

typedef struct kernel_bench {
    place *place;
    kernel_request request;
    bench_settings settings;
    int64_t rows, part; /**< of one destination: rows, and bytes */
    int targets;        /**< destinations */
    samples times[TURNS];
    char chosen[32]; /**< by rank 0 */
} kernel_bench;

typedef struct side {
    kernel_bench *bench;
    tsr_comm *comm;
    const tsr_device_table *table;
    void *sources[SOURCES], *destinations[SOURCES];
    tsr_kernel_choices *choices[COPIES];
    int turn;
    bench_loop loops[TURNS];
} side;

static bool is_copy(const kernel_bench *b)
{
    return strcmp(b->request.kernel, "copy") == 0;
}

/** Whether there is such a turn. */
static bool exists(int turn)
{
    if (turn >= COPIES)
        return plain_copy_get(turn - COPIES) != NULL;
    return turn == CHOOSING || tsr_kernel_way_get((size_t)turn) != NULL;
}

static int64_t source_stride(const kernel_bench *b)
{
    return b->request.run_bytes / ELEMENT * (b->rows > 1 ? APART : 1);
}

static tsr_status copy_rows(const side *s)
{
    const kernel_bench *const b = s->bench;
    const int64_t columns = b->request.run_bytes / ELEMENT;
    const tsr_box_copy box = {.dst = s->destinations[0],
                              .src = s->sources[0],
                              .element_bytes = ELEMENT,
                              .ndim = 2,
                              .shape = {b->rows, columns},
                              .dst_strides = {columns, 1},
                              .src_strides = {source_stride(b), 1}};
    return s->table->copy_boxes(s->choices[s->turn], 0, &box, 1, NULL);
}

static tsr_status reduce_rows(const side *s)
{
    const kernel_bench *const b = s->bench;
    const int64_t columns = b->request.run_bytes / ELEMENT;
    const int64_t sources[SOURCES][TSR_MAX_DIMS] = {{source_stride(b), 1}, {source_stride(b), 1}};
    const int64_t destinations[SOURCES][TSR_MAX_DIMS] = {{columns, 1}, {columns, 1}};
    const tsr_box_reduce reduction = {.dtype = TSR_F32,
                                      .op = TSR_SUM,
                                      .divisor = 1,
                                      .ndim = 2,
                                      .shape = {b->rows, columns},
                                      .src_count = SOURCES,
                                      .dst_count = b->targets,
                                      .src = (const void *const *)s->sources,
                                      .src_strides = sources,
                                      .dst = s->destinations,
                                      .dst_strides = destinations};
    return s->table->reduce(s->choices[s->turn], 0, &reduction, NULL);
}

static tsr_status take_turn(void *arg)
{
    const side *const s = arg;
    if (s->turn < COPIES)
        return is_copy(s->bench) ? copy_rows(s) : reduce_rows(s);
    for (int t = 0; t < s->bench->targets; t++)
        plain_copy_get(s->turn - COPIES)->copy(s->destinations[t], s->sources[t], (size_t)s->bench->part);
    return TSR_OK;
}

/** Whatever the environment says: every way is asked for. */
static const char *nothing(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

static tsr_status pin(const side *s, const char *way, tsr_kernel_choices **out)
{
    char kernels[64];
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_context *context;
    snprintf(kernels, sizeof kernels, "%s,%s", tsr_context_kernels(tsr_comm_context(s->comm)), way);
    options.kernels = kernels;
    options.environment = nothing;
    TSR_TRY(tsr_context_create(&options, &context));
    const tsr_status status = tsr_kernel_choices_create(context, out);
    tsr_context_destroy(context);
    return status;
}

static tsr_status make_choices(side *s)
{
    for (size_t way = 0; tsr_kernel_way_get(way) != NULL; way++)
        TSR_TRY(pin(s, tsr_kernel_way_get(way), &s->choices[way]));
    TSR_TRY(tsr_kernel_choices_create(tsr_comm_context(s->comm), &s->choices[CHOOSING]));
    return tsr_device_host_table(tsr_context_kernels(tsr_comm_context(s->comm)), &s->table);
}

/** All memory is touched, by the rank that uses it. */
static tsr_status make_memory(side *s)
{
    const kernel_bench *const b = s->bench;
    for (int i = 0; i < SOURCES; i++) {
        TSR_TRY(place_allocate(b->place, s->comm, (size_t)(APART * b->part), &s->sources[i]));
        memset(s->sources[i], 0, (size_t)(APART * b->part));
    }
    for (int i = 0; i < b->targets; i++) {
        TSR_TRY(place_allocate(b->place, s->comm, (size_t)b->part, &s->destinations[i]));
        memset(s->destinations[i], 0, (size_t)b->part);
    }
    return TSR_OK;
}

static const char *chosen_way(const side *s)
{
    const kernel_request *const r = &s->bench->request;
    return tsr_kernel_choices_way(s->choices[CHOOSING], r->kernel, (size_t)r->run_bytes, (size_t)r->bytes);
}

/** Until this rank has chosen. Ranks call as often as each needs, and wait for one another at the next barrier. */
static tsr_status choose(side *s)
{
    s->turn = CHOOSING;
    for (int i = 0; i < MOST_TRIALS && chosen_way(s) == NULL; i++)
        TSR_TRY(take_turn(s));
    return TSR_OK;
}

static tsr_status settle_loops(side *s)
{
    const kernel_bench *const b = s->bench;
    for (s->turn = 0; s->turn < TURNS; s->turn++)
        if (exists(s->turn)) {
            s->loops[s->turn] = (bench_loop){take_turn, s, 1};
            TSR_TRY(bench_loop_settle(b->place, s->comm, &b->settings, &s->loops[s->turn]));
        }
    return TSR_OK;
}

static tsr_status run_turns(side *s, int64_t iteration)
{
    kernel_bench *const b = s->bench;
    bench_seconds seconds;
    for (s->turn = 0; s->turn < TURNS; s->turn++) {
        if (!exists(s->turn))
            continue;
        TSR_TRY(bench_loop_time(b->place, s->comm, &s->loops[s->turn], &seconds));
        if (iteration >= 0)
            b->times[s->turn].seconds[tsr_comm_rank(s->comm) * b->settings.iterations + iteration] = seconds.whole;
    }
    bench_step(&b->settings, b->place, tsr_comm_rank(s->comm));
    return TSR_OK;
}

static tsr_status run_side(side *s)
{
    kernel_bench *const b = s->bench;
    TSR_TRY(make_choices(s));
    TSR_TRY(make_memory(s));
    TSR_TRY(settle_loops(s));
    TSR_TRY(choose(s));
    for (int64_t i = -b->settings.warm_ups; i < b->settings.iterations; i++)
        TSR_TRY(run_turns(s, i));
    if (tsr_comm_rank(s->comm) == 0)
        snprintf(b->chosen, sizeof b->chosen, "%s", chosen_way(s) != NULL ? chosen_way(s) : "");
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.bench = arg, .comm = comm};
    const tsr_status status = run_side(&s);
    for (int i = 0; i < SOURCES; i++) {
        place_release(s.bench->place, comm, s.sources[i], (size_t)(APART * s.bench->part));
        place_release(s.bench->place, comm, s.destinations[i], (size_t)s.bench->part);
    }
    for (int i = 0; i < COPIES; i++)
        tsr_kernel_choices_destroy(s.choices[i]);
    return status;
}

/** Whole elements, whole rows. */
static int settle_sizes(kernel_bench *b)
{
    kernel_request *const r = &b->request;
    b->targets = strcmp(r->kernel, "reduce-to-all") == 0 ? SOURCES : 1;
    const int64_t most = r->bytes / b->targets;
    r->run_bytes = (r->run_bytes < most ? r->run_bytes : most) / ELEMENT * ELEMENT;
    if (r->run_bytes == 0)
        return complain(EXIT_REFUSED, "%s of %lld bytes in runs of %lld: elements have %d bytes, so that both must be larger", r->kernel,
                        (long long)b->request.bytes, (long long)b->request.run_bytes, ELEMENT);
    b->rows = most / r->run_bytes;
    b->part = b->rows * r->run_bytes;
    r->bytes = b->part * b->targets;
    return EXIT_DONE;
}

static double rate(const kernel_bench *b, spread seconds)
{
    return seconds.median > 0 ? (double)b->request.bytes * b->request.ranks / seconds.median : 0;
}

static void sum_up(const kernel_bench *b, kernel_figures *out, int *count)
{
    double peak = 0;
    const char *peak_copy = NULL;
    int best = 0;
    for (int c = 0; plain_copy_get(c) != NULL; c++) {
        const double bandwidth = rate(b, samples_spread(&b->times[COPIES + c]));
        peak_copy = bandwidth > peak || c == 0 ? plain_copy_get(c)->name : peak_copy;
        peak = bandwidth > peak ? bandwidth : peak;
    }
    for (*count = 0; tsr_kernel_way_get((size_t)*count) != NULL; ++*count) {
        kernel_figures *const f = &out[*count];
        *f = (kernel_figures){.request = b->request, .way = tsr_kernel_way_get((size_t)*count), .peak_copy = peak_copy};
        f->seconds = samples_spread(&b->times[*count]);
        f->bandwidth = rate(b, f->seconds);
        f->of_peak = peak > 0 ? f->bandwidth / peak : 0;
        f->chosen = strcmp(f->way, b->chosen) == 0;
        best = f->bandwidth > out[best].bandwidth ? *count : best;
    }
    for (int i = 0; i < *count; i++) {
        out[i].of_best = out[best].bandwidth > 0 ? out[i].bandwidth / out[best].bandwidth : 0;
        out[i].as_good = out[i].seconds.min <= out[best].seconds.max;
    }
}

static int make_samples(kernel_bench *b)
{
    int status = EXIT_DONE;
    for (int turn = 0; turn < TURNS && status == EXIT_DONE; turn++)
        if (exists(turn))
            status = samples_create(b->request.ranks, b->settings.iterations, &b->times[turn]);
    return status;
}

int kernel_bench_run(place *p, const kernel_request *request, const bench_settings *settings, kernel_figures *out, int *count)
{
    kernel_bench b = {.place = p, .request = *request, .settings = *settings};
    int status = settle_sizes(&b);
    if (status == EXIT_DONE)
        status = make_samples(&b);
    status = bench_on_ranks(settings, status, p, request->ranks, run_rank, &b);
    if (status == EXIT_DONE)
        sum_up(&b, out, count);
    for (int turn = 0; turn < TURNS; turn++)
        free(b.times[turn].seconds);
    return status;
}
