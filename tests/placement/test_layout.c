/* Layouts as objects: what is refused and how it is said, equality, gradients, accessors. */
#include "layouts.h"
#include "support.h"

#include <tessera/sys/mesh_attachment.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

typedef struct refused {
    const char *mesh, *shape, *placements;
    tsr_dtype dtype;
    const char *names; /* what the sentence must hold */
} refused;

static void what_cannot_be_laid_out_is_refused_by_a_sentence(void **state)
{
    (void)state;
    static const refused rows[] = {
        {"2", "64x64", "S(2)", TSR_F32, "S(2)"},
        {"2", "scalar", "S(0)", TSR_F32, "S(0)"},
        {"2", "8", "R,R", TSR_F32, "R,R"},
        {"2x2", "8", "S(0)", TSR_F32, "S(0)"},
        {"2", "8", "S(0;sizes=4,3)", TSR_F32, "sizes"},
        {"2", "8", "S(0;sizes=4,4,0)", TSR_F32, "sizes"},
        {"2", "8", "S(0;sizes=4,3,1)", TSR_F32, "sizes"},
        {"2", "8", "S(0;blocks=4,3)", TSR_F32, "blocks"},
        {"2x2", "9", "S(0),S(0;sizes=2,3)", TSR_F32, "sizes"}, /* the pieces are 5 and 4 */
        {"2x2", "9", "S(0),S(0;blocks=2,3)", TSR_F32, "blocks"},
        {"2", "8", "S(0;sizes=4,4;balanced)", TSR_F32, "sizes"},
        {"2", "8", "S(0;sizes=4,4;unit=2)", TSR_F32, "sizes"},
        {"2", "8", "S(0;sizes=4,4;interleave=2)", TSR_F32, "sizes"},
        {"2", "8", "S(0;sizes=4,4;blocks=4,4)", TSR_F32, "sizes"},
        {"2", "8", "S(0;interleave=2;blocks=4,4)", TSR_F32, "interleave"},
        {"2x2", "8", "S(0)[1],S(0)", TSR_F32, "mesh dims 0 and 1 both have order [1]"},
        {"2x2", "8", "S(0)[3],S(0)[3]", TSR_F32, "order"},
        {"2x2", "8", "P(sum),P(max)", TSR_F32, "max"},
        {"2x2", "8", "P(avg),P(prod)", TSR_F32, "prod"},
        {"2x2", "8", "P(min),P(max)", TSR_F32, "min"},
        {"2", "8", "P(avg)", TSR_I32, "avg"},
        {"2", "8", "P(avg)", TSR_U8, "avg"},
        {"2", "8", "P", TSR_BOOL, "bool"},
        {"2", "8", "P(prod)", TSR_BOOL, "bool"},
        {"2", "8", "P(max)", TSR_C64, "max"},
        {"2", "8", "P(min)", TSR_C128, "min"},
        {"1", "8", "S(0;sizes=7)", TSR_F32, "sizes"}, /* a mesh dim of 1 is ignored for planning, but validated */
        {"1", "8", "S(1)", TSR_F32, "S(1)"},
        {"1", "8", "P(avg)", TSR_I32, "avg"},
        {"2", "3000000000x3000000000x2", "R", TSR_F32, NULL},
        {"2", "4611686018427387904", "R", TSR_F64, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        const refused *row = &rows[i];
        test_case("--mesh %s --shape %s --placements \"%s\" --dtype %s", row->mesh, row->shape, row->placements,
                  tsr_dtype_name(row->dtype));
        expect_error(layout_status(row->mesh, row->shape, row->placements, row->dtype), TSR_ERROR_ARGUMENT, row->names);
    }
}

/* Looking at each of 2^30 parts takes far longer than the watchdog waits. */
static void pieces_of_a_billion_parts_are_checked_without_looking_at_each(void **state)
{
    (void)state;
    test_watchdog(5);
    expect_ok(layout_status("1073741823x2", "2147483646", "S(0),S(0;sizes=1,1)", TSR_F32));
    expect_ok(layout_status("1073741823x2", "2147483646", "S(0;balanced),S(0;blocks=1,1)", TSR_F32));
    expect_ok(layout_status("2x1073741823", "2147483646", "S(0;sizes=1,1)[1],S(0;unit=2)[0]", TSR_F32));
    expect_error(layout_status("1073741823x2", "2147483645", "S(0),S(0;sizes=1,1)", TSR_F32), TSR_ERROR_ARGUMENT,
                 "length 1");
    expect_error(layout_status("1073741823x2", "2147483644", "S(0),S(0;sizes=1,1)", TSR_F32), TSR_ERROR_ARGUMENT,
                 "length 0");
    expect_error(layout_status("1073741823x2", "2147483645", "S(0;interleave=2),S(0;blocks=1,1)", TSR_F32),
                 TSR_ERROR_ARGUMENT, "length 1");
    expect_error(layout_status("4x2", "10", "S(0;sizes=2,3,3,2),S(0;blocks=1,1)", TSR_F32), TSR_ERROR_ARGUMENT,
                 "length 3");
    expect_error(layout_status("4x2", "10", "S(0;blocks=5,5),S(0;sizes=1,3)", TSR_F32), TSR_ERROR_ARGUMENT, "length 2");
    test_watchdog(60);
}

static void sum_goes_with_avg_and_every_dtype_with_its_ops(void **state)
{
    (void)state;
    expect_ok(layout_status("2x2", "8", "P,P(avg)", TSR_F16));
    for (int dtype = TSR_F64; dtype < TSR_DTYPE_END; dtype++) {
        for (int op = 0; op < TSR_REDUCE_OP_END; op++) {
            char text[16];
            snprintf(text, sizeof text, "P(%s)", tsr_reduce_op_name((tsr_reduce_op)op));
            const tsr_status status = layout_status("2", "3", text, (tsr_dtype)dtype);
            test_case("%s of %s", text, tsr_dtype_name((tsr_dtype)dtype));
            assert_int_equal(status == TSR_OK, oracle_has_op((tsr_dtype)dtype, (tsr_reduce_op)op));
        }
    }
}

static void bad_arguments_are_refused_before_anything_is_made(void **state)
{
    (void)state;
    const oracle_mesh grid = oracle_mesh_make(1, (int64_t[]){2}, 0);
    tsr_mesh *mesh = abstract_mesh(&grid);
    const tsr_placement r = tsr_replicate();
    tsr_placement bad = tsr_shard(0);
    const int64_t shape[9] = {2, 2, 2, 2, 2, 2, 2, 2, 2}, negative[] = {4, -1};
    tsr_layout *layout = NULL;
    expect_error(tsr_layout_create(NULL, &r, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "mesh");
    expect_error(tsr_layout_create(mesh, NULL, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "placements");
    expect_error(tsr_layout_create(mesh, &r, 1, NULL, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "shape");
    expect_error(tsr_layout_create(mesh, &r, 1, shape, TSR_F32, NULL), TSR_ERROR_ARGUMENT, "out");
    expect_error(tsr_layout_create(mesh, &r, -1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-1");
    expect_error(tsr_layout_create(mesh, &r, 9, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "9");
    expect_error(tsr_layout_create(mesh, &r, 2, negative, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-1");
    expect_error(tsr_layout_create(mesh, &r, 1, shape, TSR_DTYPE_NONE, &layout), TSR_ERROR_ARGUMENT, "dtype");
    expect_error(tsr_layout_create(mesh, &r, 1, shape, (tsr_dtype)99, &layout), TSR_ERROR_ARGUMENT, "dtype");
    bad.unit = -3;
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-3");
    bad = tsr_shard(0);
    bad.interleave = -1;
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-1");
    bad = tsr_shard(-1);
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-1");
    bad = tsr_shard(0);
    bad.order = -2;
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-2");
    bad = tsr_shard(0);
    bad.sizes = (const int64_t[]){3, -1};
    bad.size_count = 2;
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "-1");
    bad.sizes = (const int64_t[]){INT64_MAX, INT64_MAX - (INT64_MAX - 4)};
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "sizes");
    bad = (tsr_placement){.kind = (tsr_placement_kind)7};
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, NULL);
    bad = tsr_partial((tsr_reduce_op)77);
    expect_error(tsr_layout_create(mesh, &bad, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, NULL);
    expect_error(tsr_layout_parse(mesh, "S(0", 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "S(0");
    expect_error(tsr_layout_parse(mesh, NULL, 1, shape, TSR_F32, &layout), TSR_ERROR_ARGUMENT, "placements");
    assert_null(layout);
    tsr_mesh_destroy(mesh);
}

static void coordinates_and_dims_out_of_range_are_refused(void **state)
{
    (void)state;
    tsr_layout *layout = layout_of("2x3", "8x8", "S(0),S(1)");
    const int64_t far[] = {0, 3}, negative[] = {-1, 0}, good[] = {1, 2};
    int64_t shape[2] = {-9, -9};
    size_t count = 99;
    expect_error(tsr_layout_local(layout, far, shape, NULL), TSR_ERROR_ARGUMENT, "3");
    expect_error(tsr_layout_local(layout, negative, shape, NULL), TSR_ERROR_ARGUMENT, "-1");
    assert_int_equal(shape[0], -9);
    expect_error(tsr_layout_intervals(layout, good, 2, NULL, 0, &count), TSR_ERROR_ARGUMENT, "2");
    expect_error(tsr_layout_intervals(layout, good, -1, NULL, 0, &count), TSR_ERROR_ARGUMENT, "-1");
    assert_int_equal(count, 99);
    expect_ok(tsr_layout_local(layout, good, NULL, NULL));
    expect_ok(tsr_layout_intervals(layout, good, 1, NULL, 0, &count));
    assert_int_equal(count, 1);
    /* A mesh without communicator has no calling rank: nothing is owned, and the offset is at the
     * end. */
    int64_t offset[2];
    expect_ok(tsr_layout_local(layout, NULL, shape, offset));
    assert_int_equal(shape[0] + shape[1], 0);
    assert_int_equal(offset[0], 8);
    assert_int_equal(offset[1], 8);
    tsr_layout_destroy(layout);
}

typedef struct pair {
    const char *mesh, *from, *to;
    int equal;
    const char *other_mesh; /* NULL: both on the same mesh */
} pair;

static void equality_ignores_mesh_dims_of_one_and_spelling(void **state)
{
    (void)state;
    static const pair rows[] = {
        {"2x2", "S(0),R", "S(0),R", 1, NULL},
        {"2x2", "S(0),R", "R,S(0)", 0, NULL},
        {"2x2", "S(0)[0],S(0)[1]", "S(0),S(0)", 1, NULL},
        {"2x2", "S(0)[4],S(0)[2]", "S(0)[1],S(0)[0]", 1, NULL},
        {"2x2", "S(0)[0],S(0)[1]", "S(0)[1],S(0)[0]", 0, NULL},
        {"2x1", "S(0),R", "S(0),S(0)", 1, NULL},
        {"2x1", "S(0),R", "S(0),P(sum)", 1, NULL},
        {"1x2", "S(1),S(0)", "R,S(0)", 1, NULL},
        {"2x1", "S(0),R", "S(0)", 1, "2"},
        {"2x1", "S(0),R", "R,S(0)", 1, "1x2"},
        {"2x1", "S(0)[1],S(0)[0]", "S(0)", 1, "2"},
        {"2", "S(0)", "S(0)", 0, "2@1"},
        {"2", "S(0)", "S(0)", 0, "2@[1,0]"},
        {"2", "S(0;unit=1)", "S(0)", 1, NULL},
        {"2", "S(0;interleave=1)", "S(0)", 1, NULL},
        {"2", "S(0;interleave=2)", "S(0)", 0, NULL},
        {"2", "P", "P(sum)", 1, NULL},
        {"2", "P", "P(avg)", 0, NULL},
        {"2", "P", "R", 0, NULL},
    };
    for (size_t i = 0; i < sizeof(rows) / sizeof rows[0]; i++) {
        tsr_layout *a = layout_of(rows[i].mesh, "8x8", rows[i].from);
        tsr_layout *b = layout_of(rows[i].other_mesh ? rows[i].other_mesh : rows[i].mesh, "8x8", rows[i].to);
        if (tsr_layout_equal(a, b) != rows[i].equal || tsr_layout_equal(b, a) != rows[i].equal)
            fail_msg("%s: %s and %s must %sbe equal", rows[i].mesh, rows[i].from, rows[i].to,
                     rows[i].equal ? "" : "not ");
        tsr_layout_destroy(a);
        tsr_layout_destroy(b);
    }
    tsr_layout *a = layout_of("2", "8x8", "S(0)"), *b = layout_of("2", "8x9", "S(0)");
    assert_int_equal(tsr_layout_equal(a, b), 0);
    tsr_layout_destroy(a);
    tsr_layout_destroy(b);
}

static void equal_layouts_have_one_hash_and_each_object_its_number(void **state)
{
    (void)state;
    tsr_context *context;
    expect_ok(tsr_context_create(NULL, &context));
    tsr_layout *const a = layout_in(context, "2x1", "8x8", "S(0),R");
    tsr_layout *const b = layout_in(context, "2x1", "8x8", "S(0),S(1)");
    assert_true(tsr_layout_equal(a, b));
    assert_true(tsr_layout_hash(a) == tsr_layout_hash(b));
    const uint64_t first = tsr_layout_number(a);
    assert_true(first != 0);
    assert_true(tsr_layout_number(b) != first);
    assert_true(tsr_layout_number(a) == first);
    tsr_layout_destroy(a);
    tsr_layout_destroy(b);
    tsr_context_destroy(context);
}

static void expect_gradient(const char *placements, const char *wanted)
{
    tsr_layout *layout = layout_of("2x2", "8x8", placements), *gradient = NULL;
    char text[64];
    expect_ok(tsr_layout_gradient(layout, &gradient));
    tsr_layout_print(gradient, text, sizeof text);
    assert_string_equal(text, wanted);
    tsr_layout_destroy(gradient);
    tsr_layout_destroy(layout);
}

static void gradients_are_whole_where_terms_were_partial(void **state)
{
    (void)state;
    expect_gradient("S(0),R", "S(0),R");
    expect_gradient("P,S(1)", "R,S(1)");
    expect_gradient("P,P(avg)", "R,R");
    expect_gradient("S(0)[1],S(0)[0]", "S(0)[1],S(0)[0]");
    static const char *const refused_ops[] = {"P(min),R", "R,P(max)", "P(prod),S(0)"};
    for (int i = 0; i < 3; i++) {
        tsr_layout *layout = layout_of("2x2", "8x8", refused_ops[i]), *gradient = NULL;
        expect_error(tsr_layout_gradient(layout, &gradient), TSR_ERROR_UNSUPPORTED, NULL);
        assert_null(gradient);
        tsr_layout_destroy(layout);
    }
}

static void a_layout_keeps_its_own_copies(void **state)
{
    (void)state;
    const oracle_mesh grid = oracle_mesh_make(1, (int64_t[]){2}, 0);
    tsr_mesh *mesh = abstract_mesh(&grid);
    int64_t sizes[] = {5, 3}, shape[] = {8}, local;
    tsr_placement placement = tsr_shard(0);
    placement.sizes = sizes;
    placement.size_count = 2;
    tsr_layout *layout = NULL, *other = NULL;
    expect_ok(tsr_layout_create(mesh, &placement, 1, shape, TSR_I16, &layout));
    sizes[0] = sizes[1] = shape[0] = 99;
    placement = tsr_replicate();
    tsr_mesh_destroy(mesh);
    const int64_t second = 1;
    expect_ok(tsr_layout_local(layout, &second, &local, NULL));
    assert_int_equal(local, 3);
    assert_int_equal(tsr_layout_placements(layout)[0].sizes[0], 5);
    assert_int_equal(tsr_layout_ndim(layout), 1);
    assert_int_equal(tsr_layout_shape(layout)[0], 8);
    assert_int_equal(tsr_layout_dtype(layout), TSR_I16);
    expect_ok(tsr_layout_with(layout, &placement, &other));
    assert_int_equal(tsr_layout_placements(other)[0].kind, TSR_REPLICATE);
    assert_int_equal(tsr_layout_shape(other)[0], 8);
    tsr_layout *again = tsr_layout_retain(layout);
    tsr_layout_destroy(layout);
    assert_int_equal(tsr_layout_placements(again)[0].sizes[1], 3);
    tsr_layout_destroy(again);
    tsr_layout_destroy(other);
    tsr_layout_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_cannot_be_laid_out_is_refused_by_a_sentence),
        cmocka_unit_test(pieces_of_a_billion_parts_are_checked_without_looking_at_each),
        cmocka_unit_test(sum_goes_with_avg_and_every_dtype_with_its_ops),
        cmocka_unit_test(bad_arguments_are_refused_before_anything_is_made),
        cmocka_unit_test(coordinates_and_dims_out_of_range_are_refused),
        cmocka_unit_test(equality_ignores_mesh_dims_of_one_and_spelling),
        cmocka_unit_test(equal_layouts_have_one_hash_and_each_object_its_number),
        cmocka_unit_test(gradients_are_whole_where_terms_were_partial),
        cmocka_unit_test(a_layout_keeps_its_own_copies),
    };
    test_watchdog(60);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
