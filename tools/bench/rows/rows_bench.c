/* bench rows: how long gathers and updates of rows by random ids take, next to loops by hand. */
#include "bench/rows/experts_bench.h"
#include "bench/rows/hand_loops.h"
#include "bench/run/run.h"
#include "cli/report.h"
#include "place/place.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Each rank has so many lists of ids, which take turns, so that a call does not find the rows of
 * the last one in the caches. */
enum { LISTS = 16 };

/* The loops by hand that are measured beside the call: an update has one. */
enum { MOST_SUBJECTS = 3 };

typedef struct job {
    place *place;
    int ranks;
    bool gathers;
    tsr_rows_op op; /* of an update */
    int64_t rows, width, batch;
    bool is_zipf;
    int64_t duplicates; /* of a hundred ids, how many repeat another one of the call */
    bench_settings settings;
    hand_rank *hand; /* one a rank */
    tsr_bench_result results[MOST_SUBJECTS];
    const tool_arguments *given;
    bool begun; /* a line was printed */
} job;

/* One rank's side. */
typedef struct side {
    job *j;
    int rank;
    tsr_dtensor *table;
    int64_t *lists; /* LISTS * batch ids */
    int64_t *near;  /* of processes: as many ids of this rank's own rows, counted from its first */
    float *rows;
    int turn; /* of the lists */
} side;

static uint64_t draw(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

/* A number from 0 to below 1. */
static double draw_share(uint64_t *state)
{
    return (double)(draw(state) % (1 << 24)) / (1 << 24);
}

/* An id. Of zipf's, the n-th in frequency is drawn about 1/n as often as the first; they lie all
 * over the table. */
static int64_t draw_id(const job *j, uint64_t *state)
{
    if (!j->is_zipf)
        return (int64_t)(draw(state) % (uint64_t)j->rows);
    const double drawn = exp(draw_share(state) * log((double)j->rows + 1)) - 1;
    const uint64_t number = drawn < (double)j->rows ? (uint64_t)drawn : (uint64_t)j->rows - 1;
    return (int64_t)(number * UINT64_C(2654435761) % (uint64_t)j->rows);
}

/* The ids of list `list` of a rank, which other ranks can write, too. */
static void draw_list(const job *j, int rank, int list, int64_t *ids)
{
    uint64_t state = (uint64_t)(rank * LISTS + list) * UINT64_C(0x9e3779b97f4a7c15) + 1;
    for (int64_t i = 0; i < j->batch; i++)
        ids[i] = i > 0 && (int64_t)(draw(&state) % 100) < j->duplicates ? ids[draw(&state) % (uint64_t)i]
                                                                        : draw_id(j, &state);
}

/* The value of all elements of a row of the table, and of the rows that a rank brings; small, so
 * that sums are exact. */
static float row_value(int64_t row)
{
    return (float)(row % 1000);
}

static float brought_value(int rank)
{
    return (float)(1 + rank % 7);
}

static int64_t rows_of_each(const job *j)
{
    return (j->rows + j->ranks - 1) / j->ranks;
}

static int64_t own_rows(const job *j, int rank)
{
    const int64_t left = j->rows - rank * rows_of_each(j);
    return left < 0 ? 0 : left < rows_of_each(j) ? left : rows_of_each(j);
}

static void fill_table(const side *s)
{
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    const int64_t width = s->j->width, first = s->rank * rows_of_each(s->j);
    for (int64_t i = 0; i < local.shape[0]; i++)
        for (int64_t c = 0; c < width; c++)
            ((float *)local.data)[i * width + c] = row_value(first + i);
}

static void fill_rows(const side *s)
{
    for (int64_t i = 0; i < s->j->batch * s->j->width; i++)
        s->rows[i] = brought_value(s->rank);
}

static tsr_status call_library(tsr_comm *comm, void *arg)
{
    side *const s = arg;
    const job *const j = s->j;
    const int64_t shape[] = {j->batch, j->width};
    (void)comm;
    s->turn = (s->turn + 1) % LISTS;
    const tsr_tensor ids = tsr_tensor_contiguous(s->lists + s->turn * j->batch, TSR_I64, 1, shape),
                     rows = tsr_tensor_contiguous(s->rows, TSR_F32, 2, shape);
    return j->gathers ? tsr_rows_gather(s->table, &ids, &rows) : tsr_rows_update(s->table, &ids, &rows, j->op);
}

static void call_loop(const job *j, const hand_table *memory, int rank, bool ahead)
{
    if (j->gathers)
        hand_gather(memory, rank, ahead);
    else
        hand_update(memory, rank, j->op);
}

/* By hand, ranks meet before they read peers' rows, and after it. `arg` has the side, and for the
 * gather that fetches ahead something more. */
static tsr_status call_by_hand(tsr_comm *comm, void *arg)
{
    side *const s = ((side **)arg)[0];
    const job *const j = s->j;
    const hand_table memory = {
        .ranks = j->hand, .count = j->ranks, .each = rows_of_each(j), .width = j->width, .batch = j->batch};
    s->turn = (s->turn + 1) % LISTS;
    j->hand[s->rank].ids = s->lists + s->turn * j->batch;
    TSR_TRY(tsr_comm_barrier(comm));
    call_loop(j, &memory, s->rank, ((side **)arg)[1]);
    return tsr_comm_barrier(comm);
}

/* Processes cannot reach peers' rows by hand: each copies or changes its own rows, without a
 * meeting. */
static tsr_status call_alone(tsr_comm *comm, void *arg)
{
    side *const s = ((side **)arg)[0];
    const job *const j = s->j;
    (void)comm;
    s->turn = (s->turn + 1) % LISTS;
    const hand_rank own = {j->hand[s->rank].table, s->near + s->turn * j->batch, s->rows};
    const hand_table memory = {
        .ranks = &own, .count = 1, .each = own_rows(j, s->rank), .width = j->width, .batch = j->batch};
    call_loop(j, &memory, 0, ((side **)arg)[1]);
    return TSR_OK;
}

/* Counts the elements of gathered rows that are wrong. */
static int64_t count_wrong_rows(const side *s)
{
    const job *const j = s->j;
    int64_t wrong = 0;
    for (int64_t i = 0; i < j->batch; i++)
        for (int64_t c = 0; c < j->width; c++)
            wrong += s->rows[i * j->width + c] != row_value(s->lists[s->turn * j->batch + i]);
    return wrong;
}

/* What an update with one list of each rank makes of this rank's rows: `sums` and `counts` have an
 * element for each. */
static void expect(const side *s, int64_t own, int64_t *list, float *sums, int64_t *counts)
{
    const job *const j = s->j;
    const int64_t first = s->rank * rows_of_each(j);
    for (int rank = 0; rank < j->ranks; rank++) {
        draw_list(j, rank, s->turn, list);
        for (int64_t i = 0; i < j->batch; i++) {
            const int64_t at = list[i] - first;
            if (at < 0 || at >= own)
                continue;
            const float value = brought_value(rank);
            counts[at]++;
            if (j->op == TSR_ROWS_ASSIGN)
                sums[at] = value;
            else if (j->op == TSR_ROWS_MAX)
                sums[at] = value > sums[at] ? value : sums[at];
            else
                sums[at] += value;
        }
    }
}

static float expected_value(tsr_rows_op op, float before, float sum, int64_t count)
{
    if (count == 0)
        return before;
    switch (op) {
    case TSR_ROWS_ASSIGN:
        return sum;
    case TSR_ROWS_MAX:
        return sum > before ? sum : before;
    case TSR_ROWS_MEAN:
        return before + sum / (float)count;
    default:
        return before + sum;
    }
}

static int64_t count_wrong_table(const side *s, const float *sums, const int64_t *counts)
{
    const tsr_tensor local = tsr_dtensor_to_local(s->table);
    const int64_t first = s->rank * rows_of_each(s->j);
    int64_t wrong = 0;
    for (int64_t i = 0; i < local.shape[0]; i++) {
        const float value = expected_value(s->j->op, row_value(first + i), sums[i], counts[i]);
        for (int64_t c = 0; c < s->j->width; c++)
            wrong += ((const float *)local.data)[i * s->j->width + c] != value;
    }
    return wrong;
}

static tsr_status check_update(side *s, int64_t *wrong)
{
    const int64_t own = tsr_dtensor_to_local(s->table).shape[0];
    float *const sums = calloc((size_t)own + 1, sizeof *sums);
    int64_t *const counts = calloc((size_t)own + 1, sizeof *counts), *const list =
                                                                         calloc((size_t)s->j->batch + 1, sizeof *list);
    if (sums && counts && list) {
        expect(s, own, list, sums, counts);
        *wrong += count_wrong_table(s, sums, counts);
    }
    const bool short_of_memory = !sums || !counts || !list;
    free(sums);
    free(counts);
    free(list);
    return short_of_memory ? tsr_status_set(TSR_ERROR_MEMORY, "there is no memory to check the rows") : TSR_OK;
}

/* Calls once more on a table and rows that are known, and compares. */
static tsr_status check(tsr_comm *comm, void *arg, int64_t *wrong)
{
    side *const s = arg;
    fill_table(s);
    fill_rows(s);
    TSR_TRY(tsr_comm_barrier(comm));
    TSR_TRY(call_library(comm, s));
    if (!s->j->gathers)
        return check_update(s, wrong);
    *wrong += count_wrong_rows(s);
    return TSR_OK;
}

static tsr_status make_table(side *s, tsr_comm *comm)
{
    char text[16];
    const int64_t shape[] = {s->j->rows, s->j->width};
    tsr_mesh *mesh;
    tsr_layout *layout = NULL;
    snprintf(text, sizeof text, "%d", s->j->ranks);
    TSR_TRY(tsr_mesh_parse(comm, NULL, text, &mesh));
    tsr_status status = tsr_layout_parse(mesh, "S(0)", 2, shape, TSR_F32, &layout);
    if (status == TSR_OK)
        status = tsr_dtensor_create(layout, tsr_device_host(), &s->table);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status make_lists(side *s)
{
    const job *const j = s->j;
    s->lists = calloc((size_t)(LISTS * j->batch) + 1, sizeof *s->lists);
    s->near = calloc((size_t)(LISTS * j->batch) + 1, sizeof *s->near);
    s->rows = calloc((size_t)(j->batch * j->width) + 1, sizeof *s->rows);
    if (!s->lists || !s->near || !s->rows)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for %lld ids and their rows", (long long)j->batch);
    for (int list = 0; list < LISTS; list++)
        draw_list(j, s->rank, list, s->lists + list * j->batch);
    for (int64_t i = 0; i < LISTS * j->batch && own_rows(j, s->rank) > 0; i++)
        s->near[i] = s->lists[i] % rows_of_each(j) % own_rows(j, s->rank);
    fill_table(s);
    fill_rows(s);
    j->hand[s->rank] = (hand_rank){tsr_dtensor_to_local(s->table).data, s->lists, s->rows};
    return TSR_OK;
}

static tsr_status measure(job *j, side *s, tsr_comm *comm)
{
    void *const plain[] = {s, NULL}, *const fetching[] = {s, s};
    const size_t bytes = (size_t)(j->batch * j->width) * sizeof(float);
    const bool launched = place_launched(j->place) > 0;
    /* All ranks must have rows that they can copy alone; the last rank has the fewest. */
    const bool by_hand = !launched || own_rows(j, j->ranks - 1) > 0;
    tsr_bench_body *const hand = launched ? call_alone : call_by_hand;
    const tsr_bench_subject subjects[] = {{.call = call_library, .check = check, .arg = s, .bytes = bytes},
                                          {.call = hand, .arg = (void *)plain, .bytes = bytes},
                                          {.call = hand, .arg = (void *)fetching, .bytes = bytes}};
    tsr_bench_result results[MOST_SUBJECTS] = {{.bytes = 0}};
    const tsr_bench_options options = bench_options(&j->settings, j->place, s->rank);
    TSR_TRY(tsr_bench_turns(comm, subjects, !by_hand ? 1 : j->gathers ? 3 : 2, &options, results));
    if (bench_keeps(j->place, s->rank))
        memcpy(j->results, results, sizeof results);
    return TSR_OK;
}

static tsr_status run_rank(tsr_comm *comm, void *arg)
{
    job *const j = arg;
    side s = {.j = j, .rank = tsr_comm_rank(comm)};
    tsr_status status = make_table(&s, comm);
    if (status == TSR_OK)
        status = make_lists(&s);
    /* Loops by hand read peers' memory once all have made theirs. */
    status = tsr_comm_share_status(comm, "bench rows", status);
    if (status == TSR_OK)
        status = measure(j, &s, comm);
    /* And it goes when no rank reads it. */
    status = tsr_comm_share_status(comm, "bench rows", status);
    tsr_dtensor_destroy(s.table);
    free(s.lists);
    free(s.near);
    free(s.rows);
    return status;
}

/* The time of the fastest loop by hand over that of the call; 0: there is none. */
static double share_of_hand(const job *j)
{
    double best = j->results[1].seconds.median;
    if (j->gathers && j->results[2].seconds.median < best)
        best = j->results[2].seconds.median;
    return best / j->results[0].seconds.median;
}

static const char *op_name(const job *j)
{
    return j->gathers ? "gather" : tsr_rows_op_name(j->op);
}

static int64_t row_bytes(const job *j)
{
    return j->width * (int64_t)sizeof(float);
}

/* Of all ranks, a second. */
static double row_rate(const job *j)
{
    return j->results[0].bandwidth / (double)row_bytes(j);
}

static json_t *row_to_json(const job *j)
{
    const tsr_bench_result *const result = &j->results[0];
    json_t *const of_copy = share_of_hand(j) > 0 ? json_real(share_of_hand(j)) : json_null();
    return json_pack("{ss ss ss sI sI sI sI ss sI so sf sf so so sI}", "bench", "rows", "op", op_name(j), "engine",
                     place_engine(j->place), "ranks", (json_int_t)j->ranks, "rows", (json_int_t)j->rows, "row_bytes",
                     (json_int_t)row_bytes(j), "ids", (json_int_t)j->batch, "skew", j->is_zipf ? "zipf" : "uniform",
                     "duplicates", (json_int_t)j->duplicates, "seconds", spread_to_json(result->seconds),
                     "rows_per_second", row_rate(j), "bandwidth", result->bandwidth, "of_copy", of_copy, "wrong",
                     j->settings.checks ? json_integer(result->wrong) : json_null(), "calls",
                     (json_int_t)result->calls);
}

static void say_row(const job *j)
{
    const tsr_bench_result *const result = &j->results[0];
    char wrong[24] = "N/A", of_copy[24] = "N/A";
    if (j->settings.checks)
        snprintf(wrong, sizeof wrong, "%lld", (long long)result->wrong);
    if (share_of_hand(j) > 0)
        snprintf(of_copy, sizeof of_copy, "%.3f", share_of_hand(j));
    if (!j->begun) {
        say("#%-8s %6s %10s %9s %9s %12s %12s %10s %8s %7s %7s\n", " op", "ranks", "rows", "row", "ids", "time", "rate",
            "rate", "of_copy", "#wrong", "noise");
        say("#%-8s %6s %10s %9s %9s %12s %12s %10s %8s %7s %7s\n", "", "", "", "(B)", "a rank", "(us)", "(Mrows/s)",
            "(GB/s)", "", "", "(%)");
    }
    say(" %-8s %6d %10lld %9lld %9lld %12.2f %12.2f %10.2f %8s %7s %7.1f\n", op_name(j), j->ranks, (long long)j->rows,
        (long long)row_bytes(j), (long long)j->batch, 1e6 * result->seconds.median, row_rate(j) / 1e6,
        result->bandwidth / 1e9, of_copy, wrong, 100 * spread_noise(result->seconds));
}

static int measure_op(job *j)
{
    int status = bench_on_ranks(&j->settings, EXIT_DONE, j->place, j->ranks, run_rank, j);
    if (status != EXIT_DONE)
        return status;
    if (j->given->value[OPT_JSON])
        status = print_json(row_to_json(j));
    else
        say_row(j);
    j->begun = true;
    if (status == EXIT_DONE && j->settings.checks && j->results[0].wrong > 0)
        status = complain(EXIT_REFUSED, "%s: %lld elements are wrong", op_name(j), (long long)j->results[0].wrong);
    return status;
}

static int measure_all(job *j)
{
    const char *const op = j->given->value[OPT_OP];
    int status = EXIT_DONE;
    j->gathers = true;
    if (!op || strcmp(op, "gather") == 0)
        status = measure_op(j);
    j->gathers = false;
    for (int i = 0; i < TSR_ROWS_OP_END && status == EXIT_DONE; i++) {
        j->op = (tsr_rows_op)i;
        if (op ? strcmp(op, tsr_rows_op_name(j->op)) == 0 : j->op == TSR_ROWS_ADD)
            status = measure_op(j);
    }
    return status == EXIT_DONE ? finish_stdout() : status;
}

static int read_op(const char *text)
{
    bool known = !text || strcmp(text, "gather") == 0;
    for (int op = 0; op < TSR_ROWS_OP_END && !known; op++)
        known = strcmp(text, tsr_rows_op_name((tsr_rows_op)op)) == 0;
    return known ? EXIT_DONE
                 : complain(EXIT_USAGE, "--op '%s' is none of gather, assign, add, mean, max and experts", text);
}

static int read_shape(const char *text, job *j)
{
    tensor_shape shape = {2, {1000000, 64}};
    const int status = text ? parse_shape(text, &shape) : EXIT_DONE;
    if (status != EXIT_DONE)
        return status;
    if (shape.ndim != 2 || shape.size[0] == 0 || shape.size[1] == 0)
        return complain(EXIT_USAGE, "--shape %s: a table has one or more rows of one or more columns, like 1000000x64",
                        text);
    j->rows = shape.size[0];
    j->width = shape.size[1];
    return EXIT_DONE;
}

static int read_draws(const tool_arguments *given, job *j)
{
    const char *const skew = given->value[OPT_SKEW], *const share = given->value[OPT_DUPLICATES];
    j->is_zipf = skew && strcmp(skew, "zipf") == 0;
    if (skew && !j->is_zipf && strcmp(skew, "uniform") != 0)
        return complain(EXIT_USAGE, "--skew '%s' is neither uniform nor zipf", skew);
    const int status = share ? parse_index("--duplicates", share, &j->duplicates) : EXIT_DONE;
    if (status == EXIT_DONE && j->duplicates > 100)
        return complain(EXIT_USAGE, "--duplicates is %s: it is a percentage, 0 to 100", share);
    return status != EXIT_DONE ? status : parse_count("--batch", given->value[OPT_BATCH], 10000, &j->batch);
}

static int read_ranks(const tool_arguments *given, job *j)
{
    const int launched = place_launched(j->place);
    int64_t ranks;
    const int status = parse_count("--ranks", given->value[OPT_RANKS], launched > 0 ? launched : 2, &ranks);
    if (status != EXIT_DONE)
        return status;
    if (launched > 0 && ranks != launched)
        return complain(EXIT_REFUSED, "--ranks is %lld, but %d were launched", (long long)ranks, launched);
    if (ranks > MAX_RANK_THREADS)
        return complain(EXIT_REFUSED, "--ranks is %lld; %d are the most", (long long)ranks, MAX_RANK_THREADS);
    j->ranks = (int)ranks;
    j->hand = calloc((size_t)ranks, sizeof *j->hand);
    return j->hand ? EXIT_DONE : complain(EXIT_REFUSED, "there is no memory for %lld ranks", (long long)ranks);
}

static int run_bench(const tool_arguments *given)
{
    if (given->value[OPT_OP] && strcmp(given->value[OPT_OP], "experts") == 0)
        return bench_experts(given);
    job j = {.given = given, .settings = {.iterations = 21, .warm_ups = 2, .loop_seconds = 2e-4, .checks = true}};
    int status = bench_settings_read(given, &j.settings);
    if (status == EXIT_DONE)
        status = read_op(given->value[OPT_OP]);
    if (status == EXIT_DONE)
        status = read_shape(given->value[OPT_SHAPE], &j);
    if (status == EXIT_DONE)
        status = read_draws(given, &j);
    if (status == EXIT_DONE)
        status = place_open(given, &j.place);
    if (status == EXIT_DONE)
        status = read_ranks(given, &j);
    if (status == EXIT_DONE)
        status = measure_all(&j);
    free(j.hand);
    place_close(j.place);
    return status;
}

const tool_command bench_rows_command = {
    .name = "bench rows",
    .summary = "how long gathers and updates of rows by random ids take",
    .details =
        "Times tsr_rows_gather() and tsr_rows_update() of a table of f32 that is cut by rows, S(0). Each rank brings "
        "--batch random ids, other ones in each call. Without --op it measures gather and add.\n\n"
        "Times are those of the slowest rank from barrier to barrier, medians. The rates are those of the rows that "
        "all ranks together bring or get, and of their bytes. of_copy compares with loops by hand, measured in turns "
        "with the calls, on the "
        "same threads: for a gather the better of two that copy rows out of the memory of their owners, with and "
        "without fetching ahead; for an update one in which each thread looks through the ids of all and changes its "
        "own rows, one after the other. Over mpi each process copies or changes as many random rows of its own part. "
        "After the last time a call is checked.\n\n"
        "--op experts times tsr_experts_dispatch() and tsr_experts_combine() of --batch tokens a rank, of which each "
        "chooses two of the experts of --shape EXPERTSxWIDTH; ids are two a token. of_copy then compares with the "
        "better of two loops that copy and sum the same rows on the same threads, by ordinary stores and past the "
        "cache, where each row goes being known; over mpi there is none.",
    .examples = "  tessera bench rows\n"
                "  tessera bench rows --op gather --ranks 4 --batch 8 --json\n"
                "  tessera bench rows --shape 1000000x16 --skew zipf --duplicates 30\n"
                "  tessera bench rows --op experts --shape 8x1024 --batch 2048\n"
                "  mpirun -n 2 tessera bench rows --engine mpi\n",
    .takes = TAKES(RANKS) | TAKES(SHAPE) | TAKES(BATCH) | TAKES(SKEW) | TAKES(DUPLICATES) | TAKES(OP) |
             TAKES(ITERATIONS) | TAKES(WARM_UP) | TAKES(CALLS) | TAKES(CHECK) | TAKES(ENGINE) | TAKES(JSON),
    .defaults = {{OPT_RANKS, "2, or as many as were launched"},
                 {OPT_SHAPE, "1000000x64, of experts 8x1024"},
                 {OPT_BATCH, "10000, of experts 4096 by the number of ranks"},
                 {OPT_OP, "gather, then add"},
                 {OPT_ITERATIONS, "21"}},
    .run = run_bench,
};
