/* Relabelling with its n-th allocation failing, for every n. */
#include "counted_memory.h"
#include "layouts.h"

#include <tessera/relabel.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static const struct {
    const char *from_mesh, *from, *to_mesh, *to;
    bool gains;
} cases[] = {
    {"2x3", "S(0),S(1)", "6@[5,2,3,1,4,0]", "S(0)", true},
    {"4", "S(0)", "4@[1,2,3,0]", "S(0)", true},
    {"4", "S(0)", "4@[1,2,3,0]", "R", false},
    {"600", "S(0)", "601@1", "S(0)", true},
};

typedef struct relabelling {
    const tsr_layout *src, *dst;
    tsr_layout *out;
    tsr_relabel_report report;
} relabelling;

static tsr_status relabel(void *arg)
{
    relabelling *r = arg;
    const tsr_status status = tsr_layout_relabel(r->src, r->dst, &r->out, &r->report);
    assert_true(status == TSR_OK || (!r->out && r->report.moved_ranks == -1));
    return status;
}

static void run_case(size_t index)
{
    counted_memory memory = {0};
    tsr_context *context = counted_context(&memory);
    tsr_layout *src = layout_in(context, cases[index].from_mesh, "7x5", cases[index].from);
    tsr_layout *dst = layout_in(context, cases[index].to_mesh, "7x5", cases[index].to);
    const size_t before = memory.live_blocks;
    relabelling r = {.src = src, .dst = dst, .report = {.moved_ranks = -1}};
    assert_true(fail_each_allocation(&memory, relabel, &r) > 10);
    assert_int_equal(r.out != dst, cases[index].gains);
    tsr_layout_destroy(r.out);
    assert_int_equal(memory.live_blocks, before);
    tsr_layout_destroy(dst);
    tsr_layout_destroy(src);
    tsr_context_destroy(context);
    assert_nothing_leaked(&memory);
}

static void the_nth_allocation_fails_and_nothing_leaks_or_is_written(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        run_case(i);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_nth_allocation_fails_and_nothing_leaks_or_is_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
