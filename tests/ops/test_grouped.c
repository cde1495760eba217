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
        "grouped_matmul: groups 0 to 2 have 11 rows, but there are 10; all sizes must add up to at "
        "most that"));
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(groups_are_those_of_the_whole),
        cmocka_unit_test(sizes_of_groups_are_checked),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
