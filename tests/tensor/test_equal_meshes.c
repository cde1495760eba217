/* Meshes that differ in dims of size 1 only are equal: placements are matched by the dims that
 * count, never by their index. */
#include "ranks.h"
#include "support.h"

#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { ROWS = 4, COLUMNS = 8, ELEMENTS = ROWS * COLUMNS };

typedef struct pair {
    const char *from_mesh, *from, *to_mesh, *to;
} pair;

static const pair pairs[] = {
    {"4", "S(0)", "1x4", "R,S(1)"},
    {"4", "S(0)", "4x1", "R,S(1)"},
    {"4", "S(0)", "1x4", "R,P"},
    {"1x4", "S(1),P", "4", "S(1)"},
    {"2x2", "S(0),R", "1x2x1x2", "R,S(1),S(0),S(1)[0]"},
    {"2x1x2", "S(1)[2],R,S(1)[1]", "2x2", "P,S(0)"},
};

static tsr_status make(tsr_comm *comm, const char *mesh, const char *placements, tsr_dtensor **out)
{
    tsr_layout *layout = NULL;
    TSR_TRY(layout_over(comm, mesh, "4x8", placements, TSR_F32, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

/* The tensor whose element with global number g is g. */
static tsr_status numbered(const tsr_dtensor *like, tsr_dtensor **out)
{
    float values[ELEMENTS];
    for (int i = 0; i < ELEMENTS; i++)
        values[i] = (float)i;
    const tsr_layout *layout = tsr_dtensor_layout(like);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, tsr_layout_shape(layout));
    return tsr_distribute_tensor(&global, tsr_layout_mesh(layout), tsr_layout_placements(layout), NULL, out);
}

static tsr_status check_numbered(const tsr_dtensor *x)
{
    tsr_dtensor *whole = NULL;
    TSR_TRY(tsr_full_tensor(x, &whole));
    const tsr_tensor local = tsr_dtensor_to_local(whole);
    for (int i = 0; i < ELEMENTS; i++)
        CHECK(((const float *)local.data)[i] == (float)i);
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

static tsr_status redistribute_pairs(tsr_comm *comm, void *arg)
{
    (void)arg;
    for (size_t i = 0; i < sizeof pairs / sizeof pairs[0]; i++) {
        tsr_dtensor *like = NULL, *x = NULL, *y = NULL, *dx = NULL;
        TSR_TRY(make(comm, pairs[i].from_mesh, pairs[i].from, &like));
        TSR_TRY(make(comm, pairs[i].to_mesh, pairs[i].to, &y));
        TSR_TRY(numbered(like, &x));
        TSR_TRY(tsr_redistribute_into(x, y, NULL));
        TSR_TRY(check_numbered(y));
        /* The gradient of y is on y's mesh, and is asked for on x's. */
        TSR_TRY(tsr_redistribute_backward(x, tsr_dtensor_layout(y), &dx));
        tsr_layout *gradient = NULL;
        TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(y), &gradient));
        CHECK(tsr_layout_equal(tsr_dtensor_layout(dx), gradient));
        TSR_TRY(check_numbered(dx));
        tsr_layout_destroy(gradient);
        tsr_dtensor_destroy(dx);
        tsr_dtensor_destroy(x);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(like);
    }
    return TSR_OK;
}

static void placements_are_matched_by_the_dims_that_count(void **state)
{
    (void)state;
    test_case("redistribute between equal meshes");
    run_ranks(4, redistribute_pairs, NULL);
}

int main(void)
{
    test_watchdog(60);
    const struct CMUnitTest tests[] = {cmocka_unit_test(placements_are_matched_by_the_dims_that_count)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
