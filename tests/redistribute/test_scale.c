/* Plans of one rank among hundreds of thousands. With costs that grow with the square of what the
 * rank meets, these tests would not end. */
#include "counted_memory.h"
#include "layouts.h"
#include "redistribute/schedule/plan.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

typedef struct large_plan {
    const char *mesh, *shape, *from, *to, *to_mesh; /* to_mesh NULL: the same mesh */
    int64_t rank, received;                         /* elements */
} large_plan;

static const large_plan large_plans[] = {
    {"400000", "400000x3", "S(0)", "R", NULL, 77, INT64_C(3) * 399999},
    {"400000", "400000x3", "P", "R", NULL, 77, INT64_C(2) * 3 * 399999},
    {"400000", "400000x3", "S(0)", "P", NULL, 77, 0},
    /* Replicas take turns as senders: both sides compute the turns of many receivers. */
    {"200000x2", "400000x400000", "S(0),R", "S(1),R", NULL, 77, INT64_C(800000) - 4},
    {"200000x2", "400000x3", "R,S(0)", "S(0),S(0)", NULL, 77, 3},
    {"200000", "400000x3", "R", "S(0)", "200000@200000", 77, 0},
    {"200000", "400000x3", "R", "S(0)", "200000@200000", 200077, 6},
    /* Of the many owners of a region, few reduce it. */
    {"2x200000", "400000x400000", "P,S(0)", "R,R", NULL, 77, INT64_C(400000) * 400000},
    {"2x200000", "400000x3", "P,S(0)", "P,R", NULL, 77, INT64_C(399998) * 3},
    {"1000x2", "2000x3", "S(0),P", "R", "2000000", 1000000, 6000},
};

static void planning_is_linear_in_what_a_rank_meets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof large_plans / sizeof large_plans[0]; i++) {
        const large_plan *row = &large_plans[i];
        test_case("--mesh %s --shape %s --from %s --to %s, rank %lld", row->mesh, row->shape, row->from, row->to,
                  (long long)row->rank);
        tsr_layout *src = layout_of(row->mesh, row->shape, row->from);
        tsr_layout *dst = layout_of(row->to_mesh ? row->to_mesh : row->mesh, row->shape, row->to);
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = row->rank;
        tsr_plan *plan = NULL;
        assert_int_equal(tsr_plan_create(src, dst, &options, &plan), TSR_OK);
        if (tsr_plan_bytes_received(plan) != 4 * row->received)
            fail_msg("%lld bytes are received, not %lld: %s", (long long)tsr_plan_bytes_received(plan),
                     (long long)(4 * row->received), test_case_text());
        tsr_plan_destroy(plan);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
}

typedef struct vast_plan {
    const char *mesh, *shape, *from, *to, *to_mesh; /* to_mesh NULL: the same mesh */
    int64_t rank;
    int64_t messages; /* in and out: moves, terms, and what is given */
} vast_plan;

/* A planner that computed the turn of every rank, or of every receiver of a piece, would take from
 * seconds to hours for each of these. */
static const vast_plan vast_plans[] = {
    {"128x64x128", "1024x1024x1024x1024", "S(0),S(1),S(2)", "S(1),S(2),S(0)", NULL, 4242, 4},
    {"128x64x128", "1024x1024x1024x1024", "R,R,S(0)", "R,R,R", NULL, 4242, 254},
    {"128x64x128", "1024x1024x1024x1024", "S(0),R,R", "S(1),R,R", NULL, 4242, 254},
    {"128x64x128", "1024x1024x1024x1024", "R,R,S(0)", "S(0),R,R", "128x64x128@1048576", 4242, 1},
    {"128x64x128", "1024x1024x1024x1024", "R,R,S(0)", "S(0),R,R", "128x64x128@1048576", 1052818, 1},
    {"128x64x128", "1024x1024x1024x1024", "R,P,R", "S(0),R,R", NULL, 4242, 1032},
    {"128x64x128", "1024x1024x1024x1024", "P,S(0),S(1)", "S(2),S(0),S(1)", NULL, 4242, 254},
    {"128x64x128", "1048576x1024x32x32", "S(0),S(0),S(0)", "S(0)[2],S(0)[1],S(0)[0]", NULL, 4242, 2},
    {"128x64x128", "1048576x1024x32x32", "S(0),S(0),S(0)", "P,P,P", NULL, 4242, 0},
    {"128x64x128", "1048576x1024x32x32", "S(1),R,R", "S(0),S(0),S(0)", NULL, 4242, 254},
    {"128x64x128", "1048576x1024x32x32", "P,R,R", "S(0),S(0),S(0)", NULL, 4242, 254},
    {"128x64x128", "1048576x1024x32x32", "P,R,R", "S(0)[2],S(0)[0],S(0)[1]", NULL, 4242, 254},
    /* No number of ranks divides these lengths, so some pieces are shorter, or empty. */
    {"128x64x128", "1048575x1021x31x31", "S(1),R,R", "S(0),S(0),S(0)", NULL, 4242, 254},
    {"128x64x128", "1048575x1021x31x31", "S(1),R,R", "S(0;balanced)[1],S(0)[0],S(0;unit=3)[2]", NULL, 4242, 170},
    {"128x64x128", "1000x999x1021x1031", "R,S(0),S(0)", "S(0),R,S(1)", NULL, 4242, 8},
    /* A rank that holds nothing on one side, however many meet along one dim of that. */
    {"1048576", "1048576x1", "S(0)", "S(1)", NULL, 4242, 1},
    {"1048576", "1048576x256", "S(0)", "S(1)", NULL, 4242, 256},
    {"1048576", "1048576x256", "S(1)", "S(0)", NULL, 4242, 256},
    {"1048576", "1048576x1", "S(1)", "S(0;interleave=2)", NULL, 4242, 1},
    {"1024x1024", "1048576x1x1048576", "S(0),S(0)", "S(1),S(1)", NULL, 4242, 1},
    {"2x524288", "1048576x1", "P,S(0)", "R,S(1)", NULL, 4242, 2},
    /* A rank without part in a reduction does not go through the reductions, and ranks of one mesh
     * alone are not looked for in the other. */
    {"500000000x2", "500000000", "P,R", "S(0),R", NULL, 4243, 1},
    {"2000x1000000", "2000", "S(0),P", "R", "100000000@2000000000", 2000004242, 2000},
    /* Of all that the destination takes, its own piece alone is moved. */
    {"1048576", "2097152", "S(0;interleave=2)", "P", NULL, 4242, 0},
    {"1000x1000x1000", "1048576x1024x32x32", "R,R,S(0)", "R,R,R", NULL, 424242424, 1998},
    {"1000x1000x1000", "1048576x1024x32x32", "R,R,S(0)", "S(0),R,R", NULL, 424242424, 1},
    {"1000x1000x1000", "1048576x1024x32x32", "S(1),R,R", "S(0),S(0),S(0)", NULL, 424242424, 1},
};

static int64_t count_messages(const tsr_plan *plan)
{
    const tsr_item *item = &plan->items[0];
    size_t count = item->sends.count + item->given.count + item->gives.count;
    for (size_t i = 0; i < item->moves.count; i++)
        count += item->moves.at[i].peer != plan->options.rank;
    for (size_t i = 0; i < item->contributor_count; i++)
        count += item->contributors[i] != plan->options.rank;
    return (int64_t)count;
}

/* The memory that planning allocates, counted exactly: a part for the plan itself, and a part for
 * each message. Moves from and to a thousand peers stay below 1 MiB. */
static void planning_costs_what_its_messages_cost(void **state)
{
    (void)state;
    enum { PLAN_BYTES = 8192, MESSAGE_BYTES = 480 };
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    for (size_t i = 0; i < sizeof vast_plans / sizeof vast_plans[0]; i++) {
        const vast_plan *row = &vast_plans[i];
        test_case("--mesh %s --shape %s --from %s --to %s, rank %lld", row->mesh, row->shape, row->from, row->to,
                  (long long)row->rank);
        tsr_layout *src = layout_in(context, row->mesh, row->shape, row->from);
        tsr_layout *dst = layout_in(context, row->to_mesh ? row->to_mesh : row->mesh, row->shape, row->to);
        tsr_plan_options plan_options = TSR_PLAN_OPTIONS_INIT;
        plan_options.rank = row->rank;
        tsr_plan *plan = NULL;
        memory.bytes = 0;
        expect_ok(tsr_plan_create(src, dst, &plan_options, &plan));
        if (count_messages(plan) != row->messages)
            fail_msg("%lld messages instead of %lld: %s", (long long)count_messages(plan), (long long)row->messages,
                     test_case_text());
        if ((int64_t)memory.bytes > PLAN_BYTES + MESSAGE_BYTES * row->messages)
            fail_msg("%lld messages took %zu bytes: %s", (long long)row->messages, memory.bytes, test_case_text());
        tsr_plan_destroy(plan);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
    tsr_context_destroy(context);
}

/* A look-up that went through the blocks from the first one on would take minutes here. Of two
 * ranks, the first goes from the first half of the tensor to the first half of each block: half of
 * that is in the other half. */
static void planning_goes_through_blocks_once(void **state)
{
    (void)state;
    enum { BLOCKS = 100000, ROWS = 8 * BLOCKS };
    static int64_t blocks[BLOCKS];
    for (int i = 0; i < BLOCKS; i++)
        blocks[i] = i % 2 == 0 ? 6 : 10;
    test_case("--mesh 2 --shape %d --from S(0) --to \"S(0;blocks=6,10,..)\" and back, rank 0", ROWS);
    tsr_mesh *mesh = NULL;
    expect_ok(tsr_mesh_parse(NULL, NULL, "2", &mesh));
    tsr_placement placements[] = {tsr_shard(0), tsr_shard(0)};
    placements[1].blocks = blocks;
    placements[1].block_count = BLOCKS;
    tsr_layout *layouts[2] = {NULL, NULL};
    for (int i = 0; i < 2; i++)
        expect_ok(tsr_layout_create(mesh, &placements[i], 1, (const int64_t[]){ROWS}, TSR_F32, &layouts[i]));
    for (int back = 0; back < 2; back++) {
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = 0;
        tsr_plan *plan = NULL;
        expect_ok(tsr_plan_create(layouts[back], layouts[1 - back], &options, &plan));
        assert_int_equal(tsr_plan_bytes_received(plan), 4 * ROWS / 4);
        assert_int_equal(tsr_plan_bytes_sent(plan), 4 * ROWS / 4);
        tsr_plan_destroy(plan);
    }
    tsr_layout_destroy(layouts[0]);
    tsr_layout_destroy(layouts[1]);
    tsr_mesh_destroy(mesh);
}

/* One rank may receive or send more bytes than the tensor has. */
static void more_bytes_than_can_be_counted_are_refused(void **state)
{
    (void)state;
    static const char *const pairs[][3] = {{"8", "P", "1@0"}, {"8@1", "P", "1@0"}, {"1@0", "R", "64@1"}};
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tsr_layout *src = layout_of(pairs[i][0], "1152921504606846976", pairs[i][1]);
        tsr_layout *dst = layout_of(pairs[i][2], "1152921504606846976", "R");
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = 0;
        options.mode = TSR_MODE_MESSAGE;
        tsr_plan *plan = NULL;
        assert_int_equal(tsr_plan_create(src, dst, &options, &plan), TSR_ERROR_ARGUMENT);
        assert_non_null(strstr(tsr_status_message(), "2^61 bytes"));
        assert_null(plan);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(planning_is_linear_in_what_a_rank_meets),
        cmocka_unit_test(planning_costs_what_its_messages_cost),
        cmocka_unit_test(planning_goes_through_blocks_once),
        cmocka_unit_test(more_bytes_than_can_be_counted_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
