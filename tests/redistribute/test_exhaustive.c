/*
 * Every pair of placement lists over {R, S(0), S(1), P} on every mesh of 1 to 8 ranks in up to 3
 * dims, executed for real.
 *
 * The cases are visited pairs first: each pass over all pairs takes another of the 100 shapes for
 * each pair, so that whatever the time allows covers every pair. TSR_TEST_SECONDS bounds each
 * mesh's share. The dtype and the way go round with the case.
 */
#include "support.h"
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

enum { LENGTHS = 10, WAYS = 3 };

static const int64_t lengths[LENGTHS] = {0, 1, 2, 3, 5, 7, 8, 13, 16, 31};

static tsr_placement placement_of(int64_t digit, tsr_reduce_op op)
{
    const tsr_placement placements[] = {tsr_replicate(), tsr_shard(0), tsr_shard(1), tsr_partial(op)};
    return placements[digit];
}

static bool make_pair(void *arg, int64_t number, sweep_case *out)
{
    const oracle_mesh *mesh = arg;
    const int64_t lists = test_power(4, mesh->ndim), pairs = lists * lists;
    /* A step that has no common factor with the number of pairs, 2^n, visits every pair once. */
    int64_t pair = number % pairs * 1237 % pairs;
    const int64_t shape = (number / pairs * 37 + pair * 7) % (LENGTHS * LENGTHS);
    const int64_t variant = number / pairs + pair;
    oracle_layout layout = {.mesh = *mesh, .ndim = 2, .shape = {lengths[shape / LENGTHS], lengths[shape % LENGTHS]}};
    /* P is P(sum), which bool alone has not. */
    layout.dtype = (tsr_dtype)(1 + variant % (TSR_DTYPE_END - 1));
    const tsr_reduce_op op = layout.dtype == TSR_BOOL ? TSR_MAX : TSR_SUM;
    out->src = out->dst = layout;
    for (int m = 0; m < mesh->ndim; m++, pair /= 16) {
        out->src.placements[m] = placement_of(pair % 4, op);
        out->dst.placements[m] = placement_of(pair / 4 % 4, op);
    }
    out->seed = (uint64_t)number + test_seed();
    out->mode = variant % WAYS == 1 ? TSR_MODE_MESSAGE : TSR_MODE_DIRECT;
    out->way = variant % WAYS == 2 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = variant / WAYS % 4 == 3;
    out->halves = variant % 5 == 3;
    out->cap = out->way == WAY_DTENSORS || variant % 8 > 1 ? CAP_NONE : variant % 16 < 2 ? CAP_LEAST : CAP_SOME;
    return true;
}

static const oracle_mesh *meshes(int *count)
{
    static oracle_mesh all[16];
    static const int64_t shapes[][3] = {{1}, {2},    {3},    {4},    {5},    {6},    {7},
                                        {8}, {2, 2}, {2, 3}, {3, 2}, {2, 4}, {4, 2}, {2, 2, 2}};
    *count = (int)(sizeof shapes / sizeof shapes[0]);
    for (int i = 0; i < *count; i++)
        all[i] = oracle_mesh_make(shapes[i][2] > 0 ? 3 : shapes[i][1] > 0 ? 2 : 1, shapes[i], 0);
    return all;
}

/* Makes passes until the mesh's share of the time is over, which is proportional to its number of
 * pairs; at least one. */
static void sweep_mesh(const oracle_mesh *mesh, double seconds)
{
    const int64_t pairs = test_power(16, mesh->ndim);
    move_sweep sweep = {.world = (int)oracle_mesh_count(mesh), .make = make_pair, .arg = (void *)mesh, .count = pairs};
    const double deadline = test_now() + seconds;
    assert_int_equal(sweep_run(&sweep), 0);
    sweep.first = pairs;
    sweep.count = pairs * LENGTHS * LENGTHS * WAYS;
    sweep.deadline = deadline;
    assert_int_equal(sweep_run(&sweep), 0);
    char text[64];
    fprintf(stderr, "mesh %s: %lld of %lld cases\n", oracle_print_mesh(mesh, text, sizeof text), (long long)sweep.ran,
            (long long)sweep.count);
}

/* Each gets this share of the time. */
static void sweep_meshes(int ndim, double share)
{
    int count;
    const oracle_mesh *all = meshes(&count);
    for (int i = 0; i < count; i++)
        if (all[i].ndim == ndim)
            sweep_mesh(&all[i], test_seconds(40) * share);
}

static void every_pair_of_lists_on_meshes_of_one_dim(void **state)
{
    (void)state;
    sweep_meshes(1, 0.02);
}

static void every_pair_of_lists_on_meshes_of_two_dims(void **state)
{
    (void)state;
    sweep_meshes(2, 0.08);
}

static void every_pair_of_lists_on_a_mesh_of_three_dims(void **state)
{
    (void)state;
    sweep_meshes(3, 0.4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pair_of_lists_on_meshes_of_one_dim),
        cmocka_unit_test(every_pair_of_lists_on_meshes_of_two_dims),
        cmocka_unit_test(every_pair_of_lists_on_a_mesh_of_three_dims),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
