/* Planning with its n-th allocation failing, for every n, for pairs of layouts that together take
 * every way through the planner. */
#include "counted_memory.h"
#include "layouts.h"
#include "support.h"

#include <tessera/plan.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *from_mesh, *from, *to_mesh, *to;
} cases[] = {
    {"4", "S(0)", "4", "S(1)"},
    /* Replicas take turns as senders, which are counted, or listed where cuts are not intervals. */
    {"2x3", "S(0),R", "2x3", "S(1),R"},
    {"2x3", "R,S(0;interleave=2)", "2x3", "S(0)[1],S(0;blocks=5,7)[0]"},
    {"2x3", "R,S(0;blocks=5,2,5)", "3x2@4", "S(1),S(0;interleave=2)"},
    /* Partial is reduced, made and kept; the short way to Partial. */
    {"2x3", "P,R", "2x3", "S(0),R"},
    {"2x3", "P,S(0;interleave=2)", "2x3", "R,S(1)"},
    {"2x3", "P,R", "3x2@4", "S(0),R"},
    {"2x3", "R,S(1)", "2x3", "P,R"},
    {"2x3", "S(0;blocks=5,7),S(1)", "2x3", "S(0;blocks=5,7),P"},
    /* Ranks share within nodes, where the plan knows nodes. */
    {"6", "S(0)", "6", "R"},
    {"6", "P", "6", "R"},
    /* Dims are divided: 12 is two blocks of 6. */
    {"3", "S(0;interleave=2)", "3", "R"},
};

static const int64_t unequal[] = {0, 1, 0, 0, 1, 2, 2, 0, 0, 1};
static const tsr_nodes nodes[] = {{0, 0, NULL}, {2, 0, NULL}, {0, 10, unequal}};
static const tsr_cost_profile round_is_free = {{0.0, 1e15}, {1e-3, 1e3}};

enum { NODES = sizeof nodes / sizeof nodes[0], RANKS = 10 };

typedef struct planning {
    const tsr_layout *src, *dst;
    tsr_plan_options options;
    tsr_plan *plan;
} planning;

static tsr_status plan_it(void *arg)
{
    planning *p = arg;
    const tsr_status status = tsr_plan_create(p->src, p->dst, &p->options, &p->plan);
    assert_true(status == TSR_OK || !p->plan);
    return status;
}

static void the_nth_allocation_fails_and_nothing_leaks_or_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        counted_memory memory = {0};
        tsr_context *context = counted_context(&memory);
        tsr_layout *src = layout_in(context, cases[i].from_mesh, "12x5", cases[i].from);
        tsr_layout *dst = layout_in(context, cases[i].to_mesh, "12x5", cases[i].to);
        for (int64_t k = 0; k < RANKS * NODES; k++) {
            test_case("--mesh %s --to-mesh %s --shape 12x5 --from \"%s\" --to \"%s\" --rank %lld, nodes %lld",
                      cases[i].from_mesh, cases[i].to_mesh, cases[i].from, cases[i].to, (long long)k / NODES,
                      (long long)k % NODES);
            planning p = {.src = src, .dst = dst, .options = TSR_PLAN_OPTIONS_INIT};
            p.options.rank = k / NODES;
            p.options.nodes = nodes[k % NODES];
            p.options.profile = &round_is_free;
            const size_t before = memory.live_blocks;
            assert_true(fail_each_allocation(&memory, plan_it, &p) > 0);
            tsr_plan_destroy(p.plan);
            assert_int_equal(memory.live_blocks, before);
        }
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
        tsr_context_destroy(context);
        assert_nothing_leaked(&memory);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_and_nothing_leaks_or_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
