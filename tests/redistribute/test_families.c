/* Plans between meshes over different communicators run in the nearest communicator from which both
 * descend, or are refused. */
#include "layouts.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

enum { WORLD = 5, ROWS = 7, COLUMNS = 3, ELEMENTS = ROWS * COLUMNS };

/* Ranks 0 to 2 train; ranks 4, 3 and 2 serve, in this order. Rank 2 does both. */
static bool trains(int rank)
{
    return rank <= 2;
}

static bool serves(int rank)
{
    return rank >= 2;
}

/* A mesh of `count` ranks over `own` where this rank has that communicator, else over the world,
 * which calls them `ranks`. */
static tsr_status mesh_of(tsr_comm *world, tsr_comm *own, const int64_t *ranks, tsr_mesh **out)
{
    const int64_t count = 3;
    return tsr_mesh_create(own ? own : world, 1, &count, NULL, own ? NULL : ranks, out);
}

static tsr_status layout_on(const tsr_mesh *mesh, const char *placements, tsr_layout **out)
{
    const int64_t shape[] = {ROWS, COLUMNS};
    return tsr_layout_parse(mesh, placements, 2, shape, TSR_I32, out);
}

/* Element i of this rank's shard, row by row, is `base` + its global index. */
static tsr_status fill(const tsr_layout *layout, int base, int32_t *data)
{
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    for (int64_t i = 0; i < shape[0] * shape[1]; i++)
        data[i] = base + (int32_t)((offset[0] + i / shape[1]) * COLUMNS + offset[1] + i % shape[1]);
    return TSR_OK;
}

static tsr_status check_filled(const tsr_layout *layout, int base, const int32_t *data)
{
    int32_t wanted[ELEMENTS];
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, NULL));
    TSR_TRY(fill(layout, base, wanted));
    CHECK(memcmp(wanted, data, (size_t)(shape[0] * shape[1]) * sizeof *data) == 0);
    return TSR_OK;
}

/* One rank's tensors of the move from the trainer's mesh to the server's. */
typedef struct family {
    tsr_comm *trainer, *server;
    tsr_mesh *from, *to;
    tsr_layout *src, *dst;
    tsr_plan *plan;
} family;

static tsr_status begin(tsr_comm *world, family *f)
{
    static const int64_t trainers[] = {0, 1, 2}, servers[] = {4, 3, 2};
    const int rank = tsr_comm_rank(world);
    *f = (family){0};
    TSR_TRY(tsr_comm_split(world, trains(rank) ? 0 : -1, rank, &f->trainer));
    TSR_TRY(tsr_comm_split(world, serves(rank) ? 0 : -1, -rank, &f->server));
    TSR_TRY(mesh_of(world, f->trainer, trainers, &f->from));
    TSR_TRY(mesh_of(world, f->server, servers, &f->to));
    TSR_TRY(layout_on(f->from, "S(0)", &f->src));
    return layout_on(f->to, "S(1)", &f->dst);
}

static void end(family *f)
{
    tsr_plan_destroy(f->plan);
    tsr_layout_destroy(f->src);
    tsr_layout_destroy(f->dst);
    tsr_mesh_destroy(f->from);
    tsr_mesh_destroy(f->to);
    tsr_comm_destroy(f->trainer);
    tsr_comm_destroy(f->server);
}

static tsr_status execute(tsr_comm *world, family *f, int base)
{
    int32_t have[ELEMENTS], got[ELEMENTS] = {0};
    tsr_tensor src, dst;
    size_t bytes;
    const int rank = tsr_comm_rank(world);
    if (trains(rank)) {
        TSR_TRY(fill(f->src, base, have));
        TSR_TRY(shard_over(f->src, have, &src));
    }
    if (serves(rank))
        TSR_TRY(shard_over(f->dst, got, &dst));
    void *workspace = workspace_for(f->plan, &bytes);
    const tsr_status status = tsr_plan_execute(f->plan, world, trains(rank) ? &src : NULL, serves(rank) ? &dst : NULL,
                                               workspace, bytes, NULL);
    free(workspace);
    TSR_TRY(status);
    return serves(rank) ? check_filled(f->dst, base, got) : TSR_OK;
}

static tsr_status move_between_siblings(tsr_comm *world, void *arg)
{
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    family f;
    options.mode = *(const tsr_mode *)arg;
    TSR_TRY(begin(world, &f));
    TSR_TRY(tsr_plan_create(f.src, f.dst, &options, &f.plan));
    TSR_TRY(tsr_plan_prepare(f.plan, world));
    for (int again = 0; again < 3; again++)
        TSR_TRY(execute(world, &f, 100 * again));
    /* A rank that has both communicators finds that the world is the plan's. */
    CHECK(!(f.trainer && f.server) || tsr_mesh_comm(tsr_layout_mesh(tsr_plan_source(f.plan))) == world);
    end(&f);
    return TSR_OK;
}

static void a_trainer_hands_over_to_a_server_of_other_ranks_in_another_order(void **state)
{
    (void)state;
    tsr_mode modes[] = {TSR_MODE_DIRECT, TSR_MODE_MESSAGE};
    for (int i = 0; i < 2; i++) {
        test_case("mode %d", i);
        run_ranks(WORLD, move_between_siblings, &modes[i]);
    }
}

/* A rank that passes one of two sibling communicators is refused, and its peers are told. */
static tsr_status pass_a_sibling(tsr_comm *world, void *arg)
{
    (void)arg;
    family f;
    TSR_TRY(begin(world, &f));
    TSR_TRY(tsr_plan_create(f.src, f.dst, NULL, &f.plan));
    if (f.server)
        CHECK_ERROR(tsr_plan_prepare(f.plan, f.server), TSR_ERROR_STATE, "communicator");
    TSR_TRY(tsr_plan_prepare(f.plan, world));
    if (f.server)
        CHECK_ERROR(tsr_plan_execute(f.plan, f.server, NULL, NULL, NULL, 0, NULL), TSR_ERROR_STATE,
                    "tsr_plan_source()");
    TSR_TRY(execute(world, &f, 7));
    end(&f);
    return TSR_OK;
}

static void a_plan_of_a_family_is_refused_on_a_part_of_it(void **state)
{
    (void)state;
    test_case("the server's handle in place of the world's");
    run_ranks(WORLD, pass_a_sibling, NULL);
}

/* Each half of the ranks gives its own destination: this is not one move, and all ranks are
 * told. */
static tsr_status move_to_halves(tsr_comm *world, void *arg)
{
    (void)arg;
    tsr_comm *half = NULL;
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(tsr_comm_split(world, tsr_comm_rank(world) / 2, 0, &half));
    TSR_TRY(layout_over(world, "4", "8", "S(0)", TSR_I32, &src));
    TSR_TRY(layout_over(half, "2", "8", "S(0)", TSR_I32, &dst));
    TSR_TRY(tsr_plan_create(src, dst, NULL, &plan));
    CHECK_ERROR(tsr_plan_prepare(plan, world), TSR_ERROR_ARGUMENT, "ranks disagree: rank 0 calls redistribute");
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    tsr_comm_destroy(half);
    return TSR_OK;
}

static void halves_that_are_each_a_destination_disagree(void **state)
{
    (void)state;
    test_case("S(0) on mesh 4 to S(0) on mesh 2 of a half");
    run_ranks(4, move_to_halves, NULL);
}

/* What was found of a communicator holds for none that comes after it, though it may lie in the
 * same memory. Ends
 * `*copy`. */
static tsr_status refuse_successors(tsr_comm *world, const tsr_plan *plan, tsr_comm **copy)
{
    for (int i = 0; i < 4; i++) {
        tsr_comm_destroy(*copy);
        TSR_TRY(tsr_comm_split(world, 0, -tsr_comm_rank(world), copy));
        CHECK_ERROR(tsr_plan_prepare(plan, *copy), TSR_ERROR_STATE, "the plan is");
        tsr_comm_destroy(*copy);
        TSR_TRY(tsr_comm_split(world, 0, 0, copy));
        TSR_TRY(tsr_plan_prepare(plan, *copy));
    }
    tsr_comm_destroy(*copy);
    return TSR_OK;
}

/* A copy in the same order is as good as the original; one in another order is another
 * communicator. */
static tsr_status prepare_on_copies(tsr_comm *world, void *arg)
{
    (void)arg;
    const int rank = tsr_comm_rank(world);
    tsr_comm *copy = NULL, *turned = NULL;
    tsr_layout *src = NULL, *dst = NULL, *relabelled = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(tsr_comm_split(world, 0, rank, &copy));
    TSR_TRY(tsr_comm_split(world, 0, -rank, &turned));
    CHECK(tsr_comm_congruent(world, copy) && tsr_comm_congruent(copy, world) && !tsr_comm_congruent(world, turned));
    TSR_TRY(layout_over(world, "3", "6", "S(0)", TSR_I32, &src));
    TSR_TRY(layout_over(copy, "3", "6", "R", TSR_I32, &dst));
    TSR_TRY(tsr_plan_create(src, dst, NULL, &plan));
    TSR_TRY(tsr_plan_prepare(plan, copy));
    int32_t have[] = {2 * rank, 2 * rank + 1}, got[6] = {0};
    tsr_tensor x, y;
    TSR_TRY(shard_over(src, have, &x));
    TSR_TRY(shard_over(dst, got, &y));
    TSR_TRY(tsr_plan_execute(plan, copy, &x, &y, NULL, 0, NULL));
    for (int i = 0; i < 6; i++)
        CHECK(got[i] == i);
    CHECK_ERROR(tsr_plan_prepare(plan, turned), TSR_ERROR_STATE, "the plan is");
    TSR_TRY(tsr_plan_execute(plan, copy, &x, &y, NULL, 0, NULL));
    CHECK_ERROR(tsr_plan_execute(plan, turned, &x, &y, NULL, 0, NULL), TSR_ERROR_STATE, "the plan is");
    const tsr_mesh *const here = tsr_layout_mesh(src), *const there = tsr_layout_mesh(dst);
    CHECK(tsr_mesh_congruent(here, here) && tsr_mesh_congruent(here, there));
    tsr_layout_destroy(dst);
    TSR_TRY(layout_over(turned, "3", "6", "S(0)", TSR_I32, &dst));
    CHECK(tsr_mesh_equal(here, tsr_layout_mesh(dst)) && !tsr_mesh_congruent(here, tsr_layout_mesh(dst)));
    CHECK_ERROR(tsr_layout_relabel(src, dst, &relabelled, NULL), TSR_ERROR_ARGUMENT, "the communicators differ");
    tsr_layout_destroy(dst);
    tsr_comm_destroy(turned);
    TSR_TRY(refuse_successors(world, plan, &copy));
    tsr_plan_destroy(plan);
    tsr_layout_destroy(src);
    return TSR_OK;
}

static void a_congruent_communicator_serves_and_a_turned_one_is_refused(void **state)
{
    (void)state;
    test_case("a copy, and one of falling ranks, of 3");
    run_ranks(3, prepare_on_copies, NULL);
}

static tsr_status plan_between_strangers(tsr_comm *world, void *arg)
{
    tsr_comm *const other = ((tsr_comm **)arg)[tsr_comm_rank(world)];
    tsr_layout *src = NULL, *dst = NULL;
    tsr_plan *plan = NULL;
    TSR_TRY(layout_over(world, "2", "8", "S(0)", TSR_I32, &src));
    TSR_TRY(layout_over(other, "2", "8", "R", TSR_I32, &dst));
    CHECK_ERROR(tsr_plan_create(src, dst, NULL, &plan), TSR_ERROR_ARGUMENT, "the communicators differ");
    CHECK_ERROR(tsr_plan_create(dst, src, NULL, &plan), TSR_ERROR_ARGUMENT, "tsr_comm_split()");
    CHECK(!plan);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
    return TSR_OK;
}

static void communicators_without_a_common_ancestor_are_refused(void **state)
{
    (void)state;
    tsr_comm *others[2];
    test_case("two worlds of 2");
    assert_int_equal(tsr_comm_create_threads(2, NULL, others), TSR_OK);
    run_ranks(2, plan_between_strangers, others);
    tsr_comm_destroy(others[0]);
    tsr_comm_destroy(others[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_trainer_hands_over_to_a_server_of_other_ranks_in_another_order),
        cmocka_unit_test(a_plan_of_a_family_is_refused_on_a_part_of_it),
        cmocka_unit_test(halves_that_are_each_a_destination_disagree),
        cmocka_unit_test(a_congruent_communicator_serves_and_a_turned_one_is_refused),
        cmocka_unit_test(communicators_without_a_common_ancestor_are_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
