/* The reports of a plan with their n-th allocation failing, for every n. */
#include "counted_memory.h"
#include "layouts.h"

#include <tessera/explain.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *mesh, *from, *to;
} cases[] = {
    {"2x3", "S(0),S(1)", "S(1;interleave=2),S(0;interleave=2)"},
    {"4", "S(0;interleave=3)", "R"},
    {"4", "P", "R"},
    {"2x2", "P,R", "S(0),S(1)"},
    {"4", "S(0)", "R"},
};

static tsr_status ignore(const tsr_plan_transfer *transfer, void *user)
{
    (void)transfer;
    (void)user;
    return TSR_OK;
}

/* Makes every report that allocates. A report that fails must leave its outputs as they were. */
static tsr_status tell(const tsr_plan *plan, size_t which)
{
    tsr_plan_step step = {.messages_sent = -7};
    tsr_plan_figures figures = {.messages_sent = -7};
    tsr_plan_survey survey = {.messages_sent = -7};
    char text[4096] = "untouched";
    size_t length = 7;
    tsr_status status;
    switch (which) {
    case 0:
        status = tsr_plan_step_at(plan, 0, &step);
        assert_true(status == TSR_OK || step.messages_sent == -7);
        return status;
    case 1:
        status = tsr_plan_figures_of(plan, &figures);
        assert_true(status == TSR_OK || figures.messages_sent == -7);
        return status;
    case 2:
        status = tsr_plan_survey_of(plan, &survey);
        assert_true(status == TSR_OK || survey.messages_sent == -7);
        return status;
    case 3:
        status = tsr_plan_describe(plan, text, sizeof text, &length);
        assert_true(status == TSR_OK || (length == 7 && text[0] == 'u'));
        return status;
    case 4:
        return tsr_plan_visit_sends(plan, ignore, NULL);
    default:
        return tsr_plan_visit_receives(plan, ignore, NULL);
    }
}

enum { CALLS = 6 };

typedef struct telling {
    const tsr_plan *plan;
    size_t which;
} telling;

static tsr_status tell_it(void *arg)
{
    const telling *t = arg;
    return tell(t->plan, t->which);
}

static void run_case(size_t index)
{
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_layout *src = layout_in(context, cases[index].mesh, "12x10", cases[index].from);
    tsr_layout *dst = layout_in(context, cases[index].mesh, "12x10", cases[index].to);
    tsr_plan *plan = NULL;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    options.rank = 0;
    expect_ok(tsr_plan_create(src, dst, &options, &plan));
    for (size_t which = 0; which < CALLS; which++)
        assert_true(fail_each_allocation(&memory, tell_it, &(telling){plan, which}) > 0);
    tsr_plan_destroy(plan);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void the_nth_allocation_fails_and_nothing_leaks_or_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++)
        run_case(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_and_nothing_leaks_or_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
