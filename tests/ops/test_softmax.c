/* Softmax of rows whose largest elements come late, so that blocks before are scaled. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

/* Half a unit in the last place of f32 near 1, the error of one rounding. */
#define U 0x1p-24

/* Numbers between -1 and 1 without order. */
static double number(int64_t i)
{
    return (double)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 0x1p-23 - 1;
}

/* Element `i` of a row of `n` whose largest elements come late: the row ascends, begins with
 * infinite elements, or ends with an infinite one or NaN. */
static float come_late(int64_t row, int64_t i, int64_t n)
{
    const float ends[] = {0, 0, (float)INFINITY, (float)NAN};
    if (row == 0)
        return (float)(i * 64 / n) + (float)number(i);
    if (row == 1)
        return i < n / 2 ? -(float)INFINITY : (float)number(i);
    return i == n - 1 ? ends[row] : (float)number(i);
}

/* Compares a row of softmax `y` with a plain loop. */
static tsr_status compare_late(const float *x, const float *y, int64_t n)
{
    double largest = -INFINITY, exponentials = 0;
    for (int64_t i = 0; i < n; i++)
        largest = fmax(largest, (double)x[i]);
    for (int64_t i = 0; i < n; i++)
        exponentials += exp((double)x[i] - largest);
    for (int64_t i = 0; i < n; i++) {
        const double below = (double)x[i] - largest, wanted = exp(below) / exponentials;
        const double bound = isinf(below) ? 0 : wanted * U * (10 + fabs(below)) + 0x1p-125;
        TSR_TRY(support_expect_held(fabs((double)y[i] - wanted) <= bound, "softmax", i, (double)y[i], wanted));
    }
    return TSR_OK;
}

/* Rows 2 and 3 have no softmax. In place, bits are the same. */
static tsr_status check_late(tsr_comm *comm, void *arg)
{
    enum { LINES = 4 };
    const int64_t n = *(const int64_t *)arg, shape[] = {LINES, n};
    float *const values = malloc(LINES * (size_t)n * sizeof *values);
    tsr_mesh *mesh;
    tsr_dtensor *x, *y;
    for (int64_t i = 0; i < LINES * n; i++)
        values[i] = come_late(i / n, i % n, n);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(support_distribute(mesh, "R", TSR_F32, 2, shape, values, &x));
    TSR_TRY(tsr_softmax(x, 1, &y));
    TSR_TRY(tsr_softmax_into(x, 1, x));
    const float *const apart = tsr_dtensor_to_local(y).data, *const in_place = tsr_dtensor_to_local(x).data;
    TSR_TRY(compare_late(values, apart, n));
    TSR_TRY(compare_late(values + n, apart + n, n));
    for (int64_t i = 0; i < LINES * n; i++) {
        const bool is_right = i < 2 * n ? in_place[i] == apart[i] : isnan(apart[i]) && isnan(in_place[i]);
        TSR_TRY(support_expect_held(is_right, "softmax in place", i, (double)in_place[i], (double)apart[i]));
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_mesh_destroy(mesh);
    free(values);
    return TSR_OK;
}

/* Of rows whose exponentials are kept, and of longer ones. */
static void largest_elements_may_come_late(void **state)
{
    static const int64_t lengths[] = {1000, 70000};
    (void)state;
    for (int i = 0; i < 2; i++)
        layers_run(1, check_late, (void *)&lengths[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(largest_elements_may_come_late),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
