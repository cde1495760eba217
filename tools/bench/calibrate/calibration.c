#include "bench/calibrate/calibration.h"

#include "cli/text_buffer.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

#include <stdlib.h>
#include <string.h>

static const char *const targets[] = {"S(1)", "R"};
#define TARGETS (sizeof targets / sizeof *targets)

calibration_request calibration_usual(int ranks, tsr_mode mode)
{
    calibration_request r = {ranks, mode, TSR_F32, {64, INT64_C(64) << 20, 4}, usual_timing, NULL, false};
    r.settings.loop_seconds = CALIBRATION_LOOP_SECONDS;
    return r;
}

/* Moves of the tables are many and need less precision, so their loops are shorter; they are not
 * checked, since the moves of the links are. */
static tables_request request_of_tables(const calibration *c)
{
    const calibration_request *const r = &c->request;
    tables_request t = {r->ranks, c->members, c->member_count, r->mode, r->dtype, r->sizes, r->settings, c->base};
    t.settings.loop_seconds = r->settings.loop_seconds / 2;
    t.settings.warm_seconds = 0;
    t.settings.checks = false;
    return t;
}

/* Calls of kernels are timed like moves of the tables. */
static kernels_request request_of_kernels(const calibration *c)
{
    const tables_request t = request_of_tables(c);
    return (kernels_request){t.ranks, c->neighbours, t.dtype, c->request.sizes.end, t.settings};
}

int64_t calibration_steps(const calibration_request *r)
{
    const calibration one = {.request = *r, .member_count = r->ranks};
    const tables_request t = request_of_tables(&one);
    const kernels_request wanted = request_of_kernels(&one);
    kernels k = {.count = 0};
    if (r->kernels)
        kernels_choose(&wanted, &k);
    return (int64_t)TARGETS * size_range_count(&r->sizes) * bench_settings_steps(&r->settings) +
           (tables_count(&t) + (int64_t)k.count) * bench_settings_steps(&t.settings);
}

/* The elements that a rank receives from each peer. */
typedef struct box {
    int64_t rows, columns;
} box;

/* A box of about bytes / (n - 1), at least one element, so that a rank receives about `bytes` from
 * its n - 1 peers. */
static box choose_box(int64_t n, tsr_dtype dtype, int64_t bytes)
{
    const int64_t wanted = bytes / (int64_t)tsr_dtype_bytes(dtype) / (n - 1), elements = wanted > 0 ? wanted : 1;
    int64_t rows = 1;
    while (4 * rows * rows <= elements)
        rows *= 2;
    return (box){rows, elements / rows};
}

static int add_move(calibration *c, const char *mesh, int64_t n, const char *to, box received)
{
    const calibration_request *const r = &c->request;
    const tensor_shape shape = {2, {received.rows * n, strcmp(to, "R") == 0 ? received.columns : received.columns * n}};
    const move_request wanted = {mesh, "S(0)", to, shape, r->dtype, r->mode, c->base};
    timed_move *const one = calloc(1, sizeof *one);
    if (!one)
        return complain(EXIT_REFUSED, "there is no memory for the moves of a calibration");
    c->moves[c->count++] = one;
    return timed_move_create(r->ranks, &wanted, one);
}

/* Refuses sizes that all round to one box: a fit needs two. Boxes grow with the bytes, so the
 * first and the last are compared. */
static int check_growth(const calibration_request *r, int64_t n)
{
    const box first = choose_box(n, r->dtype, r->sizes.begin);
    box last = first;
    for (int64_t bytes = r->sizes.begin; bytes > 0; bytes = size_range_next(&r->sizes, bytes))
        last = choose_box(n, r->dtype, bytes);
    if (last.rows != first.rows || last.columns != first.columns)
        return EXIT_DONE;
    const int64_t received = first.rows * first.columns * (n - 1) * (int64_t)tsr_dtype_bytes(r->dtype);
    return complain(EXIT_REFUSED,
                    "in %s over %lld ranks, all sizes come to %lld bytes; a line is fitted to two at least: --begin "
                    "and --end must be further apart",
                    tsr_dtype_name(r->dtype), (long long)n, (long long)received);
}

/* Adds the moves of all sizes to all targets among the `n` ranks of a mesh. */
static int add_moves(calibration *c, const char *mesh, int64_t n)
{
    const size_range *const sizes = &c->request.sizes;
    const tsr_dtype dtype = c->request.dtype;
    int status = check_growth(&c->request, n);
    for (size_t t = 0; t < TARGETS; t++)
        for (int64_t bytes = sizes->begin; bytes > 0 && status == EXIT_DONE; bytes = size_range_next(sizes, bytes))
            status = add_move(c, mesh, n, targets[t], choose_box(n, dtype, bytes));
    return status;
}

/* The mesh of the `n` ranks of node `which`, as "4@[1,3,5,7]". NULL if there is no memory. */
static char *print_mesh(const int *node, int ranks, int which, int64_t n)
{
    text_buffer text = {0};
    text_buffer_print(&text, "%lld@", (long long)n);
    char before = '[';
    for (int r = 0; r < ranks; r++) {
        if (node[r] != which)
            continue;
        text_buffer_print(&text, "%c%d", before, r);
        before = ',';
    }
    text_buffer_add(&text, "]");
    return text_buffer_take(&text, NULL);
}

/* The `n` ranks of node `which`; NULL if there is no memory. */
static int64_t *list_members(const int *node, int ranks, int which, int64_t n)
{
    int64_t *const members = calloc((size_t)n, sizeof *members);
    int64_t count = 0;
    for (int r = 0; members && r < ranks; r++)
        if (node[r] == which)
            members[count++] = r;
    return members;
}

/* The number of ranks on node `which`. */
static int64_t count_on(const int *node, int ranks, int which)
{
    int64_t n = 0;
    for (int r = 0; r < ranks; r++)
        n += node[r] == which;
    return n;
}

/* The first node with the most ranks. */
static int find_fullest(const int *node, int ranks)
{
    int fullest = node[0];
    for (int r = 1; r < ranks; r++)
        if (node[r] != fullest && count_on(node, ranks, node[r]) > count_on(node, ranks, fullest))
            fullest = node[r];
    return fullest;
}

static tsr_status ask(tsr_comm *comm, void *arg)
{
    int *const node = arg;
    for (int r = 0; r < tsr_comm_size(comm); r++)
        node[r] = tsr_comm_node_of(comm, r);
    return TSR_OK;
}

static int choose_moves_of(calibration *c, const int *node)
{
    const int ranks = c->request.ranks, fullest = find_fullest(node, ranks);
    const int64_t neighbours = count_on(node, ranks, fullest);
    int status = EXIT_DONE;
    snprintf(c->all, sizeof c->all, "%d", ranks);
    c->neighbours = print_mesh(node, ranks, fullest, neighbours);
    c->members = list_members(node, ranks, fullest, neighbours);
    c->member_count = neighbours;
    if (!c->neighbours || !c->members)
        return complain(EXIT_REFUSED, "there is no memory for a mesh of %d ranks", ranks);
    if (neighbours > 1)
        status = add_moves(c, c->neighbours, neighbours);
    c->inside = c->count;
    return status == EXIT_DONE && neighbours < ranks ? add_moves(c, c->all, ranks) : status;
}

/* Rank threads are all on node 0, so only processes are asked for their nodes. */
static int choose_moves(calibration *c, place *p)
{
    const int ranks = c->request.ranks;
    int *const node = calloc((size_t)ranks, sizeof *node);
    int status = place_agree(p, node ? EXIT_DONE
                                     : complain(EXIT_REFUSED, "there is no memory for the nodes of %d ranks", ranks));
    if (status == EXIT_DONE && place_launched(p) > 0 && place_run(p, ranks, ask, node) != TSR_OK)
        status = complain_status(EXIT_REFUSED);
    if (status == EXIT_DONE)
        status = choose_moves_of(c, node);
    free(node);
    return status;
}

void calibration_finish(calibration *c)
{
    for (size_t i = 0; i < c->count; i++) {
        timed_move_finish(c->moves[i]);
        free(c->moves[i]);
    }
    free(c->neighbours);
    free(c->members);
    tables_finish(&c->tables);
    tsr_profile_destroy(c->base);
    tsr_profile_destroy(c->measured);
}

const tsr_link *calibration_link(const calibration *c, size_t point)
{
    return point < c->inside ? &c->profile.inside : &c->profile.between;
}

static void read_points(calibration *c)
{
    for (size_t i = 0; i < c->count; i++) {
        timed_move *const m = c->moves[i];
        calibrated_point *const p = &c->points[i];
        p->seconds = m->seconds;
        p->at =
            (fit_point){(double)(i < c->inside ? timed_move_received(m) : timed_move_crossed(m)), p->seconds.median};
        c->wrong += m->wrong;
    }
}

static int fit_links(calibration *c)
{
    fit_point at[2 * FIT_POINTS];
    for (size_t i = 0; i < c->count; i++)
        at[i] = c->points[i].at;
    if (!fit_profile((link_points){at, c->inside}, (link_points){at + c->inside, c->count - c->inside}, &c->profile,
                     c->error))
        return complain(
            EXIT_REFUSED,
            "the times do not grow with the bytes, so that they tell of no bandwidth; is this machine busy?");
    return EXIT_DONE;
}

/* Measures the tables on the ranks of the fullest node, if it has more than one. */
static int measure_tables(calibration *c, place *p, int status)
{
    const tables_request wanted = request_of_tables(c);
    if (c->member_count < 2)
        return status;
    status = tables_measure(p, &wanted, status, &c->tables);
    c->wrong += status == EXIT_DONE ? tables_wrong(&c->tables) : 0;
    return status;
}

/* Measures kernels on the ranks of the fullest node, all at once. */
static int measure_kernels(calibration *c, place *p)
{
    const kernels_request wanted = request_of_kernels(c);
    if (!c->request.kernels)
        return EXIT_DONE;
    kernels_choose(&wanted, &c->kernels);
    return kernels_measure(p, &wanted, EXIT_DONE, &c->kernels);
}

/* Makes the profile of all that was measured. */
static int fit_rest(calibration *c)
{
    tsr_profile *moves;
    int status = tables_fit(&c->tables, &c->profile, &moves);
    if (status != EXIT_DONE)
        return status;
    status = kernels_fit(&c->kernels, moves, &c->measured);
    tsr_profile_destroy(moves);
    if (status == EXIT_DONE)
        c->kernel_error = kernels_error(&c->kernels, c->measured, &c->kernel_checks);
    return status;
}

static int take_base(calibration *c, tsr_profile *given)
{
    if (!given && tsr_profile_parse("", &c->base) != TSR_OK)
        return complain_status(EXIT_REFUSED);
    if (given)
        c->base = tsr_profile_retain(given);
    c->profile = tsr_profile_links(c->base);
    return EXIT_DONE;
}

int calibrate(place *p, const calibration_request *request, calibration *out)
{
    *out = (calibration){.request = *request};
    int status = take_base(out, request->profile);
    status = place_agree(p, status);
    if (status == EXIT_DONE)
        status = choose_moves(out, p);
    status = time_moves(p, request->ranks, &request->settings, status, out->moves, out->count);
    if (status == EXIT_DONE)
        status = measure_tables(out, p, status);
    if (status == EXIT_DONE)
        status = measure_kernels(out, p);
    if (status != EXIT_DONE)
        return status;
    read_points(out);
    status = timed_moves_judge(out->wrong);
    if (status == EXIT_DONE)
        status = fit_links(out);
    return status == EXIT_DONE ? fit_rest(out) : status;
}
