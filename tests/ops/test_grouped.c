/* Products of rows in groups: their values under cuts of all kinds, and their errors. */
#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

static void run_ranks(int count, tsr_rank_main *body)
{
    if (tsr_threads_run(count, body, NULL, NULL) != TSR_OK)
        fail_msg("%s", tsr_status_message());
}

#define EXPECT(held, ...)                                                                                              \
    do {                                                                                                               \
        if (!(held))                                                                                                   \
            return tsr_status_set(TSR_ERROR_INTERNAL, __VA_ARGS__);                                                    \
    } while (0)

static tsr_status expect_values(const char *what, const tsr_dtensor *x, const char *placements, int count,
                                const float *wanted)
{
    char text[64];
    tsr_dtensor *whole;
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    EXPECT(strcmp(text, placements) == 0, "%s is %s instead of %s", what, text, placements);
    TSR_TRY(tsr_full_tensor(x, &whole));
    const float *const got = tsr_dtensor_to_local(whole).data;
    for (int i = 0; i < count; i++)
        EXPECT(got[i] == wanted[i], "%s: element %d is %g, not %g", what, i, (double)got[i], (double)wanted[i]);
    tsr_dtensor_destroy(whole);
    return TSR_OK;
}

static tsr_status make_numbers(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape,
                               tsr_dtensor **out)
{
    float values[64];
    for (int i = 0; i < 64; i++)
        values[i] = (float)(i + 1);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, ndim, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

static tsr_status expect_refusal(tsr_status status, const char *sentence)
{
    EXPECT(status == TSR_ERROR_ARGUMENT && strcmp(tsr_status_message(), sentence) == 0, "got: %s",
           status == TSR_OK ? "no error" : tsr_status_message());
    return TSR_OK;
}

/* How t is cut among 3 ranks, one of which may have no row. */
static const char *const cuts[] = {"R", "S(0)", "S(0;interleave=3)", "S(0;sizes=4,0,6)", "S(0;balanced)"};

static tsr_status make_sizes(const tsr_mesh *mesh, int64_t count, const int64_t *sizes, tsr_dtensor **out)
{
    const tsr_tensor global = tsr_tensor_contiguous((void *)sizes, TSR_I64, 1, &count);
    return tsr_distribute(&global, mesh, "R", out);
}

enum { T = 10, E = 4 };

static tsr_status check_groups(const tsr_mesh *mesh, const char *cut, const int64_t *sizes, const float *wanted)
{
    const int64_t x_shape[] = {T, 1}, w_shape[] = {E, 1, 1};
    float gradient[E] = {0};
    tsr_dtensor *x, *w, *groups, *out, *dx, *dw, *whole;
    TSR_TRY(make_numbers(mesh, cut, 2, x_shape, &x));
    TSR_TRY(make_numbers(mesh, "R", 3, w_shape, &w));
    TSR_TRY(make_sizes(mesh, E, sizes, &groups));
    TSR_TRY(tsr_grouped_matmul(x, w, groups, &out));
    TSR_TRY(expect_values("out", out, cut, T, wanted));
    TSR_TRY(tsr_grouped_matmul_backward(x, w, groups, x, &dx, &dw));
    TSR_TRY(expect_values("dx", dx, cut, T, wanted));
    for (int row = 0, group = 0, left = (int)sizes[0]; row < T && group < E; row++) {
        while (group < E && left == 0)
            left = ++group < E ? (int)sizes[group] : 0;
        if (group < E)
            gradient[group] += (float)((row + 1) * (row + 1));
        left--;
    }
    TSR_TRY(expect_values("dw", dw, cut[0] == 'R' ? "R" : "P", E, gradient));
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
    run_ranks(3, check_grouped);
}

static tsr_status check_group_errors(tsr_comm *comm, void *arg)
{
    const int64_t x_shape[] = {T, 1}, w_shape[] = {E, 1, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *whole, *w, *cut, *negative, *many, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "ep=2", &mesh));
    TSR_TRY(make_numbers(mesh, "S(0)", 2, x_shape, &x));
    TSR_TRY(make_numbers(mesh, "R", 2, x_shape, &whole));
    TSR_TRY(make_numbers(mesh, "R", 3, w_shape, &w));
    TSR_TRY(make_numbers(mesh, "S(0)", 3, w_shape, &cut));
    TSR_TRY(make_sizes(mesh, E, (const int64_t[]){3, -1, 2, 5}, &negative));
    TSR_TRY(make_sizes(mesh, E, (const int64_t[]){3, 4, 4, 0}, &many));
    TSR_TRY(expect_refusal(tsr_grouped_matmul(x, w, negative, &out),
                           "grouped_matmul: sizes[1] is -1, but a group has 0 rows or more"));
    TSR_TRY(expect_refusal(tsr_grouped_matmul(x, w, many, &out),
                           "grouped_matmul: groups 0 to 2 have 11 rows, but there are 10; all sizes must add up to at "
                           "most that"));
    TSR_TRY(expect_refusal(tsr_grouped_matmul(x, w, x, &out),
                           "tsr_grouped_matmul: sizes is f32, but grouped_matmul takes i64"));
    TSR_TRY(expect_refusal(tsr_grouped_matmul(whole, cut, many, &out),
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
    run_ranks(2, check_group_errors);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_the_whole),
        cmocka_unit_test(sizes_of_groups_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
