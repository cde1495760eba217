#include "bench/kernels/kernel_bench.h"

#include "place/kernel_call.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Upper bound of the calls to wait for a choice. */
#define MOST_TRIALS 64

/* Upper bound of the plain copies. */
#define MOST_COPIES 4

/* The turns of an iteration: each way, then calls that choose for themselves, then each plain
 * copy. */
enum { CHOOSING = TSR_MOST_KERNEL_WAYS, COPIES, TURNS = COPIES + MOST_COPIES };

typedef struct kernel_bench {
    place *place;
    kernel_request request;
    bench_settings settings;
    kernel_call call; /* without memory, which each rank adds */
    spread times[TURNS];
    char chosen[32]; /* the way that rank 0's calls chose; "" for none */
} kernel_bench;

typedef struct side {
    kernel_bench *bench;
    tsr_comm *comm;
    const tsr_device_table *table;
    kernel_call call;
    tsr_kernel_choices *choices[COPIES];
} side;

/* The argument of one turn on one rank. */
typedef struct turn {
    const side *side;
    int index;
    tsr_bench_copier *copy; /* of a plain copy */
} turn;

/* True if the turn exists on this machine. */
static bool exists(int index)
{
    if (index >= COPIES)
        return tsr_bench_copier_get(index - COPIES, NULL) != NULL;
    return index == CHOOSING || tsr_kernel_way_get((size_t)index);
}

static tsr_status take_turn(tsr_comm *comm, void *arg)
{
    const turn *const now = arg;
    const side *const s = now->side;
    const kernel_call *const c = &s->call;
    (void)comm;
    if (now->index < COPIES)
        return kernel_call_run(c, s->table, s->choices[now->index]);
    for (int t = 0; t < c->targets; t++)
        now->copy(c->destinations[t], c->sources[t], (size_t)c->part_bytes);
    return TSR_OK;
}

/* An environment without variables, so that TSR_KERNELS does not override the way. */
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

/* Each rank touches its own memory first. */
static tsr_status make_memory(side *s)
{
    const kernel_bench *const b = s->bench;
    const size_t source = (size_t)kernel_call_source_bytes(&b->call), destination = (size_t)b->call.part_bytes;
    s->call = b->call;
    for (int i = 0; i < KERNEL_SOURCES; i++) {
        TSR_TRY(place_allocate(b->place, s->comm, source, &s->call.sources[i]));
        memset(s->call.sources[i], 0, source);
    }
    for (int i = 0; i < b->call.targets; i++) {
        TSR_TRY(place_allocate(b->place, s->comm, destination, &s->call.destinations[i]));
        memset(s->call.destinations[i], 0, destination);
    }
    return TSR_OK;
}

static const char *chosen_way(const side *s)
{
    return kernel_call_way(&s->call, s->choices[CHOOSING]);
}

/* Calls until this rank has chosen, before its calls are timed. Ranks need different numbers of
 * calls. */
static tsr_status choose(tsr_comm *comm, void *arg)
{
    const turn *const now = arg;
    for (int i = 0; i < MOST_TRIALS && !chosen_way(now->side); i++)
        TSR_TRY(take_turn(comm, arg));
    return TSR_OK;
}

static tsr_status run_turns(side *s)
{
    kernel_bench *const b = s->bench;
    const int rank = tsr_comm_rank(s->comm);
    const tsr_bench_options options = bench_options(&b->settings, b->place, rank);
    turn turns[TURNS];
    tsr_bench_subject subjects[TURNS];
    tsr_bench_result results[TURNS];
    int count = 0;
    for (int i = 0; i < TURNS; i++) {
        if (!exists(i))
            continue;
        turns[count] = (turn){s, i, tsr_bench_copier_get(i - COPIES, NULL)};
        subjects[count] =
            (tsr_bench_subject){.call = take_turn, .prepare = i == CHOOSING ? choose : NULL, .arg = &turns[count]};
        count++;
    }
    TSR_TRY(tsr_bench_turns(s->comm, subjects, count, &options, results));
    for (int i = 0; i < count && bench_keeps(b->place, rank); i++)
        b->times[turns[i].index] = results[i].seconds;
    return TSR_OK;
}

static tsr_status run_side(side *s)
{
    kernel_bench *const b = s->bench;
    TSR_TRY(make_choices(s));
    TSR_TRY(make_memory(s));
    TSR_TRY(run_turns(s));
    if (tsr_comm_rank(s->comm) == 0)
        snprintf(b->chosen, sizeof b->chosen, "%s", chosen_way(s) ? chosen_way(s) : "");
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    side s = {.bench = arg, .comm = comm};
    const tsr_status status = run_side(&s);
    for (int i = 0; i < KERNEL_SOURCES; i++) {
        place_release(s.bench->place, comm, s.call.sources[i], (size_t)kernel_call_source_bytes(&s.bench->call));
        place_release(s.bench->place, comm, s.call.destinations[i], (size_t)s.bench->call.part_bytes);
    }
    for (int i = 0; i < COPIES; i++)
        tsr_kernel_choices_destroy(s.choices[i]);
    return status;
}

static int settle_sizes(kernel_bench *b)
{
    kernel_request *const r = &b->request;
    if (!kernel_call_make(r->kernel, r->run_bytes, r->bytes, &b->call))
        return complain(EXIT_REFUSED,
                        "%s of %lld bytes in runs of %lld: that is less than an element of f32 for each destination",
                        r->kernel, (long long)r->bytes, (long long)r->run_bytes);
    r->run_bytes = b->call.run_bytes;
    r->bytes = kernel_call_bytes(&b->call);
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
    const char *name;
    for (int c = 0; tsr_bench_copier_get(c, &name) != NULL; c++) {
        const double bandwidth = rate(b, b->times[COPIES + c]);
        peak_copy = bandwidth > peak || c == 0 ? name : peak_copy;
        peak = bandwidth > peak ? bandwidth : peak;
    }
    for (*count = 0; tsr_kernel_way_get((size_t)*count) != NULL; ++*count) {
        kernel_figures *const f = &out[*count];
        *f = (kernel_figures){.request = b->request, .way = tsr_kernel_way_get((size_t)*count), .peak_copy = peak_copy};
        f->seconds = b->times[*count];
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

int kernel_bench_run(place *p, const kernel_request *request, const bench_settings *settings, kernel_figures *out,
                     int *count)
{
    kernel_bench b = {.place = p, .request = *request, .settings = *settings};
    const int status = bench_on_ranks(settings, settle_sizes(&b), p, request->ranks, run_rank, &b);
    if (status == EXIT_DONE)
        sum_up(&b, out, count);
    return status;
}
