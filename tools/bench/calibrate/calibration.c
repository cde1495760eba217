#include "bench/calibrate/calibration.h"

#include "cli/text_buffer.h"

#include <stdlib.h>
#include <string.h>
#include <tessera/explain.h>
#include <tessera/sys/status.h>

static const char *const targets[] = {"S(1)", "R"};
#define TARGETS (sizeof targets / sizeof *targets)

calibration_request calibration_usual(int ranks, tsr_mode mode)
{
    return (calibration_request){ranks, mode, TSR_F32, {64, INT64_C(64) << 20, 4}, usual_timing, tsr_cost_default()};
}

int64_t calibration_moves(const calibration_request *r)
{
    return (int64_t)TARGETS * size_range_count(&r->sizes);
}

/** What a rank receives from each other one. */
typedef struct box {
    int64_t rows, columns;
} box;

/** Of about so many bytes from n - 1 others together: an element from each at least. */
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
    const move_request wanted = {mesh, "S(0)", to, shape, r->dtype, r->mode, &r->profile};
    timed_move *const one = calloc(1, sizeof *one);
    if (one == NULL)
        return complain(EXIT_REFUSED, "there is no memory for the moves of a calibration");
    c->moves[c->count++] = one;
    return timed_move_create(r->ranks, &r->settings, &wanted, one);
}

/** A line takes two sizes that differ; the boxes grow with the bytes that are asked for. */
static int check_growth(const calibration_request *r, int64_t n)
{
    const box first = choose_box(n, r->dtype, r->sizes.begin);
    box last = first;
    for (int64_t bytes = r->sizes.begin; bytes > 0; bytes = size_range_next(&r->sizes, bytes))
        last = choose_box(n, r->dtype, bytes);
    if (last.rows != first.rows || last.columns != first.columns)
        return EXIT_DONE;
    const int64_t received = first.rows * first.columns * (n - 1) * (int64_t)tsr_dtype_bytes(r->dtype);
    return complain(
        EXIT_REFUSED,
        "in %s over %lld ranks, all sizes come to %lld bytes; a line is fitted to two at least: --begin and --end must be further apart",
        tsr_dtype_name(r->dtype), (long long)n, (long long)received);
}

/** Of all sizes among the n ranks of a mesh. */
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

/** "4@[1,3,5,7]": the ranks of a node. NULL if there is no memory. */
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

/** How many ranks there are on a node. */
static int64_t count_on(const int *node, int ranks, int which)
{
    int64_t n = 0;
    for (int r = 0; r < ranks; r++)
        n += node[r] == which;
    return n;
}

/** The first of those that hold most. */
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
    if (c->neighbours == NULL)
        return complain(EXIT_REFUSED, "there is no memory for a mesh of %d ranks", ranks);
    if (neighbours > 1)
        status = add_moves(c, c->neighbours, neighbours);
    c->inside = c->count;
    return status == EXIT_DONE && neighbours < ranks ? add_moves(c, c->all, ranks) : status;
}

/** Threads are all on one node, which is that of number 0. */
static int choose_moves(calibration *c, place *p)
{
    const int ranks = c->request.ranks;
    int *const node = calloc((size_t)ranks, sizeof *node);
    int status = place_agree(p, node != NULL ? EXIT_DONE : complain(EXIT_REFUSED, "there is no memory for the nodes of %d ranks", ranks));
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
        p->seconds = samples_spread(&m->loops);
        p->at = (fit_point){(double)(i < c->inside ? timed_move_received(m) : timed_move_crossed(m)), p->seconds.median};
        c->wrong += timed_move_wrong(m);
    }
}

static int fit_links(calibration *c)
{
    fit_point at[2 * FIT_POINTS];
    for (size_t i = 0; i < c->count; i++)
        at[i] = c->points[i].at;
    if (!fit_profile((link_points){at, c->inside}, (link_points){at + c->inside, c->count - c->inside}, &c->profile, c->error))
        return complain(EXIT_REFUSED, "the times do not grow with the bytes, so that they tell of no bandwidth; is this machine busy?");
    return EXIT_DONE;
}

int calibrate(place *p, const calibration_request *request, calibration *out)
{
    *out = (calibration){.request = *request, .profile = request->profile};
    int status = choose_moves(out, p);
    status = time_moves(p, request->ranks, &request->settings, status, out->moves, out->count);
    if (status != EXIT_DONE)
        return status;
    read_points(out);
    status = timed_moves_judge(out->wrong);
    return status == EXIT_DONE ? fit_links(out) : status;
}
