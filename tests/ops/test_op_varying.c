/* Gradients of which each rank has a term: where a result is Replicate, a backward takes its
 * gradient as Partial(sum), too, and gives terms; vary ends them. */
#include "layers.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

enum { ROWS = 3, COLUMNS = 4, RANKS = 2 };

static const int64_t shape[] = {ROWS, COLUMNS};

static tsr_status make(const tsr_mesh *mesh, const char *placements, int first, tsr_dtensor **out)
{
    float values[ROWS * COLUMNS];
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)((first + 7 * i) % 11 - 5);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

/* A dtensor of terms: on each rank other values. */
static tsr_status make_terms(const tsr_mesh *mesh, tsr_dtensor **out)
{
    float values[ROWS * COLUMNS];
    tsr_layout *layout;
    const int rank = tsr_comm_rank(tsr_mesh_comm(mesh));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)((3 + 5 * i + 4 * rank) % 13 - 6);
    const tsr_tensor local = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    tsr_dtensor *borrowed;
    TSR_TRY(tsr_layout_parse(mesh, "P", 2, shape, TSR_F32, &layout));
    tsr_status status = tsr_dtensor_from_local(&local, layout, NULL, &borrowed);
    if (status == TSR_OK)
        status = tsr_scale(borrowed, 1, out); /* owns its memory */
    if (status == TSR_OK)
        tsr_dtensor_destroy(borrowed);
    tsr_layout_destroy(layout);
    return status;
}

static void expect_layout(const tsr_dtensor *x, const char *placements)
{
    char text[64];
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    assert_string_equal(text, placements);
}

static tsr_status expect_equal(const tsr_dtensor *a, const tsr_dtensor *b)
{
    tsr_dtensor *x, *y;
    TSR_TRY(tsr_redistribute_to(a, "R", &x));
    TSR_TRY(tsr_redistribute_to(b, "R", &y));
    const tsr_tensor ours = tsr_dtensor_to_local(x), theirs = tsr_dtensor_to_local(y);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        assert_true(((const float *)ours.data)[i] == ((const float *)theirs.data)[i]);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    return TSR_OK;
}

/* mul, relu and add on replicas: gradients of terms are terms, and their sums those of the sum. */
static tsr_status pass_terms(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *terms, *sum, *got[2], *wanted[2];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "R", 1, &x));
    TSR_TRY(make(mesh, "R", 4, &y));
    TSR_TRY(make_terms(mesh, &terms));
    TSR_TRY(tsr_redistribute_to(terms, "R", &sum));
    for (int op = 0; op < 3; op++) {
        const tsr_op *row;
        static const char *const names[] = {"mul", "add", "sub"};
        TSR_TRY(tsr_op_find(NULL, names[op], &row));
        const tsr_dtensor *const operands[] = {x, y};
        tsr_dtensor **const terms_out[] = {&got[0], &got[1]}, **const sum_out[] = {&wanted[0], &wanted[1]};
        TSR_TRY(tsr_op_backward(row, 0, NULL, operands, terms, terms_out));
        TSR_TRY(tsr_op_backward(row, 0, NULL, operands, sum, sum_out));
        for (int i = 0; i < 2; i++) {
            expect_layout(got[i], "P");
            expect_layout(wanted[i], "R");
            TSR_TRY(expect_equal(got[i], wanted[i]));
            tsr_dtensor_destroy(got[i]);
            tsr_dtensor_destroy(wanted[i]);
        }
    }
    tsr_dtensor *const all[] = {x, y, terms, sum};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

/* Megatron's f: an activation varies before a column-parallel layer, so that its gradient, of which
 * each rank has a term, passes relu as terms, and is whole behind vary. */
static tsr_status end_terms(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x, *varying, *h, *w, *dout, *dh, *dvarying, *dx, *whole_w, *whole_dout, *whole_dh, *expected;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "R", 1, &x));
    TSR_TRY(tsr_vary(x, &varying));
    TSR_TRY(tsr_relu(varying, &h));
    /* h w^T, with w cut by rows, has the gradient dout w: terms. */
    TSR_TRY(make(mesh, "S(1)", 5, &dout));
    static const int64_t square[] = {COLUMNS, COLUMNS};
    float values[COLUMNS * COLUMNS];
    for (int i = 0; i < COLUMNS * COLUMNS; i++)
        values[i] = (float)(i % 5 - 2);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, square);
    TSR_TRY(tsr_distribute(&global, mesh, "S(0)", &w));
    TSR_TRY(tsr_distribute(&global, mesh, "R", &whole_w));
    TSR_TRY(tsr_redistribute_to(dout, "R", &whole_dout));
    TSR_TRY(tsr_matmul(dout, w, &dh));
    expect_layout(dh, "P");
    TSR_TRY(tsr_relu_backward(varying, dh, &dvarying));
    expect_layout(dvarying, "P");
    TSR_TRY(tsr_vary_backward(x, dvarying, &dx));
    expect_layout(dx, "R");
    TSR_TRY(tsr_matmul(whole_dout, whole_w, &whole_dh));
    TSR_TRY(tsr_relu_backward(x, whole_dh, &expected));
    TSR_TRY(expect_equal(dx, expected));
    tsr_dtensor *const all[] = {x, varying, h, w, dout, dh, dx, dvarying, whole_w, whole_dout, whole_dh, expected};
    for (int i = 0; i < 12; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static tsr_status refuse_others(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *cut, *terms, *dx = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "R", 1, &x));
    TSR_TRY(make(mesh, "R", 2, &y));
    TSR_TRY(make(mesh, "S(0)", 2, &cut));
    TSR_TRY(make_terms(mesh, &terms));
    assert_int_equal(tsr_mul_backward(x, y, cut, &dx, NULL), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(),
                        "tsr_mul_backward: dout is \"S(0)\", but must be in the result's gradient layout, "
                        "\"R\", or, if each rank has a term of it, \"P\"");
    assert_int_equal(tsr_mul_backward(cut, cut, terms, &dx, NULL), TSR_ERROR_ARGUMENT);
    assert_string_equal(tsr_status_message(),
                        "tsr_mul_backward: dout is \"P\", but must be in the result's gradient layout, "
                        "\"S(0)\"");
    assert_null(dx);
    tsr_dtensor *const all[] = {x, y, cut, terms};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void run(tsr_rank_main *ranks)
{
    layers_run(RANKS, ranks, NULL);
}

static void terms_pass_linear_rows(void **state)
{
    (void)state;
    run(pass_terms);
}

static void vary_ends_terms(void **state)
{
    (void)state;
    run(end_terms);
}

static void refusals_name_both_layouts(void **state)
{
    (void)state;
    run(refuse_others);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(terms_pass_linear_rows),
        cmocka_unit_test(vary_ends_terms),
        cmocka_unit_test(refusals_name_both_layouts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
