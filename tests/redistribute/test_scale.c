/** Plans of one rank among hundreds of thousands: costs that grow with the square of what the rank meets would never end. */
#include "layouts.h"
#include "support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>
#include <tessera/tessera.h>

#include <cmocka.h>

typedef struct large_plan {
    const char *mesh, *shape, *from, *to, *to_mesh; /* to_mesh NULL: the same */
    int64_t rank, received;                         /* elements */
} large_plan;

static const large_plan large_plans[] = {
    {"400000", "400000x3", "S(0)", "R", NULL, 77, INT64_C(3) * 399999},
    {"400000", "400000x3", "P", "R", NULL, 77, INT64_C(2) * 3 * 399999},
    {"400000", "400000x3", "S(0)", "P", NULL, 77, 0},
    /* Replicas take turns: each side asks for the turns of many receivers. */
    {"200000x2", "400000x400000", "S(0),R", "S(1),R", NULL, 77, INT64_C(800000) - 4},
    {"200000x2", "400000x3", "R,S(0)", "S(0),S(0)", NULL, 77, 3},
    {"200000", "400000x3", "R", "S(0)", "200000@200000", 77, 0},
    {"200000", "400000x3", "R", "S(0)", "200000@200000", 200077, 6},
    /* Few of the many owners of a region reduce it. */
    {"2x200000", "400000x400000", "P,S(0)", "R,R", NULL, 77, INT64_C(400000) * 400000},
    {"2x200000", "400000x3", "P,S(0)", "P,R", NULL, 77, INT64_C(399998) * 3},
};

static void planning_is_linear_in_what_a_rank_meets(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(large_plans) / sizeof(large_plans[0]); i++) {
        const large_plan *row = &large_plans[i];
        test_case("--mesh %s --shape %s --from %s --to %s, rank %lld", row->mesh, row->shape, row->from, row->to, (long long)row->rank);
        tsr_layout *src = layout_of(row->mesh, row->shape, row->from);
        tsr_layout *dst = layout_of(row->to_mesh != NULL ? row->to_mesh : row->mesh, row->shape, row->to);
        tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
        options.rank = row->rank;
        tsr_plan *plan = NULL;
        assert_int_equal(tsr_plan_create(src, dst, &options, &plan), TSR_OK);
        if (tsr_plan_bytes_received(plan) != 4 * row->received)
            fail_msg("%lld bytes are received, not %lld: %s", (long long)tsr_plan_bytes_received(plan), (long long)(4 * row->received),
                     test_case_text());
        tsr_plan_destroy(plan);
        tsr_layout_destroy(dst);
        tsr_layout_destroy(src);
    }
}

/** Bytes that one rank receives, or sends, may be more than the tensor has. */
static void more_bytes_than_can_be_counted_are_refused(void **state)
{
    (void)state;
    static const char *const pairs[][3] = {{"8", "P", "1@0"}, {"8@1", "P", "1@0"}, {"1@0", "R", "64@1"}};
    for (size_t i = 0; i < sizeof(pairs) / sizeof(pairs[0]); i++) {
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
        cmocka_unit_test(more_bytes_than_can_be_counted_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
