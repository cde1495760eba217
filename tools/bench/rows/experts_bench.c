/* bench rows --op experts: how long tokens take to experts and back, next to copies by hand. */
#include "bench/rows/experts_bench.h"

#include "bench/rows/hand_experts.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/place.h"

#include <tessera/experts.h>
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Lists of ids that take turns from call to call. */
enum { LISTS = 4 };

/* The calls, and copies by hand: plain, and past the cache. */
enum { SUBJECTS = 3 };

typedef struct job {
    place *place;
    int ranks;
    int64_t experts, width, tokens; /* tokens of a rank */
    bool is_zipf;
    bench_settings settings;
    float **rows; /* of each rank, for copies by hand */
    tsr_bench_result results[SUBJECTS];
    const tool_arguments *given;
} job;

/* One rank's side. */
typedef struct side {
    const job *j;
    tsr_comm *comm;
    int rank;
    tsr_experts_plan *plan;
    int64_t *lists; /* of ids: list, token, slot */
    float **places; /* where their rows are by hand */
    float *x, *out, *weights, *rows;
    int64_t *sizes;
    int turn; /* of the lists */
} side;

static int64_t ids_of_list(const job *j)
{
    return j->tokens * HAND_SLOTS;
}

/* The most rows that can come to a rank. */
static int64_t room_of(const job *j)
{
    return j->ranks * ids_of_list(j);
}

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* An expert. Of zipf's, the n-th is drawn about 1/n as often as the first. */
static int64_t draw_id(const job *j, uint64_t *state)
{
    const uint64_t drawn = draw(state);
    if (!j->is_zipf)
        return (int64_t)(drawn % (uint64_t)j->experts);
    const int64_t id = (int64_t)(exp((double)(drawn % (1 << 24)) / (1 << 24) * log((double)j->experts + 1)) - 1);
    return id < j->experts ? id : j->experts - 1;
}

/* The ids of a list of a rank; a token's experts differ if there are several. */
static void draw_list(const job *j, int rank, int list, int64_t *ids)
{
    uint64_t state = (uint64_t)(rank * LISTS + list) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int64_t i = 0; i < ids_of_list(j); i += HAND_SLOTS) {
        ids[i] = draw_id(j, &state);
        do
            ids[i + 1] = draw_id(j, &state);
        while (ids[i + 1] == ids[i] && j->experts > 1);
    }
}

static float value_of(int rank, int64_t token)
{
    return (float)((rank * 257 + token) % 1000);
}

/* The rank of an expert: each has as many, the last ranks perhaps fewer. */
static int64_t owner_of(const job *j, int64_t expert)
{
    return expert / ((j->experts + j->ranks - 1) / j->ranks);
}

/* Finds where the rows of this rank's ids lie: behind those of lower experts of the same owner, and
 * of lower ranks. `counts`, `next` have an element for each expert. */
static void find_places(const side *s, int list, int64_t *ids, int64_t *counts, int64_t *next)
{
    const job *const j = s->j;
    memset(counts, 0, (size_t)j->experts * sizeof *counts);
    for (int rank = 0; rank < j->ranks; rank++) {
        if (rank == s->rank)
            memcpy(next, counts, (size_t)j->experts * sizeof *next);
        draw_list(j, rank, list, ids);
        for (int64_t i = 0; i < ids_of_list(j); i++)
            counts[ids[i]]++;
    }
    int64_t start = 0;
    for (int64_t expert = 0; expert < j->experts; expert++) {
        start = expert > 0 && owner_of(j, expert) == owner_of(j, expert - 1) ? start + counts[expert - 1] : 0;
        next[expert] += start;
    }
    const int64_t *const own = s->lists + list * ids_of_list(j);
    for (int64_t i = 0; i < ids_of_list(j); i++)
        s->places[list * ids_of_list(j) + i] = j->rows[owner_of(j, own[i])] + next[own[i]]++ * j->width;
}

static tsr_status find_all_places(const side *s)
{
    const job *const j = s->j;
    int64_t *const scratch = calloc((size_t)(ids_of_list(j) + 2 * j->experts), sizeof *scratch);
    if (!scratch)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld ids", (long long)ids_of_list(j));
    for (int list = 0; list < LISTS; list++)
        find_places(s, list, scratch, scratch + ids_of_list(j), scratch + ids_of_list(j) + j->experts);
    free(scratch);
    return TSR_OK;
}

static tsr_status call_library(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    const job *const j = s->j;
    const int64_t tokens[] = {j->tokens, j->width}, slots[] = {j->tokens, HAND_SLOTS}, room[] = {room_of(j), j->width};
    const int64_t experts = tsr_experts_plan_count(s->plan);
    (void)comm;
    s->turn = (s->turn + 1) % LISTS;
    const tsr_tensor x = tsr_tensor_contiguous(s->x, TSR_F32, 2, tokens),
                     out = tsr_tensor_contiguous(s->out, TSR_F32, 2, tokens),
                     ids = tsr_tensor_contiguous(s->lists + s->turn * ids_of_list(j), TSR_I64, 2, slots),
                     weights = tsr_tensor_contiguous(s->weights, TSR_F32, 2, slots),
                     rows = tsr_tensor_contiguous(s->rows, TSR_F32, 2, room),
                     sizes = tsr_tensor_contiguous(s->sizes, TSR_I64, 1, &experts);
    TSR_TRY(tsr_experts_dispatch(s->plan, &x, &ids, &rows, &sizes));
    return tsr_experts_combine(s->plan, &rows, &weights, &out);
}

/* By hand, ranks meet before they write peers' rows, after it, and after they have read them. `arg`
 * has the side, and for copies past the cache something more. */
static tsr_status call_by_hand(tsr_comm *comm, void *arg)
{
    side *const s = ((side **)arg)[0];
    const int stream = ((side **)arg)[1] != NULL;
    s->turn = (s->turn + 1) % LISTS;
    const hand_tokens tokens = {.count = s->j->tokens,
                                .width = s->j->width,
                                .x = s->x,
                                .places = s->places + s->turn * ids_of_list(s->j),
                                .weights = s->weights,
                                .out = s->out};
    TSR_TRY(tsr_comm_barrier(comm));
    hand_dispatch(&tokens, stream);
    TSR_TRY(tsr_comm_barrier(comm));
    hand_combine(&tokens, stream);
    return tsr_comm_barrier(comm);
}

/* Experts that change nothing give each token three times itself. */
static tsr_status check(tsr_comm *comm, void *arg, int64_t *wrong)
{
    side *const s = arg;
    const job *const j = s->j;
    memset(s->out, 0, (size_t)(j->tokens * j->width) * sizeof *s->out);
    TSR_TRY(call_library(comm, s));
    for (int64_t i = 0; i < j->tokens * j->width; i++)
        *wrong += s->out[i] != 3 * value_of(s->rank, i / j->width);
    return TSR_OK;
}

static tsr_status make_plan(side *s)
{
    char text[16];
    const int64_t shape[] = {s->j->experts};
    tsr_mesh *mesh;
    tsr_layout *layout = NULL;
    snprintf(text, sizeof text, "%d", s->j->ranks);
    TSR_TRY(tsr_mesh_parse(s->comm, NULL, text, &mesh));
    tsr_status status = tsr_layout_parse(mesh, "S(0)", 1, shape, TSR_F32, &layout);
    if (status == TSR_OK)
        status = tsr_experts_plan_create(layout, s->j->tokens, HAND_SLOTS, s->j->width, TSR_F32, NULL, &s->plan);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

static size_t bytes_of_rows(const job *j)
{
    return (size_t)(room_of(j) * j->width) * sizeof(float);
}

static tsr_status make_tokens(side *s)
{
    const job *const j = s->j;
    const size_t elements = (size_t)(j->tokens * j->width), ids = (size_t)(LISTS * ids_of_list(j));
    void *rows;
    TSR_TRY(tsr_comm_alloc(s->comm, bytes_of_rows(j), &rows));
    s->rows = j->rows[s->rank] = rows;
    s->lists = calloc(ids, sizeof *s->lists);
    s->places = calloc(ids, sizeof *s->places);
    s->weights = calloc(ids, sizeof *s->weights);
    s->sizes = calloc((size_t)j->experts, sizeof *s->sizes);
    s->x = aligned_alloc(64, (elements * sizeof(float) + 63) / 64 * 64);
    s->out = aligned_alloc(64, (elements * sizeof(float) + 63) / 64 * 64);
    if (!s->lists || !s->places || !s->weights || !s->sizes || !s->x || !s->out)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld tokens", (long long)j->tokens);
    for (int64_t i = 0; i < ids_of_list(j); i++)
        s->weights[i] = (float)(1 + i % HAND_SLOTS);
    for (size_t i = 0; i < elements; i++)
        s->x[i] = value_of(s->rank, (int64_t)i / j->width);
    for (int list = 0; list < LISTS; list++)
        draw_list(j, s->rank, list, s->lists + list * ids_of_list(j));
    return TSR_OK;
}

static tsr_status measure(job *j, side *s)
{
    void *const plain[] = {s, NULL}, *const streaming[] = {s, s};
    const size_t bytes = (size_t)((HAND_SLOTS + 1) * j->tokens * j->width) * sizeof(float);
    const bool by_hand = place_launched(j->place) == 0;
    const tsr_bench_subject subjects[] = {{.call = call_library, .check = check, .arg = s, .bytes = bytes},
                                          {.call = call_by_hand, .arg = (void *)plain, .bytes = bytes},
                                          {.call = call_by_hand, .arg = (void *)streaming, .bytes = bytes}};
    tsr_bench_result results[SUBJECTS] = {{.bytes = 0}};
    const tsr_bench_options options = bench_options(&j->settings, j->place, s->rank);
    if (by_hand)
        TSR_TRY(find_all_places(s));
    TSR_TRY(tsr_bench_turns(s->comm, subjects, by_hand ? SUBJECTS : 1, &options, results));
    if (bench_keeps(j->place, s->rank))
        memcpy(j->results, results, sizeof results);
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.j = j, .comm = comm, .rank = tsr_comm_rank(comm)};
    tsr_status status = make_plan(&s);
    if (status == TSR_OK)
        status = make_tokens(&s);
    /* Copies by hand write peers' rows once all have made theirs. */
    status = tsr_comm_share_status(comm, "bench rows", status);
    if (status == TSR_OK)
        status = measure(j, &s);
    status = tsr_comm_share_status(comm, "bench rows", status);
    tsr_experts_plan_destroy(s.plan);
    if (s.rows)
        tsr_comm_free(comm, s.rows, bytes_of_rows(j));
    free(s.lists);
    free(s.places);
    free(s.weights);
    free(s.sizes);
    free(s.x);
    free(s.out);
    return status;
}

/* The time of the faster copies by hand over that of the calls; 0: there are none. */
static double share_of_hand(const job *j)
{
    const double plain = j->results[1].seconds.median, streaming = j->results[2].seconds.median;
    return (plain < streaming ? plain : streaming) / j->results[0].seconds.median;
}

static int64_t row_bytes(const job *j)
{
    return j->width * (int64_t)sizeof(float);
}

/* Rows a second that all ranks together write: those of experts, and results. */
static double row_rate(const job *j)
{
    return j->results[0].bandwidth / (double)row_bytes(j);
}

static json_t *row_to_json(const job *j)
{
    const tsr_bench_result *const result = &j->results[0];
    json_t *const of_copy = share_of_hand(j) > 0 ? json_real(share_of_hand(j)) : json_null();
    return json_pack("{ss ss ss sI sI sI sI ss sI so sf sf so so sI sI}", "bench", "rows", "op", "experts", "engine",
                     place_engine(j->place), "ranks", (json_int_t)j->ranks, "rows", (json_int_t)j->experts, "row_bytes",
                     (json_int_t)row_bytes(j), "ids", (json_int_t)ids_of_list(j), "skew",
                     j->is_zipf ? "zipf" : "uniform", "duplicates", (json_int_t)0, "seconds",
                     spread_to_json(result->seconds), "rows_per_second", row_rate(j), "bandwidth", result->bandwidth,
                     "of_copy", of_copy, "wrong", j->settings.checks ? json_integer(result->wrong) : json_null(),
                     "calls", (json_int_t)result->calls, "slots", (json_int_t)HAND_SLOTS);
}

static void say_row(const job *j)
{
    const tsr_bench_result *const result = &j->results[0];
    char wrong[24] = "N/A", of_copy[24] = "N/A";
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)result->wrong);
    if (share_of_hand(j) > 0)
        snprintf(of_copy, sizeof of_copy, "%.3f", share_of_hand(j));
    say("#%-8s %6s %10s %9s %9s %12s %12s %10s %8s %7s %7s\n", " op", "ranks", "experts", "row", "ids", "time", "rate",
        "rate", "of_copy", "#wrong", "noise");
    say("#%-8s %6s %10s %9s %9s %12s %12s %10s %8s %7s %7s\n", "", "", "", "(B)", "a rank", "(us)", "(Mrows/s)",
        "(GB/s)", "", "", "(%)");
    say(" %-8s %6d %10lld %9lld %9lld %12.2f %12.2f %10.2f %8s %7s %7.1f\n", "experts", j->ranks, (long long)j->experts,
        (long long)row_bytes(j), (long long)ids_of_list(j), 1e6 * result->seconds.median, row_rate(j) / 1e6,
        result->bandwidth / 1e9, of_copy, wrong, 100 * spread_noise(result->seconds));
}

static int measure_all(job *j)
{
    int status = bench_on_ranks(&j->settings, EXIT_DONE, j->place, j->ranks, run_rank, j);
    if (status != EXIT_DONE)
        return status;
    if (j->given->value[OPT_JSON])
        status = print_json(row_to_json(j));
    else
        say_row(j);
    if (status == EXIT_DONE && j->settings.checks && j->results[0].wrong > 0)
        status = complain(EXIT_REFUSED, "experts: %lld elements are wrong", (long long)j->results[0].wrong);
    return status == EXIT_DONE ? finish_stdout() : status;
}

static int read_ranks(job *j)
{
    const int launched = place_launched(j->place);
    int64_t ranks;
    const int status = parse_count("--ranks", j->given->value[OPT_RANKS], launched > 0 ? launched : 2, &ranks);
    if (status != EXIT_DONE)
        return status;
    if (launched > 0 && ranks != launched)
        return complain(EXIT_REFUSED, "--ranks is %lld, but %d were launched", (long long)ranks, launched);
    if (ranks > MAX_RANK_THREADS)
        return complain(EXIT_REFUSED, "--ranks is %lld; %d are the most", (long long)ranks, MAX_RANK_THREADS);
    j->ranks = (int)ranks;
    j->rows = calloc((size_t)ranks, sizeof *j->rows);
    return j->rows ? parse_count("--batch", j->given->value[OPT_BATCH], (4096 + ranks - 1) / ranks, &j->tokens)
                   : complain(EXIT_REFUSED, "there is no memory for %lld ranks", (long long)ranks);
}

static int read_draws(job *j)
{
    const char *const text = j->given->value[OPT_SHAPE], *const skew = j->given->value[OPT_SKEW];
    tensor_shape shape = {2, {8, 1024}};
    const int status = text ? parse_shape(text, &shape) : EXIT_DONE;
    if (status != EXIT_DONE)
        return status;
    if (shape.ndim != 2 || shape.size[0] == 0 || shape.size[1] == 0)
        return complain(EXIT_USAGE, "--shape %s: one or more experts take tokens of one or more elements, like 8x1024",
                        text);
    j->experts = shape.size[0];
    j->width = shape.size[1];
    j->is_zipf = skew && strcmp(skew, "zipf") == 0;
    if (skew && !j->is_zipf && strcmp(skew, "uniform") != 0)
        return complain(EXIT_USAGE, "--skew '%s' is neither uniform nor zipf", skew);
    if (j->given->value[OPT_DUPLICATES])
        return complain(EXIT_USAGE, "--duplicates: tokens of --op experts name each expert once");
    return EXIT_DONE;
}

int bench_experts(const tool_arguments *given)
{
    job j = {.given = given, .settings = {.iterations = 21, .warm_ups = 2, .loop_seconds = 2e-4, .checks = true}};
    int status = bench_settings_read(given, &j.settings);
    if (status == EXIT_DONE)
        status = read_draws(&j);
    if (status == EXIT_DONE)
        status = place_open(given, &j.place);
    if (status == EXIT_DONE)
        status = read_ranks(&j);
    if (status == EXIT_DONE)
        status = measure_all(&j);
    free(j.rows);
    place_close(j.place);
    return status;
}
