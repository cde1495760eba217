/* Values of ops on elements, beside those of test_op_calls.c, their gradients, and large results.
 * */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <float.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 64

static tsr_status expect(bool held, const char *name, double x, double got, double wanted)
{
    return held ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s of %.17g is %.17g, not %.17g", name, x, got, wanted);
}

static tsr_status make(const tsr_mesh *mesh, tsr_dtype dtype, int64_t count, const void *values, tsr_dtensor **out)
{
    return support_distribute(mesh, "S(0)", dtype, 1, &count, values, out);
}

static const double *numbers_of(const tsr_dtensor *x)
{
    return tsr_dtensor_to_local(x).data;
}

static void drop(tsr_dtensor **all, int count)
{
    for (int i = 0; i < count; i++)
        tsr_dtensor_destroy(all[i]);
}

static bool is_near(double a, double b, double ulps)
{
    return a == b || (a != a && b != b) || fabs(a - b) <= ulps * DBL_EPSILON * fabs(b);
}

static double reciprocal(double x)
{
    return 1 / x;
}

static double square(double x)
{
    return x * x;
}

static double softplus(double x)
{
    return (x > 0 ? x : 0) + log1p(exp(-fabs(x)));
}

typedef tsr_status unary(const tsr_dtensor *x, tsr_dtensor **out);
typedef tsr_status unary_into(const tsr_dtensor *x, tsr_dtensor *out);
typedef tsr_status unary_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx);

static const struct unary_row {
    const char *name;
    unary *call;
    unary_into *into;
    unary_backward *backward; /* NULL: there is none */
    double (*reference)(double);
    double low, high, ulps;
} unary_rows[] = {
    {"reciprocal", tsr_reciprocal, tsr_reciprocal_into, tsr_reciprocal_backward, reciprocal, 0.1, 9, 0},
    {"square", tsr_square, tsr_square_into, tsr_square_backward, square, -9, 9, 0},
    {"expm1", tsr_expm1, tsr_expm1_into, tsr_expm1_backward, expm1, -60, 60, 4},
    {"expm1", tsr_expm1, tsr_expm1_into, tsr_expm1_backward, expm1, -0.7, 0.7, 8},
    {"log1p", tsr_log1p, tsr_log1p_into, tsr_log1p_backward, log1p, -0.9, 9, 8},
    {"log1p", tsr_log1p, tsr_log1p_into, tsr_log1p_backward, log1p, 1e-9, 1e-3, 8},
    {"softplus", tsr_softplus, tsr_softplus_into, tsr_softplus_backward, softplus, -40, 40, 8},
    {"sin", tsr_sin, tsr_sin_into, tsr_sin_backward, sin, -1.6, 1.6, 4},
    {"sin", tsr_sin, tsr_sin_into, NULL, sin, 1e8, 2.6e8, 4},
    {"sin", tsr_sin, tsr_sin_into, NULL, sin, -1e300, 1e300, 0},
    {"cos", tsr_cos, tsr_cos_into, tsr_cos_backward, cos, -1.5, 1.5, 4},
    {"cos", tsr_cos, tsr_cos_into, NULL, cos, 1e8, 2.6e8, 4},
    {"erf", tsr_erf, tsr_erf_into, tsr_erf_backward, erf, -1.5, 1.5, 4},
    {"erf", tsr_erf, tsr_erf_into, tsr_erf_backward, erf, 0, 7, 4},
    {"erf", tsr_erf, tsr_erf_into, NULL, erf, -1e-300, 1e-300, 4},
    {"floor", tsr_floor, tsr_floor_into, NULL, floor, -4, 4, 0},
    {"ceil", tsr_ceil, tsr_ceil_into, NULL, ceil, -4, 4, 0},
    {"round", tsr_round, tsr_round_into, NULL, rint, -4, 3.875, 0},
};

/* Rows whose f32 are computed in f64 and rounded once. */
static tsr_status check_rounded(tsr_comm *comm, void *arg)
{
    static const char *const names[] = {"sin", "cos", "erf"};
    static double (*const references[])(double) = {sin, cos, erf};
    static unary *const calls[] = {tsr_sin, tsr_cos, tsr_erf};
    const int64_t shape[] = {COUNT};
    float values[COUNT];
    tsr_mesh *mesh;
    tsr_dtensor *x;
    (void)comm, (void)arg;
    for (int i = 0; i < COUNT; i++)
        values[i] = ldexpf((float)(i % 2 ? -i : i) / COUNT + 1, i % 29 - 4);
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 1, shape);
    TSR_TRY(tsr_distribute(&global, mesh, "R", &x));
    for (int k = 0; k < 3; k++) {
        tsr_dtensor *y;
        TSR_TRY(calls[k](x, &y));
        const float *const got = tsr_dtensor_to_local(y).data;
        for (int i = 0; i < COUNT; i++) {
            const double at = (double)values[i], wanted = references[k](at), unit = ldexp(1, ilogb(wanted) - 23);
            TSR_TRY(expect(fabs((double)got[i] - wanted) <= 0.51 * unit, names[k], at, (double)got[i], wanted));
        }
        tsr_dtensor_destroy(y);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static tsr_status check_slope(const struct unary_row *row, const tsr_dtensor *x)
{
    tsr_dtensor *ones, *dx;
    double one[COUNT];
    for (int i = 0; i < COUNT; i++)
        one[i] = 1;
    TSR_TRY(make(tsr_layout_mesh(tsr_dtensor_layout(x)), TSR_F64, COUNT, one, &ones));
    TSR_TRY(row->backward(x, ones, &dx));
    for (int64_t i = 0; i < tsr_dtensor_to_local(x).shape[0]; i++) {
        const double at = numbers_of(x)[i], h = 1e-6 * fabs(at) + 1e-9;
        const double slope = (row->reference(at + h) - row->reference(at - h)) / (2 * h);
        TSR_TRY(expect(fabs(numbers_of(dx)[i] - slope) <= 1e-5 * fabs(slope) + 1e-7, row->name, at, numbers_of(dx)[i],
                       slope));
    }
    drop((tsr_dtensor *[]){ones, dx}, 2);
    return TSR_OK;
}

static tsr_status check_unary(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    for (size_t k = 0; k < sizeof unary_rows / sizeof unary_rows[0]; k++) {
        const struct unary_row *const row = &unary_rows[k];
        double values[COUNT];
        tsr_dtensor *x, *y;
        for (int i = 0; i < COUNT; i++)
            values[i] = row->low + (row->high - row->low) * i / (COUNT - 1);
        TSR_TRY(make(mesh, TSR_F64, COUNT, values, &x));
        TSR_TRY(row->call(x, &y));
        if (row->backward)
            TSR_TRY(check_slope(row, x));
        for (int64_t i = 0; i < tsr_dtensor_to_local(x).shape[0]; i++) {
            const double at = numbers_of(x)[i], wanted = row->reference(at);
            TSR_TRY(expect(is_near(numbers_of(y)[i], wanted, row->ulps), row->name, at, numbers_of(y)[i], wanted));
        }
        TSR_TRY(row->into(x, x));
        TSR_TRY(expect(memcmp(numbers_of(x), numbers_of(y), (size_t)tsr_dtensor_to_local(x).shape[0] * 8) == 0,
                       row->name, 0, 0, 0));
        drop((tsr_dtensor *[]){x, y}, 2);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void functions_of_one_operand(void **state)
{
    (void)state;
    layers_run(3, check_unary, NULL);
    layers_run(2, check_rounded, NULL);
}

/* Exact results of f64, NaN equal to NaN; zeros have signs. */
static tsr_status expect_all(const char *name, const tsr_dtensor *got, const double *wanted)
{
    for (int64_t i = 0; i < tsr_dtensor_to_local(got).shape[0]; i++) {
        const double a = numbers_of(got)[i], b = wanted[i];
        TSR_TRY(expect((a != a && b != b) || memcmp(&a, &b, sizeof a) == 0, name, (double)i, a, b));
    }
    return TSR_OK;
}

#define NAN_ ((double)NAN)
#define INF  ((double)INFINITY)

static tsr_status check_choices(tsr_comm *comm, void *arg)
{
    const double values[] = {-3, -0.0, 0.5, 7, NAN_, INF}, ones[] = {1, 1, 1, 1, 1, 1};
    const uint8_t bits[] = {1, 0, 1, 0, 0, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *one, *mask, *y, *dx;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_F64, 6, values, &x));
    TSR_TRY(make(mesh, TSR_F64, 6, ones, &one));
    TSR_TRY(make(mesh, TSR_BOOL, 6, bits, &mask));
    TSR_TRY(tsr_clamp(x, -1, 2, &y));
    TSR_TRY(expect_all("clamp", y, (double[]){-1, -0.0, 0.5, 2, NAN_, 2}));
    TSR_TRY(tsr_clamp_into(x, -(double)INFINITY, 2, y));
    TSR_TRY(expect_all("clamp below", y, (double[]){-3, -0.0, 0.5, 2, NAN_, 2}));
    TSR_TRY(tsr_clamp_into(x, 5, 2, y));
    TSR_TRY(expect_all("clamp to max", y, (double[]){2, 2, 2, 2, NAN_, 2}));
    TSR_TRY(tsr_clamp_backward(x, -1, 7, one, &dx));
    TSR_TRY(expect_all("clamp's gradient", dx, (double[]){0, 1, 1, 0, 0, 0}));
    tsr_dtensor_destroy(dx);
    TSR_TRY(tsr_masked_fill_into(x, mask, -2, y));
    TSR_TRY(expect_all("masked_fill", y, (double[]){-2, -0.0, -2, 7, NAN_, -2}));
    TSR_TRY(tsr_masked_fill_backward(x, mask, -2, one, &dx));
    TSR_TRY(expect_all("masked_fill's gradient", dx, (double[]){0, 1, 0, 1, 1, 0}));
    tsr_dtensor_destroy(dx);
    TSR_TRY(tsr_leaky_relu_into(x, 0.5, y));
    TSR_TRY(expect_all("leaky_relu", y, (double[]){-1.5, -0.0, 0.5, 7, NAN_, INF}));
    TSR_TRY(tsr_leaky_relu_backward(x, 0.5, one, &dx));
    TSR_TRY(expect_all("leaky_relu's gradient", dx, (double[]){0.5, 0.5, 1, 1, 0.5, 1}));
    tsr_dtensor_destroy(dx);
    TSR_TRY(tsr_elu_into(x, 2, y));
    TSR_TRY(expect(is_near(numbers_of(y)[0], 2 * expm1(-3), 4), "elu", -3, numbers_of(y)[0], 2 * expm1(-3)));
    TSR_TRY(tsr_elu_backward(x, 2, one, &dx));
    TSR_TRY(expect(is_near(numbers_of(dx)[0], 2 * exp(-3), 4) && numbers_of(dx)[3] == 1, "elu's gradient", -3,
                   numbers_of(dx)[0], 2 * exp(-3)));
    TSR_TRY(tsr_sign_into(x, y));
    TSR_TRY(expect_all("sign", y, (double[]){-1, -0.0, 1, 1, NAN_, 1}));
    drop((tsr_dtensor *[]){x, one, mask, y, dx}, 5);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static tsr_status check_made(tsr_comm *comm, void *arg)
{
    const double values[] = {-1, 2};
    const uint8_t bits[] = {1, 0};
    tsr_mesh *mesh;
    tsr_dtensor *x, *mask, *filled, *leaky, *elu, *sign;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_F64, 2, values, &x));
    TSR_TRY(make(mesh, TSR_BOOL, 2, bits, &mask));
    TSR_TRY(tsr_masked_fill(x, mask, 9, &filled));
    TSR_TRY(tsr_leaky_relu(x, 3, &leaky));
    TSR_TRY(tsr_elu(x, 0, &elu));
    TSR_TRY(tsr_sign(x, &sign));
    TSR_TRY(expect_all("masked_fill", filled, (double[]){9, 2}));
    TSR_TRY(expect_all("leaky_relu", leaky, (double[]){-3, 2}));
    TSR_TRY(expect_all("elu", elu, (double[]){-0.0, 2}));
    TSR_TRY(expect_all("sign", sign, (double[]){-1, 1}));
    drop((tsr_dtensor *[]){x, mask, filled, leaky, elu, sign}, 6);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void choices_of_one_operand(void **state)
{
    (void)state;
    layers_run(1, check_choices, NULL);
    layers_run(1, check_made, NULL);
}

static tsr_status check_pow(tsr_comm *comm, void *arg)
{
    const double xs[] = {2, -2, -2, -8, 0, -0.0, 0, 1, -1, -1, INF, NAN_, 0, 0.5, -INF, -INF};
    const double ys[] = {10, 3, 2, 1.0 / 3, 0, -1, 2, NAN_, INF, 3, -1, 0, -2, INF, 3, 0.5};
    const double wanted[] = {1024, -8, 4, NAN_, 1, -INF, 0, 1, 1, -1, 0, 1, INF, 0, -INF, INF};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *out, *dx, *dy;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_F64, 16, xs, &x));
    TSR_TRY(make(mesh, TSR_F64, 16, ys, &y));
    TSR_TRY(tsr_pow(x, y, &out));
    TSR_TRY(tsr_pow_into(x, y, out));
    for (int i = 0; i < 16; i++) {
        const double bound = 8 + fabs(ys[i] * log(fabs(xs[i])));
        TSR_TRY(expect(is_near(numbers_of(out)[i], wanted[i], bound == bound ? bound : 0), "pow", (double)i,
                       numbers_of(out)[i], wanted[i]));
    }
    TSR_TRY(tsr_pow_backward(x, y, x, &dx, &dy));
    const double by_x[] = {2 * 10 * 512.0, -2 * 3 * 4.0, -2 * 2 * -2.0}, by_y = 2 * 1024 * log(2);
    for (int i = 0; i < 3; i++)
        TSR_TRY(expect(is_near(numbers_of(dx)[i], by_x[i], 32), "pow's slope", xs[i], numbers_of(dx)[i], by_x[i]));
    TSR_TRY(expect(is_near(numbers_of(dy)[0], by_y, 32), "pow's slope by y", 2, numbers_of(dy)[0], by_y));
    TSR_TRY(expect(numbers_of(dy)[4] == 0 && numbers_of(dx)[4] == 0, "pow's slope of 0", 0, numbers_of(dy)[4], 0));
    drop((tsr_dtensor *[]){x, y, out, dx, dy}, 5);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void powers(void **state)
{
    (void)state;
    layers_run(1, check_pow, NULL);
}

typedef tsr_status binary(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
typedef tsr_status binary_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);

static tsr_status expect_bits(const char *name, const tsr_dtensor *got, const char *wanted)
{
    const tsr_tensor local = tsr_dtensor_to_local(got);
    TSR_TRY(expect(local.dtype == TSR_BOOL, name, 0, (double)local.dtype, (double)TSR_BOOL));
    for (int64_t i = 0; i < local.shape[0]; i++) {
        const uint8_t bit = ((const uint8_t *)local.data)[i];
        TSR_TRY(expect(bit == wanted[i] - '0', name, (double)i, bit, wanted[i] - '0'));
    }
    return TSR_OK;
}

static tsr_status check_pair(const char *name, binary *call, binary_into *into, const tsr_dtensor *x,
                             const tsr_dtensor *y, const char *wanted)
{
    tsr_dtensor *out;
    TSR_TRY(call(x, y, &out));
    TSR_TRY(expect_bits(name, out, wanted));
    TSR_TRY(into(y, y, out));
    TSR_TRY(into(x, y, out));
    TSR_TRY(expect_bits(name, out, wanted));
    tsr_dtensor_destroy(out);
    return TSR_OK;
}

static tsr_status check_single(const char *name, unary *call, unary_into *into, const tsr_dtensor *x,
                               const char *wanted)
{
    tsr_dtensor *out;
    TSR_TRY(call(x, &out));
    TSR_TRY(expect_bits(name, out, wanted));
    TSR_TRY(into(x, out));
    TSR_TRY(expect_bits(name, out, wanted));
    tsr_dtensor_destroy(out);
    return TSR_OK;
}

static tsr_status check_tests(tsr_comm *comm, void *arg)
{
    const double xs[] = {1, 2, 3, NAN_, INF, -0.0}, ys[] = {2, 2, 2, NAN_, 1, 0};
    const int32_t is[] = {-5, 5, 0}, js[] = {5, 5, -5};
    const uint8_t ps[] = {0, 0, 1, 1}, qs[] = {0, 1, 0, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *i, *j, *p, *q;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_F64, 6, xs, &x));
    TSR_TRY(make(mesh, TSR_F64, 6, ys, &y));
    TSR_TRY(make(mesh, TSR_I32, 3, is, &i));
    TSR_TRY(make(mesh, TSR_I32, 3, js, &j));
    TSR_TRY(make(mesh, TSR_BOOL, 4, ps, &p));
    TSR_TRY(make(mesh, TSR_BOOL, 4, qs, &q));
    TSR_TRY(check_pair("eq", tsr_eq, tsr_eq_into, x, y, "010001"));
    TSR_TRY(check_pair("ne", tsr_ne, tsr_ne_into, x, y, "101110"));
    TSR_TRY(check_pair("lt", tsr_lt, tsr_lt_into, x, y, "100000"));
    TSR_TRY(check_pair("le", tsr_le, tsr_le_into, x, y, "110001"));
    TSR_TRY(check_pair("gt", tsr_gt, tsr_gt_into, x, y, "001010"));
    TSR_TRY(check_pair("ge", tsr_ge, tsr_ge_into, x, y, "011011"));
    TSR_TRY(check_pair("lt", tsr_lt, tsr_lt_into, i, j, "100"));
    TSR_TRY(check_pair("ge", tsr_ge, tsr_ge_into, i, j, "011"));
    TSR_TRY(check_pair("eq", tsr_eq, tsr_eq_into, p, q, "1001"));
    TSR_TRY(check_pair("logical_and", tsr_logical_and, tsr_logical_and_into, p, q, "0001"));
    TSR_TRY(check_pair("logical_or", tsr_logical_or, tsr_logical_or_into, p, q, "0111"));
    TSR_TRY(check_single("logical_not", tsr_logical_not, tsr_logical_not_into, p, "1100"));
    TSR_TRY(check_single("isnan", tsr_isnan, tsr_isnan_into, x, "000100"));
    TSR_TRY(check_single("isinf", tsr_isinf, tsr_isinf_into, x, "000010"));
    TSR_TRY(check_single("isfinite", tsr_isfinite, tsr_isfinite_into, x, "111001"));
    drop((tsr_dtensor *[]){x, y, i, j, p, q}, 6);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void tests_give_bools(void **state)
{
    (void)state;
    layers_run(1, check_tests, NULL);
}

static tsr_status check_division(tsr_comm *comm, void *arg)
{
    const int64_t xs[] = {7, -7, 7, -7, 6, INT64_MIN, 5, INT64_MIN}, ys[] = {2, 2, -2, -2, 3, -1, 0, 0};
    const int64_t quotients[] = {3, -4, -4, 3, 2, INT64_MIN, 0, 0}, rests[] = {1, 1, -1, -1, 0, 0, 0, 0};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *quotient, *rest;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_I64, 8, xs, &x));
    TSR_TRY(make(mesh, TSR_I64, 8, ys, &y));
    TSR_TRY(tsr_floor_divide(x, y, &quotient));
    TSR_TRY(tsr_remainder(x, y, &rest));
    TSR_TRY(tsr_floor_divide_into(x, y, quotient));
    TSR_TRY(tsr_remainder_into(x, y, rest));
    TSR_TRY(
        expect(memcmp(tsr_dtensor_to_local(quotient).data, quotients, sizeof quotients) == 0, "quotients", 0, 0, 0));
    TSR_TRY(expect(memcmp(tsr_dtensor_to_local(rest).data, rests, sizeof rests) == 0, "remainders", 0, 0, 0));
    drop((tsr_dtensor *[]){x, y, quotient, rest}, 4);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void integers_are_divided_downwards(void **state)
{
    (void)state;
    layers_run(1, check_division, NULL);
}

static tsr_status check_refusals(tsr_comm *comm, void *arg)
{
    const double values[] = {1, 2};
    const int64_t numbers[] = {1, 2};
    tsr_mesh *mesh;
    tsr_dtensor *x, *n, *out;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, TSR_F64, 2, values, &x));
    TSR_TRY(make(mesh, TSR_I64, 2, numbers, &n));
    TSR_TRY(layer_expect_refusal(tsr_logical_and(x, x, &out), "tsr_logical_and: x is f64, but logical_and takes bool"));
    TSR_TRY(
        layer_expect_refusal(tsr_lt(x, n, &out), "tsr_lt: x is f64 but y is i64; both must have one dtype, cast one"));
    TSR_TRY(layer_expect_refusal(tsr_masked_fill(x, n, 0, &out),
                                 "tsr_masked_fill: mask is i64, but masked_fill takes bool"));
    TSR_TRY(layer_expect_refusal(tsr_remainder(x, x, &out), "tsr_remainder: x is f64, but remainder takes i64, i32"));
    drop((tsr_dtensor *[]){x, n}, 2);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void other_dtypes_are_refused(void **state)
{
    (void)state;
    layers_run(1, check_refusals, NULL);
}

/* Rows that do not begin with a cache line, of more than 8 MiB, by streaming stores and without.
 * */
static tsr_status sum_large(tsr_comm *comm, void *arg)
{
    enum { ROWS = 1100, COLUMNS = 4101 };
    static float values[ROWS * COLUMNS], bias[COLUMNS];
    static const int64_t shape[] = {ROWS, COLUMNS}, columns = COLUMNS;
    uint64_t *const sum = arg;
    tsr_mesh *mesh;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        values[i] = (float)(i % 8191);
    for (int i = 0; i < COLUMNS; i++)
        bias[i] = (float)(i % 127) / 4;
    const tsr_tensor full = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    const tsr_tensor row = tsr_tensor_contiguous(bias, TSR_F32, 1, &columns);
    tsr_dtensor *x, *b, *y, *narrow, *twice;
    TSR_TRY(tsr_distribute(&full, mesh, "R", &x));
    TSR_TRY(tsr_distribute(&row, mesh, "R", &b));
    TSR_TRY(tsr_add(x, b, &y));
    const float *const got = tsr_dtensor_to_local(y).data;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        TSR_TRY(expect(got[i] == values[i] + bias[i % COLUMNS], "add", i, (double)got[i], 0));
    TSR_TRY(tsr_cast(y, TSR_BF16, &narrow));
    TSR_TRY(tsr_add(narrow, narrow, &twice));
    const uint16_t *const codes = tsr_dtensor_to_local(twice).data;
    *sum = 0;
    for (int i = 0; i < ROWS * COLUMNS; i++)
        *sum = *sum * 31 + codes[i];
    drop((tsr_dtensor *[]){x, b, y, narrow, twice}, 5);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void add_bits(const float *values, int64_t count, uint64_t *sum)
{
    for (int64_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &values[i], sizeof bits);
        *sum = *sum * 31 + bits;
    }
}

/* Functions of all values from -10 to 10 in steps of 2^-18, into memory that begins and ends within
 * a cache line, by streaming stores and without. */
static tsr_status sum_functions(tsr_comm *comm, void *arg)
{
    enum { VALUES = 10 << 19 };
    static tsr_status (*const of_one[])(const tsr_dtensor *, tsr_dtensor *) = {
        tsr_exp_into, tsr_tanh_into, tsr_sigmoid_into, tsr_silu_into, tsr_relu_into};
    static tsr_status (*const of_two[])(const tsr_dtensor *, const tsr_dtensor *, tsr_dtensor *) = {
        tsr_add_into, tsr_sub_into, tsr_mul_into, tsr_div_into, tsr_silu_mul_into};
    static float values[VALUES], results[VALUES + 1];
    static const int64_t count = VALUES;
    uint64_t *const sum = arg;
    tsr_mesh *mesh;
    tsr_layout *layout;
    tsr_dtensor *x, *y, *z;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(tsr_layout_parse(mesh, "R", 1, &count, TSR_F32, &layout));
    for (int i = 0; i < VALUES; i++)
        values[i] = ((float)(i - VALUES / 2) + 0.5f) * 0x1p-18f;
    const tsr_tensor full = tsr_tensor_contiguous(values, TSR_F32, 1, &count);
    const tsr_tensor own = tsr_tensor_contiguous(results + 1, TSR_F32, 1, &count);
    TSR_TRY(tsr_distribute(&full, mesh, "R", &x));
    TSR_TRY(tsr_scale(x, -0.7, &z));
    TSR_TRY(tsr_dtensor_from_local(&own, layout, NULL, &y));
    *sum = 0;
    for (size_t i = 0; i < sizeof of_one / sizeof *of_one; i++) {
        TSR_TRY(of_one[i](x, y));
        add_bits(results + 1, VALUES, sum);
    }
    for (size_t i = 0; i < sizeof of_two / sizeof *of_two; i++) {
        TSR_TRY(of_two[i](x, z, y));
        add_bits(results + 1, VALUES, sum);
    }
    for (int i = 0; i < 2; i++) {
        TSR_TRY(tsr_gelu_into(x, i, y));
        add_bits(results + 1, VALUES, sum);
    }
    TSR_TRY(tsr_scale_into(x, 0.3, y));
    add_bits(results + 1, VALUES, sum);
    drop((tsr_dtensor *[]){x, y, z}, 3);
    tsr_layout_destroy(layout);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static uint64_t run_by(const char *way, tsr_status (*body)(tsr_comm *comm, void *arg))
{
    uint64_t sum;
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    tsr_threads_options threads = TSR_THREADS_OPTIONS_INIT;
    options.kernels = way;
    assert_int_equal(tsr_context_create(&options, &threads.context), TSR_OK);
    if (tsr_threads_run(1, body, &sum, &threads) != TSR_OK)
        fail_msg("%s: %s", way, tsr_status_message());
    tsr_context_destroy(threads.context);
    return sum;
}

static void large_results_are_the_same_in_all_ways(void **state)
{
    static const char *const ways[] = {"plain", "stream", "portable,stream"};
    (void)state;
    for (int i = 1; i < 3; i++) {
        assert_int_equal(run_by(ways[i], sum_large), run_by(ways[0], sum_large));
        assert_int_equal(run_by(ways[i], sum_functions), run_by(ways[0], sum_functions));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(functions_of_one_operand),
        cmocka_unit_test(choices_of_one_operand),
        cmocka_unit_test(powers),
        cmocka_unit_test(tests_give_bools),
        cmocka_unit_test(integers_are_divided_downwards),
        cmocka_unit_test(other_dtypes_are_refused),
        cmocka_unit_test(large_results_are_the_same_in_all_ways),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
