/* Elements in order: sort, topk and cumsum of long lines under cuts of all kinds against plain
 * loops, special values, gradients, and errors. */
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
#include <string.h>

#include <cmocka.h>

#define COUNT 1301

static const char *const cuts[] = {"S(0)", "R", "S(0;unit=7)", "S(0;interleave=5)", "S(0;sizes=0,1300,1,0)"};

/* An element of the reference. */
typedef struct element {
    float value;
    int64_t position;
} element;

static int compare_falling(const void *a, const void *b)
{
    const element *const x = a, *const y = b;
    if (x->value != y->value)
        return x->value < y->value ? 1 : -1;
    return x->position < y->position ? -1 : 1;
}

/* Draws values, of which many are equal, and orders them. */
static void fill(float *values, element *falling)
{
    uint64_t state = 11;
    for (int i = 0; i < COUNT; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (float)(state >> 55) - 200;
        falling[i] = (element){values[i], i};
    }
    qsort(falling, COUNT, sizeof *falling, compare_falling);
}

static tsr_status check_sort(const tsr_dtensor *x, const element *falling)
{
    float values[COUNT];
    int64_t positions[COUNT], again[COUNT];
    tsr_dtensor *sorted, *where, *alone;
    TSR_TRY(tsr_sort(x, 0, 1, &sorted, &where));
    TSR_TRY(tsr_sort_into(x, -1, 1, sorted, where));
    TSR_TRY(tsr_argsort(x, 0, 1, &alone));
    TSR_TRY(support_take(alone, again, sizeof again));
    TSR_TRY(support_take(sorted, values, sizeof values));
    TSR_TRY(support_take(where, positions, sizeof positions));
    for (int i = 0; i < COUNT; i++)
        EXPECT(values[i] == falling[i].value && positions[i] == falling[i].position && again[i] == positions[i],
               "a falling sort at %lld", (long long)i);
    TSR_TRY(tsr_sort(x, 0, 0, &sorted, NULL));
    TSR_TRY(support_take(sorted, values, sizeof values));
    for (int i = 0; i < COUNT; i++)
        EXPECT(values[i] == falling[COUNT - 1 - i].value, "a rising sort at %lld", (long long)i);
    return TSR_OK;
}

static tsr_status check_top(const tsr_dtensor *x, int k, const element *falling)
{
    float values[COUNT];
    int64_t positions[COUNT];
    tsr_dtensor *best, *where;
    TSR_TRY(tsr_topk(x, k, 0, &best, &where));
    TSR_TRY(tsr_topk_into(x, k, 0, best, where));
    TSR_TRY(support_take(best, values, (size_t)k * sizeof *values));
    TSR_TRY(support_take(where, positions, (size_t)k * sizeof *positions));
    for (int i = 0; i < k; i++)
        EXPECT(values[i] == falling[i].value && positions[i] == falling[i].position, "the largest at %lld",
               (long long)i);
    return TSR_OK;
}

static tsr_status check_cumulative(const tsr_dtensor *x, const float *from)
{
    float sums[COUNT], slopes[COUNT];
    double sum = 0;
    tsr_dtensor *out, *dx;
    TSR_TRY(tsr_cumsum(x, 0, &out));
    TSR_TRY(tsr_cumsum_into(x, 0, out));
    TSR_TRY(tsr_cumsum_backward(x, 0, x, &dx));
    TSR_TRY(support_take(out, sums, sizeof sums));
    TSR_TRY(support_take(dx, slopes, sizeof slopes));
    for (int i = 0; i < COUNT; i++)
        EXPECT(sums[i] == (float)(sum += (double)from[i]), "a cumulative sum at %lld", (long long)i);
    sum = 0;
    for (int i = COUNT - 1; i >= 0; i--)
        EXPECT(slopes[i] == (float)(sum += (double)from[i]), "a sum from the end at %lld", (long long)i);
    return TSR_OK;
}

static tsr_status check_lines(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {COUNT};
    float values[COUNT];
    element falling[COUNT];
    tsr_mesh *mesh;
    (void)arg;
    fill(values, falling);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &mesh));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        tsr_dtensor *x;
        TSR_TRY(support_distribute(mesh, cuts[i], TSR_F32, 1, sizes, values, &x));
        TSR_TRY(check_sort(x, falling));
        TSR_TRY(check_top(x, 1, falling));
        TSR_TRY(check_top(x, 10, falling));
        TSR_TRY(check_top(x, 700, falling));
        TSR_TRY(check_top(x, COUNT, falling));
        TSR_TRY(check_cumulative(x, values));
        tsr_dtensor_destroy(x);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void long_lines_are_ordered_under_any_cut(void **state)
{
    (void)state;
    layers_run(4, check_lines, NULL);
}

/* NaNs are above all, zeros are equal and keep their signs, and i64 are compared exactly. */
static tsr_status check_special(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {7}, three[] = {3};
    static const int64_t rising[] = {3, 1, 4, 6, 2, 0, 5}, falling[] = {0, 5, 2, 1, 4, 6, 3};
    double values[] = {NAN, 0.0, INFINITY, -INFINITY, -0.0, NAN, 0.0}, got[7];
    int64_t large[] = {INT64_MAX - 1, INT64_MIN, INT64_MAX}, positions[7];
    tsr_mesh *mesh;
    tsr_dtensor *x, *sorted, *where;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F64, 1, sizes, values, &x));
    TSR_TRY(tsr_sort(x, 0, 0, &sorted, &where));
    TSR_TRY(support_take(sorted, got, sizeof got));
    TSR_TRY(support_take(where, positions, sizeof positions));
    EXPECT(memcmp(positions, rising, sizeof rising) == 0, "a rising sort");
    EXPECT(!signbit(got[1]) && signbit(got[2]) && !signbit(got[3]) && isnan(got[6]), "signs of zeros");
    TSR_TRY(tsr_topk(x, 7, 0, NULL, &where));
    TSR_TRY(support_take(where, positions, sizeof positions));
    EXPECT(memcmp(positions, falling, sizeof falling) == 0, "the largest");
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_I64, 1, three, large, &x));
    TSR_TRY(tsr_sort(x, 0, 0, NULL, &where));
    TSR_TRY(support_take(where, positions, 3 * sizeof *positions));
    EXPECT(positions[0] == 1 && positions[1] == 0 && positions[2] == 2, "i64");
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void special_values_have_an_order(void **state)
{
    (void)state;
    layers_run(3, check_special, NULL);
}

static tsr_status check_gradients(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {2, 5}, two[] = {2, 2};
    double values[] = {3, 1, 2, 5, 4, -1, -1, 7, 0, 7}, slopes[] = {10, 20, 30, 40, 50, 60, 70, 80, 90, 100}, got[10];
    static const double by_sort[] = {30, 10, 20, 50, 40, 60, 70, 90, 80, 100};
    static const double by_top[] = {0, 0, 0, 10, 20, 0, 0, 30, 0, 40};
    tsr_mesh *mesh;
    tsr_dtensor *x, *dout, *dx;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &mesh));
    TSR_TRY(support_distribute(mesh, "S(1)", TSR_F64, 2, sizes, values, &x));
    TSR_TRY(support_distribute(mesh, "S(1)", TSR_F64, 2, sizes, slopes, &dout));
    TSR_TRY(tsr_sort_backward(x, 1, 0, dout, &dx));
    TSR_TRY(support_take(dx, got, sizeof got));
    for (int i = 0; i < 10; i++)
        EXPECT(got[i] == by_sort[i], "the gradient of sort at %lld", (long long)i);
    tsr_dtensor_destroy(dout);
    TSR_TRY(support_distribute(mesh, "R", TSR_F64, 2, two, slopes, &dout));
    TSR_TRY(tsr_topk_backward(x, 2, 1, dout, &dx));
    TSR_TRY(support_take(dx, got, sizeof got));
    for (int i = 0; i < 10; i++)
        EXPECT(got[i] == by_top[i], "the gradient of topk at %lld", (long long)i);
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_go_back_to_positions(void **state)
{
    (void)state;
    layers_run(4, check_gradients, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {4};
    float values[4] = {1, 2};
    uint8_t bools[4] = {1, 0};
    tsr_mesh *mesh;
    tsr_dtensor *x, *b, *p, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F32, 1, sizes, values, &x));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_BOOL, 1, sizes, bools, &b));
    TSR_TRY(support_distribute(mesh, "P", TSR_F32, 1, sizes, values, &p));
    TSR_TRY(layer_expect_refusal_with(tsr_topk(x, 5, 0, &out, NULL),
                                      "tsr_topk: k is 5, but must be from 0 to 4, the size of dim 0 of x"));
    TSR_TRY(layer_expect_refusal_with(tsr_topk(x, -1, 0, &out, NULL), "k is -1, but must be from 0 to 4"));
    TSR_TRY(layer_expect_refusal_with(tsr_sort(x, 1, 0, &out, NULL),
                                      "tsr_sort: dim is 1, but must be below 1, the dims of x"));
    TSR_TRY(layer_expect_refusal_with(tsr_sort(b, 0, 0, &out, NULL), "tsr_sort: x is bool, but sort takes f64, f32"));
    TSR_TRY(layer_expect_refusal_with(tsr_sort(p, 0, 0, &out, NULL), "redistribute x from \"P\" to \"R\""));
    TSR_TRY(layer_expect_refusal_with(tsr_sort(x, 0, 0, NULL, NULL), "tsr_sort: values and indices are NULL"));
    TSR_TRY(layer_expect_refusal_with(tsr_argsort(x, 0, 0, NULL), "tsr_argsort: indices is NULL"));
    TSR_TRY(layer_expect_refusal_with(tsr_cumsum(b, 0, &out), "tsr_cumsum: x is bool, but cumsum takes f64"));
    EXPECT(!out, "a failure sets no output");
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(b);
    tsr_dtensor_destroy(p);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void wrong_arguments_are_named(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(long_lines_are_ordered_under_any_cut), cmocka_unit_test(special_values_have_an_order),
        cmocka_unit_test(gradients_go_back_to_positions), cmocka_unit_test(wrong_arguments_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
