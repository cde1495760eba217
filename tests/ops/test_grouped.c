/* Products of rows in groups: their values under cuts of all kinds, and their errors. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* How t is cut among 3 ranks, one of which may have no row. */
static const char *const cuts[] = {"R", "S(0)", "S(0;interleave=3)", "S(0;sizes=4,0,6)", "S(0;balanced)"};

static tsr_status make_sizes(const tsr_mesh *mesh, int64_t count, const int64_t *sizes, tsr_dtensor **out)
{
    return support_distribute(mesh, "R", TSR_I64, 1, &count, sizes, out);
}

enum { T = 10, E = 4 };

static tsr_status check_groups(const tsr_mesh *mesh, const char *cut, const int64_t *sizes, const float *wanted)
{
    const int64_t x_shape[] = {T, 1}, w_shape[] = {E, 1, 1};
    float gradient[E] = {0};
    tsr_dtensor *x, *w, *groups, *out, *dx, *dw, *whole;
    TSR_TRY(support_make_numbered(mesh, cut, 2, x_shape, 1, &x));
    TSR_TRY(support_make_numbered(mesh, "R", 3, w_shape, 1, &w));
    TSR_TRY(make_sizes(mesh, E, sizes, &groups));
    TSR_TRY(tsr_grouped_matmul(x, w, groups, &out));
    TSR_TRY(support_expect_whole("out", out, cut, T, wanted));
    TSR_TRY(tsr_grouped_matmul_backward(x, w, groups, x, &dx, &dw));
    TSR_TRY(support_expect_whole("dx", dx, cut, T, wanted));
    for (int row = 0, group = 0, left = (int)sizes[0]; row < T && group < E; row++) {
        while (group < E && left == 0)
            left = ++group < E ? (int)sizes[group] : 0;
        if (group < E)
            gradient[group] += (float)((row + 1) * (row + 1));
        left--;
    }
    TSR_TRY(support_expect_whole("dw", dw, cut[0] == 'R' ? "R" : "P", E, gradient));
    TSR_TRY(tsr_grouped_matmul_into(x, w, groups, x));
    TSR_TRY(tsr_full_tensor(x, &whole));
    EXPECT(memcmp(tsr_dtensor_to_local(whole).data, wanted, T * sizeof(float)) == 0, "in place of x");
    tsr_dtensor *const all[] = {x, w, groups, out, dx, dw, whole};
    for (int i = 0; i < 7; i++)
        tsr_dtensor_destroy(all[i]);
    return TSR_OK;
}

static tsr_status check_grouped(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        TSR_TRY(check_groups(mesh, cuts[i], (const int64_t[]){3, 0, 2, 5},
                             (const float[]){1, 2, 3, 12, 15, 24, 28, 32, 36, 40}));
        TSR_TRY(check_groups(mesh, cuts[i], (const int64_t[]){0, 1, 2, 4},
                             (const float[]){2, 6, 9, 16, 20, 24, 28, 0, 0, 0}));
        TSR_TRY(check_groups(mesh, cuts[i], (const int64_t[]){0, 0, 0, 0}, (const float[T]){0}));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void groups_are_those_of_the_whole(void **state)
{
    (void)state;
    layers_run(3, check_grouped, NULL);
}

static tsr_status check_group_errors(tsr_comm *comm, void *arg)
{
    const int64_t x_shape[] = {T, 1}, w_shape[] = {E, 1, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *whole, *w, *cut, *negative, *many, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "ep=2", &mesh));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 2, x_shape, 1, &x));
    TSR_TRY(support_make_numbered(mesh, "R", 2, x_shape, 1, &whole));
    TSR_TRY(support_make_numbered(mesh, "R", 3, w_shape, 1, &w));
    TSR_TRY(support_make_numbered(mesh, "S(0)", 3, w_shape, 1, &cut));
    TSR_TRY(make_sizes(mesh, E, (const int64_t[]){3, -1, 2, 5}, &negative));
    TSR_TRY(make_sizes(mesh, E, (const int64_t[]){3, 4, 4, 0}, &many));
    TSR_TRY(layer_expect_refusal(tsr_grouped_matmul(x, w, negative, &out),
                                 "grouped_matmul: sizes[1] is -1, but a group has 0 rows or more"));
    TSR_TRY(layer_expect_refusal(
        tsr_grouped_matmul(x, w, many, &out),
        "grouped_matmul: sizes[2] is 4, but 3 of 10 rows are left for it; all sizes must add up to at most that"));
    TSR_TRY(layer_expect_refusal(tsr_grouped_matmul(x, w, x, &out),
                                 "tsr_grouped_matmul: sizes is f32, but grouped_matmul takes i64"));
    TSR_TRY(layer_expect_refusal(tsr_grouped_matmul(whole, cut, many, &out),
                                 "tsr_grouped_matmul: mesh dim ep cuts dim 0 of w, which grouped_matmul needs whole; "
                                 "redistribute w from \"S(0)\" to \"R\""));
    tsr_dtensor *const all[] = {x, whole, w, cut, negative, many};
    for (int i = 0; i < 6; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void sizes_of_groups_are_checked(void **state)
{
    (void)state;
    layers_run(2, check_group_errors, NULL);
}

/* Rows 1 to 7 of local tensors, two columns wide, in groups of 2, 0 and 4: group g multiplies by
 * g + 1 and exchanges the columns. x has gaps between its rows, w is transposed. */
static void local_tensors_need_no_mesh(void **state)
{
    enum { ROWS = 7, GROUPS = 3, WIDTH = 2 };
    float x[ROWS][3], w[GROUPS][WIDTH][WIDTH] = {{{0}}}, out[ROWS][WIDTH], dw[GROUPS][WIDTH][WIDTH];
    const int64_t shape[] = {ROWS, WIDTH}, w_shape[] = {GROUPS, WIDTH, WIDTH}, count = GROUPS;
    int64_t sizes[] = {2, 0, 4};
    (void)state;
    for (int g = 0; g < GROUPS; g++)
        w[g][0][1] = w[g][1][0] = (float)(g + 1);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < 3; i++)
            x[row][i] = (float)(10 * row + i);
    tsr_tensor rows = tsr_tensor_contiguous(x, TSR_F32, 2, shape),
               weights = tsr_tensor_contiguous(w, TSR_F32, 3, w_shape);
    const tsr_tensor result = tsr_tensor_contiguous(out, TSR_F32, 2, shape),
                     groups = tsr_tensor_contiguous(sizes, TSR_I64, 1, &count),
                     gradient = tsr_tensor_contiguous(dw, TSR_F32, 3, w_shape);
    rows.strides[0] = 3;
    weights.strides[1] = 1;
    weights.strides[2] = WIDTH;
    assert_int_equal(tsr_grouped_matmul_local(NULL, &rows, &weights, &groups, &result), TSR_OK);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < WIDTH; i++)
            assert_true(out[row][i] == (row < 2 ? 1 : row < 6 ? 3 : 0) * x[row][1 - i]);
    assert_int_equal(tsr_grouped_matmul_local_backward(NULL, &rows, &weights, &groups, &rows, &result, &gradient),
                     TSR_OK);
    for (int row = 0; row < ROWS; row++)
        for (int i = 0; i < WIDTH; i++)
            assert_true(out[row][i] == (row < 2 ? 1 : row < 6 ? 3 : 0) * x[row][1 - i]);
    for (int g = 0; g < GROUPS; g++)
        for (int k = 0; k < WIDTH * WIDTH; k++) {
            float sum = 0;
            for (int row = g == 0 ? 0 : 2; row < (g == 2 ? 6 : 2); row++)
                sum += x[row][k / WIDTH] * x[row][k % WIDTH];
            assert_true(dw[g][k / WIDTH][k % WIDTH] == (g == 1 ? 0 : sum));
        }
}

static void expect_words(tsr_status status, tsr_status wanted, const char *words)
{
    assert_int_equal(status, wanted);
    if (!strstr(tsr_status_message(), words))
        fail_msg("\"%s\" does not say \"%s\"", tsr_status_message(), words);
}

static void local_tensors_are_checked(void **state)
{
    float memory[8] = {0};
    int64_t sizes[] = {2, 1};
    const int64_t shape[] = {2, 2}, w_shape[] = {2, 2, 1}, one[] = {2, 1}, count = 2;
    const tsr_tensor x = tsr_tensor_contiguous(memory, TSR_F32, 2, shape),
                     w = tsr_tensor_contiguous(memory, TSR_F32, 3, w_shape),
                     groups = tsr_tensor_contiguous(sizes, TSR_I64, 1, &count),
                     out = tsr_tensor_contiguous(memory, TSR_F32, 2, one);
    tsr_tensor nowhere = x, back = x;
    (void)state;
    nowhere.data = NULL;
    back.strides[1] = -1;
    expect_words(tsr_grouped_matmul_local(NULL, &x, &w, &groups, &out), TSR_ERROR_ARGUMENT,
                 "sizes[1] is 1, but 0 of 2 rows are left for it");
    sizes[1] = 0;
    expect_words(tsr_grouped_matmul_local(NULL, &x, &w, &groups, &x), TSR_ERROR_ARGUMENT, "out has not the shape");
    expect_words(tsr_grouped_matmul_local(NULL, &x, &w, &x, &out), TSR_ERROR_ARGUMENT, "sizes");
    expect_words(tsr_grouped_matmul_local(NULL, NULL, &w, &groups, &out), TSR_ERROR_ARGUMENT, "x is NULL");
    expect_words(tsr_grouped_matmul_local(NULL, &nowhere, &w, &groups, &out), TSR_ERROR_ARGUMENT, "x has no data");
    expect_words(tsr_grouped_matmul_local(NULL, &back, &w, &groups, &out), TSR_ERROR_ARGUMENT, "x has stride -1");
    expect_words(tsr_grouped_matmul_local_backward(NULL, &x, &w, &groups, NULL, &x, NULL), TSR_ERROR_ARGUMENT,
                 "tsr_grouped_matmul_local_backward: dout is NULL");
}

/* Sizes are wrong behind groups that are fine, or one of two gradients is: neither is written. */
static void a_local_product_that_fails_writes_nothing(void **state)
{
    const float values[] = {1, 2, 3, 4};
    float out[] = {-1, -1}, dx[] = {-1, -1, -1, -1};
    uint16_t half[2][2][1];
    int64_t sizes[] = {1, INT64_MAX};
    const int64_t shape[] = {2, 2}, w_shape[] = {2, 2, 1}, one[] = {2, 1}, count = 2;
    const tsr_tensor x = tsr_tensor_contiguous((void *)values, TSR_F32, 2, shape),
                     w = tsr_tensor_contiguous((void *)values, TSR_F32, 3, w_shape),
                     dout = tsr_tensor_contiguous((void *)values, TSR_F32, 2, one),
                     groups = tsr_tensor_contiguous(sizes, TSR_I64, 1, &count),
                     result = tsr_tensor_contiguous(out, TSR_F32, 2, one),
                     to_x = tsr_tensor_contiguous(dx, TSR_F32, 2, shape),
                     narrow = tsr_tensor_contiguous(half, TSR_BF16, 3, w_shape);
    (void)state;
    expect_words(tsr_grouped_matmul_local(NULL, &x, &w, &groups, &result), TSR_ERROR_ARGUMENT,
                 "sizes[1] is 9223372036854775807, but 1 of 2 rows are left for it");
    sizes[1] = -1;
    expect_words(tsr_grouped_matmul_local(NULL, &x, &w, &groups, &result), TSR_ERROR_ARGUMENT, "sizes[1] is -1");
    assert_true(out[0] == -1 && out[1] == -1);
    sizes[1] = 1;
    expect_words(tsr_grouped_matmul_local_backward(NULL, &x, &w, &groups, &dout, &to_x, &result), TSR_ERROR_ARGUMENT,
                 "dw has not the shape");
    for (int i = 0; i < 4; i++)
        assert_true(dx[i] == -1);
    assert_int_equal(tsr_grouped_matmul_local_backward(NULL, &x, &w, &groups, &dout, &to_x, &narrow), TSR_OK);
    assert_true(dx[0] == 1 && dx[1] == 2 && dx[2] == 6 && dx[3] == 8);
    assert_int_equal(half[1][1][0], 0x4100); /* 8 */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_the_whole),
        cmocka_unit_test(sizes_of_groups_are_checked),
        cmocka_unit_test(local_tensors_need_no_mesh),
        cmocka_unit_test(local_tensors_are_checked),
        cmocka_unit_test(a_local_product_that_fails_writes_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
