/* tsr_redistribute_into() between meshes: over one communicator, and over several that were split
 * off one; its plans are kept, and evicted in one order on all ranks. */
#include "counted_memory.h"
#include "ranks.h"
#include "support.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

enum { RANKS = 4, ROWS = 6, COLUMNS = 5, COUNT = ROWS * COLUMNS };

static const int64_t shape[] = {ROWS, COLUMNS};

/* Compares this rank's shard with that of a tensor whose elements are `factor` times their
 * number. */
static tsr_status check_numbered(const tsr_dtensor *y, int factor)
{
    const tsr_layout *layout = tsr_dtensor_layout(y);
    tsr_dtensor *wanted = NULL;
    int64_t count;
    char text[256];
    tsr_layout_print(layout, text, sizeof text);
    TSR_TRY(numbered_over(tsr_layout_mesh(layout), text, shape, factor, &wanted));
    const tsr_tensor have = tsr_dtensor_to_local(y), want = tsr_dtensor_to_local(wanted);
    TSR_TRY(tsr_tensor_count(&have, &count));
    CHECK(count == 0 || memcmp(have.data, want.data, (size_t)count * sizeof(int32_t)) == 0);
    tsr_dtensor_destroy(wanted);
    return TSR_OK;
}

typedef struct move {
    const char *from_mesh, *from, *to_mesh, *to;
} move;

static const move moves[] = {
    {"2@0", "S(0)", "2@2", "S(1)"},    /* apart */
    {"3@0", "S(0)", "2@2", "R"},       /* they share a rank */
    {"4", "S(0)", "2x2", "S(1),S(0)"}, /* all ranks, in another grid */
    {"4", "P", "4@[3,2,1,0]", "S(0)"}, /* in another order */
    {"2x2", "S(0),P", "3@1", "S(1)"},  /* a reduction */
    {"1@0", "R", "4", "P"},            /* a scatter */
    {"2@1", "R", "1@3", "R"},          /* rank 0 looks on */
};
enum { MOVES = sizeof moves / sizeof *moves };

static tsr_status move_each(tsr_comm *comm, void *arg)
{
    (void)arg;
    tsr_mesh *from[MOVES], *to[MOVES];
    for (int i = 0; i < MOVES; i++) {
        TSR_TRY(mesh_over(comm, moves[i].from_mesh, &from[i]));
        TSR_TRY(mesh_over(comm, moves[i].to_mesh, &to[i]));
    }
    for (int round = 0; round < 3; round++)
        for (int i = 0; i < MOVES; i++) {
            tsr_dtensor *x = NULL, *y = NULL;
            TSR_TRY(numbered_over(from[i], moves[i].from, shape, 1 + round, &x));
            TSR_TRY(numbered_over(to[i], moves[i].to, shape, 0, &y));
            for (int again = 0; again < 2; again++)
                TSR_TRY(tsr_redistribute_into(x, y, NULL));
            TSR_TRY(check_numbered(y, 1 + round));
            tsr_dtensor_destroy(y);
            tsr_dtensor_destroy(x);
        }
    const tsr_cache_statistics found = tsr_comm_cache_statistics(comm);
    CHECK(found.misses == MOVES && found.entries == MOVES && found.hits == 5 * MOVES);
    CHECK(tsr_mesh_cache_statistics(from[0]).entries == 0);
    CHECK(tsr_comm_cache_statistics(NULL).entries == 0);
    for (int i = 0; i < MOVES; i++) {
        tsr_mesh_destroy(to[i]);
        tsr_mesh_destroy(from[i]);
    }
    return TSR_OK;
}

static void tensors_move_between_meshes_and_plans_are_kept(void **state)
{
    (void)state;
    run_ranks(RANKS, move_each, NULL);
}

/* Ranks 0 and 1 train, ranks 3 and 2 serve, each over a communicator of its own; the others
 * describe the mesh over the world. */
typedef struct sides {
    tsr_comm *trainer, *server;
    tsr_mesh *from, *to;
} sides;

static tsr_status make_side(tsr_comm *world, tsr_comm *side, int64_t first, int64_t second, tsr_mesh **out)
{
    const int64_t two = 2, ranks[] = {first, second};
    return tsr_mesh_create(side ? side : world, 1, &two, NULL, side ? NULL : ranks, out);
}

static tsr_status open_sides(tsr_comm *world, sides *s)
{
    const int rank = tsr_comm_rank(world), trains = rank < 2;
    *s = (sides){NULL, NULL, NULL, NULL};
    TSR_TRY(tsr_comm_split(world, trains ? 0 : -1, rank, &s->trainer));
    TSR_TRY(tsr_comm_split(world, trains ? -1 : 0, -rank, &s->server));
    TSR_TRY(make_side(world, s->trainer, 0, 1, &s->from));
    return make_side(world, s->server, 3, 2, &s->to);
}

static void close_sides(sides *s)
{
    tsr_mesh_destroy(s->to);
    tsr_mesh_destroy(s->from);
    tsr_comm_destroy(s->server);
    tsr_comm_destroy(s->trainer);
}

static tsr_status serve(tsr_comm *world, void *arg)
{
    sides s;
    (void)arg;
    TSR_TRY(open_sides(world, &s));
    for (int step = 1; step <= 3; step++) {
        tsr_dtensor *x = NULL, *y = NULL, *other = NULL;
        TSR_TRY(numbered_over(s.from, "S(0)", shape, step, &x));
        TSR_TRY(numbered_over(s.to, "S(1)", shape, 0, &y));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_numbered(y, step));
        /* The sides' own moves, which the others do not see, leave the common plans alone. */
        if (s.trainer)
            TSR_TRY(tsr_redistribute_to(x, "R", &other));
        TSR_TRY(tsr_redistribute_into(y, x, NULL));
        TSR_TRY(check_numbered(x, step));
        tsr_dtensor_destroy(other);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
    }
    const tsr_cache_statistics found = tsr_comm_cache_statistics(world);
    CHECK(found.misses == 2 && found.hits == 4);
    close_sides(&s);
    return TSR_OK;
}

static void a_trainer_and_a_server_share_a_world(void **state)
{
    (void)state;
    run_ranks(RANKS, serve, NULL);
}

/* Equal meshes over two communicators of the same ranks, and layouts that are made anew each
 * time. */
static tsr_status over_congruent(tsr_comm *world, void *arg)
{
    tsr_comm *other = NULL, *third = NULL;
    (void)arg;
    TSR_TRY(tsr_comm_split(world, 0, tsr_comm_rank(world), &other));
    TSR_TRY(tsr_comm_split(world, 0, -tsr_comm_rank(world), &third));
    for (int step = 1; step <= 3; step++) {
        tsr_mesh *a = NULL, *b = NULL, *c = NULL;
        tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
        TSR_TRY(mesh_over(world, "2x2", &a));
        TSR_TRY(mesh_over(other, "2x2", &b));
        TSR_TRY(mesh_over(third, "4", &c));
        TSR_TRY(numbered_over(a, "S(0),S(1)", shape, step, &x));
        TSR_TRY(numbered_over(b, "S(1),S(0)", shape, 0, &y));
        TSR_TRY(numbered_over(c, "S(0;balanced)", shape, 0, &z));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_numbered(y, step));
        TSR_TRY(tsr_redistribute_into(y, z, NULL));
        TSR_TRY(check_numbered(z, step));
        tsr_dtensor_destroy(z);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
        tsr_mesh_destroy(c);
        tsr_mesh_destroy(b);
        tsr_mesh_destroy(a);
    }
    CHECK(tsr_comm_cache_statistics(world).misses == 2 && tsr_comm_cache_statistics(world).hits == 4);
    tsr_comm_destroy(third);
    tsr_comm_destroy(other);
    return TSR_OK;
}

static void congruent_communicators_are_no_obstacle(void **state)
{
    (void)state;
    run_ranks(RANKS, over_congruent, NULL);
}

/* More moves than the cache has room for, in an order that mixes hits and misses. */
static tsr_status evict(tsr_comm *comm, void *arg)
{
    (void)arg;
    unsigned draw = 1;
    sides s;
    TSR_TRY(open_sides(comm, &s));
    for (int step = 0; step < 60; step++) {
        static const char *const lists[] = {"R", "S(0)", "S(1)", "S(0;balanced)"};
        tsr_dtensor *x = NULL, *y = NULL, *own = NULL;
        draw = draw * 1103515245U + 12345U;
        TSR_TRY(numbered_over(s.from, lists[draw >> 16 & 3], shape, step, &x));
        TSR_TRY(numbered_over(s.to, lists[draw >> 18 & 3], shape, 0, &y));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_numbered(y, step));
        if (s.server && step % 3 == 0)
            TSR_TRY(tsr_redistribute_to(y, lists[draw >> 20 & 3], &own));
        tsr_dtensor_destroy(own);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(x);
    }
    const tsr_cache_statistics found = tsr_comm_cache_statistics(comm);
    CHECK(found.entries == 3 && found.misses > 3 && found.hits + found.misses == 60);
    close_sides(&s);
    return TSR_OK;
}

static void ranks_evict_the_same_plans(void **state)
{
    (void)state;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    options.plan_cache_entries = 3;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    if (tsr_threads_run(RANKS, evict, NULL, &threads) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(threads.context);
}

/* Rank 3 fails its n-th allocation in the first move between two communicators, for every n. */
static tsr_status run_short(tsr_comm *world, void *arg)
{
    const bool odd = tsr_comm_rank(world) == 3;
    sides s;
    tsr_dtensor *x = NULL, *y = NULL;
    int32_t failed = 1, all = 1;
    (void)arg;
    TSR_TRY(open_sides(world, &s));
    TSR_TRY(numbered_over(s.from, "S(0)", shape, 3, &x));
    TSR_TRY(numbered_over(s.to, "S(1)", shape, 0, &y));
    for (size_t nth = 1; all != 0; nth++) {
        if (odd)
            counted_fail_here(nth, false);
        const tsr_status status = tsr_redistribute_into(x, y, NULL);
        failed = odd && counted_fail_here(0, false) == 0;
        TSR_TRY(tsr_comm_all_reduce(world, &failed, &all, 1, TSR_I32, TSR_MAX, tsr_device_host(), NULL));
        if (all == 0)
            TSR_TRY(status);
        else
            CHECK_ERROR(status, odd ? TSR_ERROR_MEMORY : TSR_ERROR_PEER, "no memory");
        CHECK(nth < 1000);
    }
    TSR_TRY(check_numbered(y, 3));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    close_sides(&s);
    return TSR_OK;
}

static void a_rank_without_memory_tells_the_others(void **state)
{
    (void)state;
    counted_memory memory = {0};
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    threads.context = counted_context(&memory);
    threads.timeout_ms = 10000;
    if (tsr_threads_run(RANKS, run_short, NULL, &threads) != TSR_OK)
        fail_msg("%s", tsr_status_message());
    tsr_context_destroy(threads.context);
    assert_nothing_leaked(&memory);
}

static tsr_status refuse(tsr_comm *comm, void *arg)
{
    const int rank = tsr_comm_rank(comm);
    const int64_t flat[] = {COUNT};
    tsr_mesh *from = NULL, *to = NULL;
    tsr_layout *other = NULL;
    tsr_dtensor *x = NULL, *y = NULL, *z = NULL;
    (void)arg;
    TSR_TRY(mesh_over(comm, "4", &from));
    TSR_TRY(mesh_over(comm, "2x2", &to));
    TSR_TRY(tsr_layout_parse(to, "S(0),R", 1, flat, TSR_I32, &other));
    TSR_TRY(numbered_over(from, "S(0)", shape, 1, &x));
    TSR_TRY(numbered_over(to, "S(1),S(0)", shape, 0, &y));
    TSR_TRY(tsr_dtensor_create(other, tsr_device_host(), &z));
    /* Before the first plan, and when it is kept. */
    for (int round = 0; round < 2; round++) {
        CHECK_ERROR(tsr_redistribute_into(x, rank == 1 ? NULL : y, NULL),
                    rank == 1 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER, "tsr_redistribute_into: y is NULL");
        CHECK_ERROR(tsr_redistribute_into(x, rank == 2 ? z : y, NULL), rank == 2 ? TSR_ERROR_ARGUMENT : TSR_ERROR_PEER,
                    "both must have the same global shape and dtype");
        CHECK_ERROR(tsr_redistribute_into(x, z, NULL), TSR_ERROR_ARGUMENT, "the same global shape and dtype");
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_numbered(y, 1));
    }
    const tsr_dtensor *const sources[] = {x};
    tsr_dtensor *const destinations[] = {y};
    CHECK_ERROR(tsr_redistribute_batch(1, sources, destinations, NULL), TSR_ERROR_ARGUMENT,
                "both must be on one mesh (tsr_redistribute_into() takes two)");
    tsr_dtensor_destroy(z);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_layout_destroy(other);
    tsr_mesh_destroy(to);
    tsr_mesh_destroy(from);
    return TSR_OK;
}

static void faults_are_told_to_the_common_communicator(void **state)
{
    (void)state;
    run_ranks(RANKS, refuse, NULL);
}

/* Two worlds of the same threads. */
static tsr_status without_ancestor(tsr_comm *comm, void *arg)
{
    tsr_comm *const *others = arg;
    tsr_mesh *a = NULL, *b = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    TSR_TRY(mesh_over(comm, "2", &a));
    TSR_TRY(mesh_over(others[tsr_comm_rank(comm)], "2", &b));
    TSR_TRY(numbered_over(a, "S(0)", shape, 1, &x));
    TSR_TRY(numbered_over(b, "S(1)", shape, 0, &y));
    CHECK_ERROR(tsr_redistribute_into(x, y, NULL), TSR_ERROR_ARGUMENT,
                "tsr_redistribute_into: the communicators differ");
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(b);
    tsr_mesh_destroy(a);
    return TSR_OK;
}

static void strangers_are_refused(void **state)
{
    (void)state;
    tsr_comm *others[2];
    assert_int_equal(tsr_comm_create_threads(2, NULL, others), TSR_OK);
    run_ranks(2, without_ancestor, others);
    tsr_comm_destroy(others[0]);
    tsr_comm_destroy(others[1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tensors_move_between_meshes_and_plans_are_kept),
        cmocka_unit_test(a_trainer_and_a_server_share_a_world),
        cmocka_unit_test(congruent_communicators_are_no_obstacle),
        cmocka_unit_test(ranks_evict_the_same_plans),
        cmocka_unit_test(a_rank_without_memory_tells_the_others),
        cmocka_unit_test(faults_are_told_to_the_common_communicator),
        cmocka_unit_test(strangers_are_refused),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
