/* Redistributions over NCCL's engine, on a stand-in that refuses every misuse; all bytes are
 * compared with the oracle. NCCL reduces integers alone in an order of its own. Floating values
 * have the bits of rank order, as on every engine. */
#include "standin_ranks.h"
#include "support.h"
#include "sweep.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct recipe {
    int world;
    bool two_meshes, lent;
} recipe;

static bool make_move(void *arg, int64_t number, sweep_case *out)
{
    const recipe *r = arg;
    oracle_random random = {.state = test_seed() * UINT64_C(1000000007) + (uint64_t)number * 31 + (uint64_t)r->world};
    out->src.dtype = oracle_random_dtype(&random);
    oracle_random_shape(&random, 4, 600, &out->src);
    out->src.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, r->world), r->world);
    out->dst = out->src;
    if (r->two_meshes)
        out->dst.mesh = oracle_random_mesh(&random, 3, 1 + oracle_random_below(&random, r->world), r->world);
    oracle_random_placements(&random, &out->src, &out->numbers);
    oracle_random_placements(&random, &out->dst, &out->numbers);
    out->seed = random.state;
    out->way = oracle_random_below(&random, 3) == 0 ? WAY_DTENSORS : WAY_PLAN;
    out->strided = oracle_random_below(&random, 2) == 0;
    out->halves = oracle_random_below(&random, 3) == 0;
    out->no_split = oracle_random_below(&random, 5) == 0;
    return true;
}

static void sweep_over(recipe r, double share)
{
    move_sweep sweep = {.world = r.world,
                        .make = make_move,
                        .arg = &r,
                        .count = INT64_MAX,
                        .engine = ENGINE_GIVEN,
                        .run = r.lent ? standin_run_lent : standin_run,
                        .deadline = test_now() + test_seconds(12) * share};
    assert_int_equal(sweep_run(&sweep), 0);
    fprintf(stderr, "%d ranks, %s%s: %lld cases\n", r.world, r.two_meshes ? "two meshes" : "one mesh",
            r.lent ? ", lent" : "", (long long)sweep.ran);
}

static void random_layouts_over_a_communicator_of_our_own(void **state)
{
    (void)state;
    sweep_over((recipe){.world = 2}, 0.2);
    sweep_over((recipe){.world = 4}, 0.2);
    sweep_over((recipe){.world = 6, .two_meshes = true}, 0.2);
}

static void random_layouts_over_one_that_is_lent(void **state)
{
    (void)state;
    sweep_over((recipe){.world = 3, .lent = true}, 0.2);
    sweep_over((recipe){.world = 5, .two_meshes = true, .lent = true}, 0.2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_layouts_over_a_communicator_of_our_own),
        cmocka_unit_test(random_layouts_over_one_that_is_lent),
    };
    test_watchdog(240);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
