#include "tables.h"

#include "cli/text_buffer.h"

#include <stdlib.h>

/* Boxes of the move that measures the cost of a box. */
#define PIECES 96

/* The lengths of runs, in bytes and ascending, that have a row in the tables, for each kind of
 * work: as many as differ enough in cost. */
static const struct {
    tsr_work work;
    int64_t runs[6]; /* ended by 0 */
} rows[] = {
    {TSR_WORK_KEEP, {64, 4096, TSR_RUN_WHOLE}},
    {TSR_WORK_SUM, {64, 4096, TSR_RUN_WHOLE}},
    {TSR_WORK_COPY, {64, 512, 4096, 32768, TSR_RUN_WHOLE}},
};
#define KINDS (sizeof rows / sizeof *rows)

static int reserve(tables *t)
{
    if (t->count < t->capacity)
        return EXIT_DONE;
    const size_t capacity = 2 * t->capacity + 32;
    table_move *const moves = realloc(t->moves, capacity * sizeof *moves);
    if (!moves)
        return complain(EXIT_REFUSED, "there is no memory for the moves of a calibration");
    t->moves = moves;
    t->capacity = capacity;
    return EXIT_DONE;
}

/* The mesh of the first `ranks` members, as "2@[1,3]". NULL if there is no memory. */
static char *print_mesh(const tables_request *r, int64_t ranks)
{
    text_buffer text = {0};
    text_buffer_print(&text, "%lld@", (long long)ranks);
    for (int64_t i = 0; i < ranks; i++)
        text_buffer_print(&text, "%c%lld", i == 0 ? '[' : ',', (long long)r->members[i]);
    text_buffer_add(&text, "]");
    return text_buffer_take(&text, NULL);
}

/* The layouts and the shape of a move. */
typedef struct way {
    const char *from, *to;
    tensor_shape shape;
} way;

static int add_move(tables *t, const tables_request *r, const table_move *like, const way *w)
{
    int status = reserve(t);
    if (status != EXIT_DONE)
        return status;
    table_move *const m = &t->moves[t->count++];
    *m = *like;
    m->mesh = print_mesh(r, like->ranks);
    m->timed = (timed_move){.rows = NULL};
    if (!m->mesh)
        return complain(EXIT_REFUSED, "there is no memory for a mesh of %lld ranks", (long long)like->ranks);
    const move_request wanted = {m->mesh, w->from, w->to, w->shape, r->dtype, r->mode, r->profile};
    return timed_move_create(r->ranks, &wanted, &m->timed);
}

/* Adds a move of one element a rank, which measures a step; one of PIECES boxes of an element or
 * two; and meetings of 2, 4, .. and all ranks. */
static int add_small_moves(tables *t, const tables_request *r)
{
    const int64_t n = r->member_count, rows_of_many = PIECES * n + n - 1;
    const table_move step = {.topic = TABLE_STEP, .ranks = n, .pieces = 1};
    const table_move piece = {.topic = TABLE_PIECE, .ranks = n, .pieces = PIECES};
    int status = add_move(t, r, &step, &(way){"R", "S(0)", {1, {n}}});
    if (status == EXIT_DONE)
        status = add_move(t, r, &piece, &(way){"R", "S(0;interleave=96)", {1, {rows_of_many}}});
    for (int64_t ranks = 2; status == EXIT_DONE; ranks *= 2) {
        const int64_t some = ranks < n ? ranks : n;
        const table_move meeting = {.topic = TABLE_MEETING, .ranks = some, .pieces = some, .meetings = 1};
        status = add_move(t, r, &meeting, &(way){"S(0)", "R", {1, {some}}});
        if (some == n)
            break;
    }
    return status;
}

/* The number of rows in the larger shard of a rank, which has all columns, `parts` runs a row; 0
 * if there are fewer than 2. */
static int64_t count_rows(int64_t bytes, int64_t run, int64_t parts)
{
    const int64_t count = run == TSR_RUN_WHOLE ? 1 : bytes / (run * parts);
    return run != TSR_RUN_WHOLE && count < 2 ? 0 : count;
}

/* True if a larger shard of `bytes` has enough runs to measure. */
static bool tells(int64_t run, int64_t n, int64_t bytes, int64_t element)
{
    const bool holds = run == TSR_RUN_WHOLE ? bytes >= n * element : run >= element && count_rows(bytes, run, n) > 0;
    return bytes >= TABLES_LEAST_BYTES && holds;
}

/* The move that measures a kind of work, with `bytes` in the larger shard of each of `n` ranks and
 * elements of `element` bytes. */
static way choose_way(tsr_work work, int64_t run, int64_t n, int64_t bytes, int64_t element)
{
    const bool whole = run == TSR_RUN_WHOLE;
    const int64_t count = whole ? 1 : count_rows(bytes, run, n), columns = whole ? bytes / element / n : run / element;
    if (work == TSR_WORK_COPY && whole)
        return (way){"S(0)", "R", {2, {n, columns}}};
    if (work == TSR_WORK_COPY)
        return (way){"S(0)", "S(1)", {2, {count * n, columns * n}}};
    if (whole)
        return (way){work == TSR_WORK_KEEP ? "R" : "P", "S(0)", {2, {n, columns}}};
    return (way){work == TSR_WORK_KEEP ? "R" : "P", "S(1)", {2, {count, columns * n}}};
}

/* What the cost model counts for a move. */
static table_move count_work(tsr_work work, int64_t run, int64_t n, const way *w, int64_t element)
{
    const double all = (double)(w->shape.size[0] * w->shape.size[1] * element), share = all / (double)n;
    table_move m = {.topic = TABLE_WORK, .work = work, .run = run, .ranks = n, .pieces = 1, .meetings = 2};
    if (work == TSR_WORK_KEEP) {
        m.meetings = 0;
        m.touched = 2 * share;
        m.worked = share;
    } else if (work == TSR_WORK_SUM) {
        m.touched = all + share;
        m.worked = (double)(n + 1) * share;
    } else {
        const double got = run == TSR_RUN_WHOLE ? all : share;
        m.touched = got + share;
        m.kept = got / (double)n;
        m.worked = got - m.kept;
        m.pieces = n;
    }
    return m;
}

static int add_size(tables *t, const tables_request *r, tsr_work work, int64_t run, int64_t bytes)
{
    const int64_t n = r->member_count, element = (int64_t)tsr_dtype_bytes(r->dtype);
    if (!tells(run, n, bytes, element))
        return EXIT_DONE;
    const way w = choose_way(work, run, n, bytes, element);
    table_move m = count_work(work, run, n, &w, element);
    if (r->mode == TSR_MODE_MESSAGE && m.meetings > 0)
        m.meetings = 1;
    return add_move(t, r, &m, &w);
}

/* The next size to measure. Kept and summed boxes in runs need only every other size, and the
 * last. */
static int64_t next_size(const tables_request *r, size_t kind, size_t row, int64_t bytes)
{
    const bool all = rows[kind].work == TSR_WORK_COPY || rows[kind].runs[row] == TSR_RUN_WHOLE;
    const int64_t next = size_range_next(&r->sizes, bytes),
                  after = all || next == 0 ? next : size_range_next(&r->sizes, next);
    return after == 0 && !all ? next : after;
}

static int add_work(tables *t, const tables_request *r)
{
    int status = EXIT_DONE;
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; rows[k].runs[i] > 0; i++)
            for (int64_t bytes = r->sizes.begin; bytes > 0 && status == EXIT_DONE; bytes = next_size(r, k, i, bytes))
                status = add_size(t, r, rows[k].work, rows[k].runs[i], bytes);
    return status;
}

static bool has_sizes(const tables_request *r)
{
    const int64_t least = (int64_t)tsr_dtype_bytes(r->dtype) * r->member_count;
    return r->sizes.end >= TABLES_LEAST_BYTES && r->sizes.end >= least;
}

static int choose(tables *t, const tables_request *r)
{
    if (!has_sizes(r))
        return EXIT_DONE;
    int status = add_small_moves(t, r);
    if (status == EXIT_DONE)
        status = add_work(t, r);
    t->timed = status == EXIT_DONE ? calloc(t->count, sizeof *t->timed) : NULL;
    if (status == EXIT_DONE && !t->timed)
        status = complain(EXIT_REFUSED, "there is no memory for the moves of a calibration");
    for (size_t i = 0; t->timed && i < t->count; i++)
        t->timed[i] = &t->moves[i].timed;
    return status;
}

int64_t tables_count(const tables_request *r)
{
    const int64_t n = r->member_count, element = (int64_t)tsr_dtype_bytes(r->dtype);
    int64_t count = 2;
    if (!has_sizes(r))
        return 0;
    for (int64_t ranks = 2;; ranks *= 2) {
        count++;
        if (ranks >= n)
            break;
    }
    for (size_t k = 0; k < KINDS; k++)
        for (size_t i = 0; rows[k].runs[i] > 0; i++)
            for (int64_t bytes = r->sizes.begin; bytes > 0; bytes = next_size(r, k, i, bytes))
                count += tells(rows[k].runs[i], n, bytes, element);
    return count;
}

int tables_measure(place *p, const tables_request *r, int status, tables *out)
{
    *out = (tables){.count = 0};
    if (status == EXIT_DONE)
        status = choose(out, r);
    return time_moves(p, r->ranks, &r->settings, status, out->timed, out->count);
}

void tables_finish(tables *t)
{
    for (size_t i = 0; i < t->count; i++) {
        timed_move_finish(&t->moves[i].timed);
        free(t->moves[i].mesh);
    }
    free(t->timed);
    free(t->moves);
}

int64_t tables_wrong(const tables *t)
{
    int64_t wrong = 0;
    for (size_t i = 0; i < t->count; i++)
        wrong += t->moves[i].timed.wrong;
    return wrong;
}
