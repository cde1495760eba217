/* Reductions that choose, multiply and measure: values against plain loops on long lines under
 * cuts of all kinds, special values, shares of gradients, and errors. */
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
#include <string.h>

#include <cmocka.h>

#define ROWS    3
#define COLUMNS 1501

static const int64_t shape[] = {ROWS, COLUMNS}, last = 1;
static const char *const cuts[] = {"S(1)", "R", "S(0)", "S(1;unit=7)", "S(1;interleave=5)", "S(1;sizes=0,1500,1,0)"};

static void fill(double *values)
{
    uint64_t state = 7;
    for (int i = 0; i < ROWS * COLUMNS; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        values[i] = (double)(state >> 40) / 1024 - 8192;
    }
}

static tsr_status check_row(const double *row, double largest, double smallest, int64_t first, int64_t low)
{
    int64_t most = 0, least = 0;
    for (int64_t i = 1; i < COLUMNS; i++) {
        most = row[i] > row[most] ? i : most;
        least = row[i] < row[least] ? i : least;
    }
    EXPECT(largest == row[most] && first == most, "the largest at %lld", (long long)most);
    EXPECT(smallest == row[least] && low == least, "the smallest at %lld", (long long)least);
    return TSR_OK;
}

static tsr_status check_moments(const double *row, double variance, double deviation)
{
    double mean = 0, squares = 0;
    for (int i = 0; i < COLUMNS; i++)
        mean += row[i] / COLUMNS;
    for (int i = 0; i < COLUMNS; i++)
        squares += (row[i] - mean) * (row[i] - mean);
    EXPECT(fabs(variance - squares / (COLUMNS - 1)) <= 1e-12 * variance, "the variance");
    EXPECT(fabs(deviation - sqrt(squares / COLUMNS)) <= 1e-12 * deviation, "the deviation");
    return TSR_OK;
}

static tsr_status check_cut(const tsr_mesh *mesh, const char *placements, double *values)
{
    double largest[ROWS], smallest[ROWS], variance[ROWS], deviation[ROWS];
    int64_t first[ROWS], low[ROWS];
    tsr_dtensor *x, *out;
    TSR_TRY(support_distribute(mesh, placements, TSR_F64, 2, shape, values, &x));
    TSR_TRY(tsr_max(x, 1, &last, 0, &out));
    TSR_TRY(tsr_max_into(x, 1, &last, 0, out));
    TSR_TRY(support_take(out, largest, sizeof largest));
    TSR_TRY(tsr_min(x, 1, &last, 1, &out));
    TSR_TRY(tsr_min_into(x, 1, &last, 1, out));
    TSR_TRY(support_take(out, smallest, sizeof smallest));
    TSR_TRY(tsr_argmax(x, 1, &out));
    TSR_TRY(tsr_argmax_into(x, -1, out));
    TSR_TRY(support_take(out, first, sizeof first));
    TSR_TRY(tsr_argmin(x, -1, &out));
    TSR_TRY(tsr_argmin_into(x, 1, out));
    TSR_TRY(support_take(out, low, sizeof low));
    TSR_TRY(tsr_var(x, 1, &last, 0, 1, &out));
    TSR_TRY(tsr_var_into(x, 1, &last, 0, 1, out));
    TSR_TRY(support_take(out, variance, sizeof variance));
    TSR_TRY(tsr_std(x, 1, &last, 0, 0, &out));
    TSR_TRY(tsr_std_into(x, 1, &last, 0, 0, out));
    TSR_TRY(support_take(out, deviation, sizeof deviation));
    for (int i = 0; i < ROWS; i++) {
        TSR_TRY(check_row(values + (ptrdiff_t)i * COLUMNS, largest[i], smallest[i], first[i], low[i]));
        TSR_TRY(check_moments(values + (ptrdiff_t)i * COLUMNS, variance[i], deviation[i]));
    }
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status check_lines(tsr_comm *comm, void *arg)
{
    double values[ROWS * COLUMNS];
    tsr_mesh *mesh;
    (void)arg;
    fill(values);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "4", &mesh));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++)
        TSR_TRY(check_cut(mesh, cuts[i], values));
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void long_lines_are_reduced_under_any_cut(void **state)
{
    (void)state;
    layers_run(4, check_lines, NULL);
}

/* Positions of extremes of columns, where NaNs, zeros of both signs and equal elements are. */
static tsr_status check_special(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {4, 4}, rows = 0;
    double values[] = {1, -0.0, INFINITY, 3, NAN, 0.0, -INFINITY, 3, 2, -0.0, NAN, 3, NAN, 0.0, INFINITY, 3};
    static const int64_t most[] = {1, 0, 2, 0}, least[] = {1, 0, 2, 0};
    double largest[4], smallest[4];
    int64_t positions[4];
    tsr_mesh *mesh;
    tsr_dtensor *x, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "5", &mesh));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F64, 2, sizes, values, &x));
    TSR_TRY(tsr_argmax(x, 0, &out));
    TSR_TRY(support_take(out, positions, sizeof positions));
    EXPECT(memcmp(positions, most, sizeof most) == 0, "argmax");
    TSR_TRY(tsr_argmin(x, 0, &out));
    TSR_TRY(support_take(out, positions, sizeof positions));
    EXPECT(memcmp(positions, least, sizeof least) == 0, "argmin");
    TSR_TRY(tsr_max(x, 1, &rows, 0, &out));
    TSR_TRY(support_take(out, largest, sizeof largest));
    TSR_TRY(tsr_min(x, 1, &rows, 0, &out));
    TSR_TRY(support_take(out, smallest, sizeof smallest));
    for (int i = 0; i < 4; i++) {
        const bool is_nan = i == 0 || i == 2;
        EXPECT(is_nan == isnan(largest[i]) && is_nan == isnan(smallest[i]), "NaN passes at %lld", (long long)i);
    }
    EXPECT(!signbit(largest[1]) && signbit(smallest[1]), "-0 is below +0");
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void special_values_have_an_order(void **state)
{
    (void)state;
    layers_run(5, check_special, NULL);
}

/* Integers that f64 does not have, narrow floats, and results of no elements. */
static tsr_status check_dtypes(tsr_comm *comm, void *arg)
{
    static const int64_t three[] = {3}, none[] = {0, 2}, first = 0;
    int64_t large[] = {INT64_MAX - 1, INT64_MAX, INT64_MIN}, whole, two[2];
    int32_t small[] = {-7, -9, -8}, chosen;
    uint16_t halves[] = {0x3c00, 0x4200, 0xc000}, half; /* 1, 3, -2 */
    uint8_t bools[] = {0, 1, 0}, answer;
    float floats[2];
    tsr_mesh *mesh;
    tsr_dtensor *x, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_I64, 1, three, large, &x));
    TSR_TRY(tsr_argmax(x, 0, &out));
    TSR_TRY(support_take(out, &whole, sizeof whole));
    EXPECT(whole == 1, "argmax of i64 is %lld", (long long)whole);
    TSR_TRY(tsr_max(x, 0, NULL, 0, &out));
    TSR_TRY(support_take(out, &whole, sizeof whole));
    EXPECT(whole == INT64_MAX, "max of i64 is %lld", (long long)whole);
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_I32, 1, three, small, &x));
    TSR_TRY(tsr_max(x, 0, NULL, 0, &out));
    TSR_TRY(support_take(out, &chosen, sizeof chosen));
    EXPECT(chosen == -7, "max of i32 is %lld", (long long)chosen);
    TSR_TRY(tsr_prod(x, 0, NULL, 0, &out));
    TSR_TRY(tsr_prod_into(x, 0, NULL, 0, out));
    TSR_TRY(support_take(out, &chosen, sizeof chosen));
    EXPECT(chosen == -504, "product of i32 is %lld", (long long)chosen);
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F16, 1, three, halves, &x));
    TSR_TRY(tsr_prod(x, 0, NULL, 0, &out));
    TSR_TRY(support_take(out, &half, sizeof half));
    EXPECT(half == 0xc600, "product of f16 is 0x%x", (unsigned)half);
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_BOOL, 1, three, bools, &x));
    TSR_TRY(tsr_any(x, 0, NULL, 0, &out));
    TSR_TRY(tsr_any_into(x, 0, NULL, 0, out));
    TSR_TRY(support_take(out, &answer, sizeof answer));
    EXPECT(answer == 1, "any is %lld", (long long)answer);
    TSR_TRY(tsr_all(x, 0, NULL, 0, &out));
    TSR_TRY(tsr_all_into(x, 0, NULL, 0, out));
    TSR_TRY(support_take(out, &answer, sizeof answer));
    EXPECT(answer == 0, "all is %lld", (long long)answer);
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_I64, 2, none, large, &x));
    TSR_TRY(tsr_max(x, 1, &first, 0, &out));
    TSR_TRY(support_take(out, two, sizeof two));
    EXPECT(two[0] == INT64_MIN && two[1] == INT64_MIN, "max of nothing is %lld", (long long)two[0]);
    tsr_dtensor_destroy(x);
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F32, 2, none, floats, &x));
    TSR_TRY(tsr_min(x, 1, &first, 0, &out));
    TSR_TRY(support_take(out, floats, sizeof floats));
    EXPECT(floats[0] == INFINITY && floats[1] == INFINITY, "min of nothing");
    TSR_TRY(tsr_prod(x, 1, &first, 0, &out));
    TSR_TRY(support_take(out, floats, sizeof floats));
    EXPECT(floats[0] == 1 && floats[1] == 1, "product of nothing");
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void dtypes_and_no_elements_have_results(void **state)
{
    (void)state;
    layers_run(2, check_dtypes, NULL);
}

typedef tsr_status gradient(const tsr_dtensor *x, int count, const int64_t *dims, int keep, const tsr_dtensor *dout,
                            tsr_dtensor **dx);

/* The gradient 2 of one result of six elements on five ranks, of which two have none. */
static tsr_status check_gradient(const tsr_mesh *mesh, gradient *backward, double *values, const double *wanted,
                                 const char *what)
{
    static const int64_t six[] = {6};
    double two[] = {2}, got[6];
    tsr_dtensor *x, *dout, *dx;
    TSR_TRY(support_distribute(mesh, "S(0;sizes=2,0,3,0,1)", TSR_F64, 1, six, values, &x));
    TSR_TRY(support_distribute(mesh, "R", TSR_F64, 0, NULL, two, &dout));
    TSR_TRY(backward(x, 0, NULL, 0, dout, &dx));
    TSR_TRY(support_take(dx, got, sizeof got));
    for (int i = 0; i < 6; i++)
        EXPECT(got[i] == wanted[i], "%s at %lld", what, (long long)i);
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status check_gradients(tsr_comm *comm, void *arg)
{
    double ties[] = {5, 1, 5, 1, 5, 5}, nans[] = {1, NAN, 9, NAN, 9, 1};
    double one[] = {2, 3, 0, 1, 0.5, -1}, many[] = {2, 0, 3, 1, 0, -1}, plain[] = {2, 4, 1, 0.5, -1, 1};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "5", &mesh));
    TSR_TRY(check_gradient(mesh, tsr_max_backward, ties, (const double[]){0.5, 0, 0.5, 0, 0.5, 0.5}, "max"));
    TSR_TRY(check_gradient(mesh, tsr_min_backward, ties, (const double[]){0, 1, 0, 1, 0, 0}, "min"));
    TSR_TRY(check_gradient(mesh, tsr_max_backward, nans, (const double[]){0, 1, 0, 1, 0, 0}, "NaNs share"));
    TSR_TRY(check_gradient(mesh, tsr_prod_backward, one, (const double[]){0, 0, -6, 0, 0, 0}, "product with a 0"));
    TSR_TRY(check_gradient(mesh, tsr_prod_backward, many, (const double[]){0, 0, 0, 0, 0, 0}, "product with zeros"));
    TSR_TRY(check_gradient(mesh, tsr_prod_backward, plain, (const double[]){-4, -2, -8, -16, 8, -8}, "product"));
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_are_shared_across_ranks(void **state)
{
    (void)state;
    layers_run(5, check_gradients, NULL);
}

typedef tsr_status measure(const tsr_dtensor *x, int count, const int64_t *dims, int keep, double correction,
                           tsr_dtensor **out);
typedef tsr_status measure_gradient(const tsr_dtensor *x, int count, const int64_t *dims, int keep, double correction,
                                    const tsr_dtensor *dout, tsr_dtensor **dx);

static tsr_status measure_values(const tsr_mesh *mesh, measure *run, double *values, double *out)
{
    static const int64_t five[] = {5};
    tsr_dtensor *x, *result;
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F64, 1, five, values, &x));
    TSR_TRY(run(x, 0, NULL, 0, 1, &result));
    tsr_dtensor_destroy(x);
    return support_take(result, out, sizeof *out);
}

static tsr_status check_slopes(const tsr_mesh *mesh, measure *run, measure_gradient *backward)
{
    static const int64_t five[] = {5};
    double values[] = {3, -1, 4, 1, -5}, three[] = {3}, got[5], high, low;
    tsr_dtensor *x, *dout, *dx;
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F64, 1, five, values, &x));
    TSR_TRY(support_distribute(mesh, "R", TSR_F64, 0, NULL, three, &dout));
    TSR_TRY(backward(x, 0, NULL, 0, 1, dout, &dx));
    TSR_TRY(support_take(dx, got, sizeof got));
    for (int i = 0; i < 5; i++) {
        values[i] += 1e-5;
        TSR_TRY(measure_values(mesh, run, values, &high));
        values[i] -= 2e-5;
        TSR_TRY(measure_values(mesh, run, values, &low));
        values[i] += 1e-5;
        EXPECT(fabs(got[i] - 3 * (high - low) / 2e-5) < 1e-8, "a slope at %lld", (long long)i);
    }
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

static tsr_status check_deviations(tsr_comm *comm, void *arg)
{
    static const int64_t three[] = {3};
    double equal[] = {2, 2, 2}, one[] = {1}, got[3];
    tsr_mesh *mesh;
    tsr_dtensor *x, *dout, *dx;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(check_slopes(mesh, tsr_var, tsr_var_backward));
    TSR_TRY(check_slopes(mesh, tsr_std, tsr_std_backward));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F64, 1, three, equal, &x));
    TSR_TRY(support_distribute(mesh, "R", TSR_F64, 0, NULL, one, &dout));
    TSR_TRY(tsr_std_backward(x, 0, NULL, 0, 1, dout, &dx));
    TSR_TRY(support_take(dx, got, sizeof got));
    EXPECT(got[0] == 0 && got[1] == 0 && got[2] == 0, "the gradient of a deviation of 0");
    TSR_TRY(tsr_var(x, 0, NULL, 0, 3, &dx));
    TSR_TRY(support_take(dx, got, sizeof *got));
    EXPECT(isnan(got[0]), "0 / 0");
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void deviations_have_slopes(void **state)
{
    (void)state;
    layers_run(2, check_deviations, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const int64_t sizes[] = {2, 0}, wrong[] = {2};
    float values[2] = {1, 2};
    uint8_t bools[2] = {1, 0};
    tsr_mesh *mesh;
    tsr_dtensor *x, *b, *y, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(support_distribute(mesh, "R", TSR_F32, 2, sizes, values, &x));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_BOOL, 1, sizes, bools, &b));
    TSR_TRY(support_distribute(mesh, "S(0)", TSR_F32, 1, sizes, values, &y));
    TSR_TRY(layer_expect_refusal_with(tsr_argmax(x, 1, &out),
                                      "tsr_argmax: dim is 1, along which x is empty, so no element is the largest"));
    TSR_TRY(layer_expect_refusal_with(tsr_argmin(x, -1, &out), "so no element is the smallest"));
    TSR_TRY(layer_expect_refusal_with(tsr_argmax(x, 2, &out),
                                      "dim is 2, but must be below 2, the dims of x, or -1 for the last"));
    TSR_TRY(layer_expect_refusal_with(tsr_max(b, 0, NULL, 0, &out),
                                      "tsr_max: x is bool, but max takes f64, f32, f16, bf16"));
    TSR_TRY(layer_expect_refusal_with(tsr_any(y, 0, NULL, 0, &out), "tsr_any: x is f32, but any takes bool"));
    TSR_TRY(
        layer_expect_refusal_with(tsr_prod(y, 1, wrong, 0, &out), "dims are 2, but they must differ and be below 1"));
    TSR_TRY(layer_expect_refusal_with(tsr_max_backward(y, 0, NULL, 0, y, &out),
                                      "tsr_max_backward: dout is f32 2 \"S(0)\", but must be f32 () in"));
    TSR_TRY(layer_expect_refusal_with(tsr_max_backward(y, 0, NULL, 0, y, &out), "the result's gradient layout, \"R\""));
    EXPECT(!out, "a failure sets no output");
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(b);
    tsr_dtensor_destroy(y);
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
    const struct CMUnitTest tests[] = {cmocka_unit_test(long_lines_are_reduced_under_any_cut),
                                       cmocka_unit_test(special_values_have_an_order),
                                       cmocka_unit_test(dtypes_and_no_elements_have_results),
                                       cmocka_unit_test(gradients_are_shared_across_ranks),
                                       cmocka_unit_test(deviations_have_slopes),
                                       cmocka_unit_test(wrong_arguments_are_named)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
