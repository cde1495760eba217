/* The typed functions of ops, their values and their errors. The layouts are proved in
 * test_op_proof.c. */
#include "layers.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#define COUNT 4096

typedef tsr_status unary(const tsr_dtensor *x, tsr_dtensor **out);
typedef tsr_status unary_into(const tsr_dtensor *x, tsr_dtensor *out);
typedef tsr_status unary_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx);
typedef tsr_status binary(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
typedef tsr_status binary_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
typedef tsr_status binary_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout,
                                   tsr_dtensor **dx, tsr_dtensor **dy);

static double sigmoid(double x)
{
    return 1 / (1 + exp(-x));
}

static double silu(double x)
{
    return x / (1 + exp(-x));
}

static double relu(double x)
{
    return x > 0 ? x : 0;
}

static double rsqrt(double x)
{
    return 1 / sqrt(x);
}

static double negate(double x)
{
    return -x;
}

static double add(double x, double y)
{
    return x + y;
}

static double subtract(double x, double y)
{
    return x - y;
}

static double multiply(double x, double y)
{
    return x * y;
}

static double divide(double x, double y)
{
    return x / y;
}

static double larger(double x, double y)
{
    return x > y ? x : y;
}

static double smaller(double x, double y)
{
    return x < y ? x : y;
}

static double silu_times(double x, double y)
{
    return silu(x) * y;
}

static const struct unary_row {
    const char *name;
    unary *call;
    unary_into *into;
    unary_backward *backward;
    double (*reference)(double);
    double low, high;
} unary_rows[] = {
    {"neg", tsr_neg, tsr_neg_into, tsr_neg_backward, negate, -9, 9},
    {"abs", tsr_abs, tsr_abs_into, tsr_abs_backward, fabs, -9, 9},
    {"exp", tsr_exp, tsr_exp_into, tsr_exp_backward, exp, -745, 709},
    {"exp", tsr_exp, tsr_exp_into, tsr_exp_backward, exp, -2, 2},
    {"log", tsr_ln, tsr_ln_into, tsr_ln_backward, log, 1e-310, 1e-300},
    {"log", tsr_ln, tsr_ln_into, tsr_ln_backward, log, 0.5, 2},
    {"log", tsr_ln, tsr_ln_into, tsr_ln_backward, log, 1, 1e9},
    {"sqrt", tsr_sqrt, tsr_sqrt_into, tsr_sqrt_backward, sqrt, 0.01, 1e6},
    {"rsqrt", tsr_rsqrt, tsr_rsqrt_into, tsr_rsqrt_backward, rsqrt, 0.01, 1e6},
    {"tanh", tsr_tanh, tsr_tanh_into, tsr_tanh_backward, tanh, -30, 30},
    {"tanh", tsr_tanh, tsr_tanh_into, tsr_tanh_backward, tanh, -1e-3, 1e-3},
    {"sigmoid", tsr_sigmoid, tsr_sigmoid_into, tsr_sigmoid_backward, sigmoid, -40, 40},
    {"silu", tsr_silu, tsr_silu_into, tsr_silu_backward, silu, -40, 40},
    {"relu", tsr_relu, tsr_relu_into, tsr_relu_backward, relu, -9, 9},
};

static const struct binary_row {
    const char *name;
    binary *call;
    binary_into *into;
    binary_backward *backward;
    double (*reference)(double, double);
} binary_rows[] = {
    {"add", tsr_add, tsr_add_into, tsr_add_backward, add},
    {"sub", tsr_sub, tsr_sub_into, tsr_sub_backward, subtract},
    {"mul", tsr_mul, tsr_mul_into, tsr_mul_backward, multiply},
    {"div", tsr_div, tsr_div_into, tsr_div_backward, divide},
    {"maximum", tsr_maximum, tsr_maximum_into, tsr_maximum_backward, larger},
    {"minimum", tsr_minimum, tsr_minimum_into, tsr_minimum_backward, smaller},
    {"silu_mul", tsr_silu_mul, tsr_silu_mul_into, tsr_silu_mul_backward, silu_times},
};

/* A dtensor of `count` f64 in one dim, from `low` to `high`. */
static tsr_status make_line(const tsr_mesh *mesh, int64_t count, double low, double high, tsr_dtensor **out)
{
    double own[COUNT];
    for (int64_t i = 0; i < count; i++)
        own[i] = low + (high - low) * (double)i / (double)(count > 1 ? count - 1 : 1);
    const tsr_tensor global = tsr_tensor_contiguous(own, TSR_F64, 1, &count);
    return tsr_distribute(&global, mesh, "S(0)", out);
}

static const double *values_of(const tsr_dtensor *x)
{
    return tsr_dtensor_to_local(x).data;
}

static tsr_status expect(bool held, const char *name, double x, double got, double wanted)
{
    return held ? TSR_OK : tsr_status_set(TSR_ERROR_INTERNAL, "%s of %.17g is %.17g, not %.17g", name, x, got, wanted);
}

/* Within 8 units in the last place, or of the smallest number. */
static bool is_near(double a, double b)
{
    return a == b || fabs(a - b) <= 8 * 0x1p-52 * fabs(b) + 0x1p-1073;
}

static tsr_status check_unary(const tsr_mesh *mesh, const struct unary_row *row)
{
    tsr_dtensor *x, *y, *into, *dout, *dx;
    TSR_TRY(make_line(mesh, COUNT, row->low, row->high, &x));
    TSR_TRY(make_line(mesh, COUNT, 0, 0, &into));
    TSR_TRY(make_line(mesh, COUNT, 1, 1, &dout));
    TSR_TRY(row->call(x, &y));
    TSR_TRY(row->into(x, into));
    TSR_TRY(row->backward(x, dout, &dx));
    const int64_t count = tsr_dtensor_to_local(x).shape[0];
    for (int64_t i = 0; i < count; i++) {
        const double at = values_of(x)[i], wanted = row->reference(at), h = 1e-5 * fabs(at) + 1e-7;
        const double slope = (row->reference(at + h) - row->reference(at - h)) / (2 * h);
        const bool smooth = fabs(at) > 1e-5 && fabs(wanted) > 1e-290 && fabs(wanted) < 1e290;
        TSR_TRY(expect(is_near(values_of(y)[i], wanted), row->name, at, values_of(y)[i], wanted));
        TSR_TRY(expect(values_of(y)[i] == values_of(into)[i], row->name, at, values_of(into)[i], wanted));
        if (smooth && row->low > -700 && row->low > 1e-300)
            TSR_TRY(expect(fabs(values_of(dx)[i] - slope) <= 1e-4 * (fabs(slope) + 1e-3), row->name, at,
                           values_of(dx)[i], slope));
    }
    TSR_TRY(row->into(x, x));
    TSR_TRY(expect(memcmp(values_of(x), values_of(y), (size_t)count * sizeof(double)) == 0, row->name, 0, 0, 0));
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(into);
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(dx);
    return TSR_OK;
}

static tsr_status check_binary(const tsr_mesh *mesh, const struct binary_row *row)
{
    tsr_dtensor *x, *y, *out, *into, *dout, *dx, *dy;
    TSR_TRY(make_line(mesh, COUNT, -3, 5, &x));
    TSR_TRY(make_line(mesh, COUNT, 4, -2.5, &y));
    TSR_TRY(make_line(mesh, COUNT, 0, 0, &into));
    TSR_TRY(make_line(mesh, COUNT, 1, 1, &dout));
    TSR_TRY(row->call(x, y, &out));
    TSR_TRY(row->into(x, y, into));
    TSR_TRY(row->backward(x, y, dout, &dx, NULL));
    TSR_TRY(row->backward(x, y, dout, NULL, &dy));
    for (int64_t i = 0; i < tsr_dtensor_to_local(x).shape[0]; i++) {
        const double a = values_of(x)[i], b = values_of(y)[i], wanted = row->reference(a, b), h = 1e-6;
        const double by_x = (row->reference(a + h, b) - row->reference(a - h, b)) / (2 * h);
        const double by_y = (row->reference(a, b + h) - row->reference(a, b - h)) / (2 * h);
        TSR_TRY(expect(is_near(values_of(out)[i], wanted) && values_of(into)[i] == values_of(out)[i], row->name, a,
                       values_of(out)[i], wanted));
        if (fabs(b) < 0.1 || fabs(a - b) < 1e-3)
            continue;
        TSR_TRY(expect(fabs(values_of(dx)[i] - by_x) <= 1e-4 * (1 + fabs(by_x)), row->name, a, values_of(dx)[i], by_x));
        TSR_TRY(expect(fabs(values_of(dy)[i] - by_y) <= 1e-4 * (1 + fabs(by_y)), row->name, a, values_of(dy)[i], by_y));
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(out);
    tsr_dtensor_destroy(into);
    tsr_dtensor_destroy(dout);
    tsr_dtensor_destroy(dx);
    tsr_dtensor_destroy(dy);
    return TSR_OK;
}

static tsr_status check_elementwise(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=3", &mesh));
    for (size_t i = 0; i < sizeof unary_rows / sizeof unary_rows[0]; i++)
        TSR_TRY(check_unary(mesh, &unary_rows[i]));
    for (size_t i = 0; i < sizeof binary_rows / sizeof binary_rows[0]; i++)
        TSR_TRY(check_binary(mesh, &binary_rows[i]));
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void elements_are_those_of_libm(void **state)
{
    (void)state;
    layers_run(3, check_elementwise, NULL);
}

static double gelu_erf(double x)
{
    return 0.5 * x * erfc(-x / sqrt(2));
}

static double gelu_tanh(double x)
{
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static tsr_status check_gelu(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (int form = 0; form < 2; form++) {
        double (*const reference)(double) = form ? gelu_tanh : gelu_erf;
        tsr_dtensor *x, *y, *dout, *dx;
        TSR_TRY(make_line(mesh, COUNT, -8, 8, &x));
        TSR_TRY(make_line(mesh, COUNT, 1, 1, &dout));
        TSR_TRY(tsr_gelu(x, form, &y));
        TSR_TRY(tsr_gelu_backward(x, form, dout, &dx));
        for (int64_t i = 0; i < tsr_dtensor_to_local(x).shape[0]; i++) {
            const double at = values_of(x)[i], wanted = reference(at);
            const double slope = (reference(at + 1e-5) - reference(at - 1e-5)) / 2e-5;
            TSR_TRY(expect(fabs(values_of(y)[i] - wanted) <= 1e-15 + (form ? 0 : 1e-13 * fabs(wanted)), "gelu", at,
                           values_of(y)[i], wanted));
            TSR_TRY(expect(fabs(values_of(dx)[i] - slope) < 1e-8, "gelu's slope", at, values_of(dx)[i], slope));
        }
        TSR_TRY(tsr_gelu_into(x, form, x));
        TSR_TRY(expect(values_of(x)[0] == values_of(y)[0], "gelu", 0, values_of(x)[0], values_of(y)[0]));
        tsr_dtensor_destroy(x);
        tsr_dtensor_destroy(y);
        tsr_dtensor_destroy(dout);
        tsr_dtensor_destroy(dx);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gelu_has_two_forms(void **state)
{
    (void)state;
    layers_run(2, check_gelu, NULL);
}

static tsr_status expect_values(const char *what, const tsr_dtensor *x, const char *placements, int count,
                                const float *wanted)
{
    char text[64];
    tsr_dtensor *whole;
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    if (strcmp(text, placements) != 0)
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s is %s instead of %s", what, text, placements);
    TSR_TRY(tsr_full_tensor(x, &whole));
    const float *const got = tsr_dtensor_to_local(whole).data;
    tsr_status status = TSR_OK;
    for (int i = 0; i < count && status == TSR_OK; i++)
        status = expect(got[i] == wanted[i], what, i, (double)got[i], (double)wanted[i]);
    tsr_dtensor_destroy(whole);
    return status;
}

/* A 2x3 tensor with the values 1 to 6. */
static tsr_status make_matrix(const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    static const int64_t shape[] = {2, 3};
    float values[] = {1, 2, 3, 4, 5, 6};
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

static tsr_status check_sums(tsr_comm *comm, void *arg)
{
    static const int64_t rows = 0, columns = 1;
    tsr_mesh *mesh;
    tsr_dtensor *x, *all, *kept, *mean, *dx, *dmean;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make_matrix(mesh, "S(0)", &x));
    TSR_TRY(tsr_sum(x, 0, NULL, 0, &all));
    TSR_TRY(expect_values("the sum", all, "P", 1, (const float[]){21}));
    TSR_TRY(tsr_sum(x, 1, &columns, 1, &kept));
    TSR_TRY(expect_values("the sum of rows", kept, "S(0)", 2, (const float[]){6, 15}));
    TSR_TRY(tsr_mean(x, 1, &rows, 0, &mean));
    TSR_TRY(expect_values("the mean of columns", mean, "P", 3, (const float[]){2.5F, 3.5F, 4.5F}));
    TSR_TRY(tsr_sum_into(x, 0, NULL, 0, all));
    TSR_TRY(tsr_mean_into(x, 1, &rows, 0, mean));
    TSR_TRY(tsr_sum_backward(x, 1, &columns, 1, kept, &dx));
    TSR_TRY(expect_values("the sum's gradient", dx, "S(0)", 6, (const float[]){6, 6, 6, 15, 15, 15}));
    tsr_dtensor *whole;
    TSR_TRY(tsr_redistribute_to(mean, "R", &whole));
    TSR_TRY(tsr_mean_backward(x, 1, &rows, 0, whole, &dmean));
    TSR_TRY(expect_values("the mean's gradient", dmean, "S(0)", 6,
                          (const float[]){1.25F, 1.75F, 2.25F, 1.25F, 1.75F, 2.25F}));
    tsr_dtensor *const all_of_them[] = {x, all, kept, mean, dx, dmean, whole};
    for (size_t i = 0; i < sizeof all_of_them / sizeof all_of_them[0]; i++)
        tsr_dtensor_destroy(all_of_them[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void sums_over_cut_dims_are_partial(void **state)
{
    (void)state;
    layers_run(2, check_sums, NULL);
}

static tsr_status check_choices(tsr_comm *comm, void *arg)
{
    static const int64_t shape[] = {2, 3};
    uint8_t bits[] = {1, 0, 1, 0, 1, 0};
    const tsr_tensor global = tsr_tensor_contiguous(bits, TSR_BOOL, 2, shape);
    tsr_mesh *mesh;
    tsr_dtensor *condition, *x, *y, *out, *dx, *dy, *half, *dhalf, *narrow, *back;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_distribute(&global, mesh, "S(1)", &condition));
    TSR_TRY(make_matrix(mesh, "S(1)", &x));
    TSR_TRY(tsr_scale(x, -1, &y));
    TSR_TRY(tsr_scale_into(x, -1, y));
    TSR_TRY(tsr_where(condition, x, y, &out));
    TSR_TRY(tsr_where_into(condition, x, y, out));
    TSR_TRY(expect_values("where", out, "S(1)", 6, (const float[]){1, -2, 3, -4, 5, -6}));
    TSR_TRY(tsr_where_backward(condition, x, y, x, &dx, &dy));
    TSR_TRY(expect_values("where's gradient by x", dx, "S(1)", 6, (const float[]){1, 0, 3, 0, 5, 0}));
    TSR_TRY(expect_values("where's gradient by y", dy, "S(1)", 6, (const float[]){0, 2, 0, 4, 0, 6}));
    TSR_TRY(tsr_scale(x, 0.5, &half));
    TSR_TRY(tsr_scale_backward(x, 0.5, x, &dhalf));
    TSR_TRY(expect_values("scale's gradient", dhalf, "S(1)", 6, (const float[]){0.5F, 1, 1.5F, 2, 2.5F, 3}));
    TSR_TRY(tsr_cast(half, TSR_BF16, &narrow));
    TSR_TRY(tsr_cast_into(half, TSR_BF16, narrow));
    TSR_TRY(tsr_cast_backward(half, TSR_BF16, narrow, &back));
    TSR_TRY(expect_values("cast's gradient", back, "S(1)", 6, (const float[]){0.5F, 1, 1.5F, 2, 2.5F, 3}));
    tsr_dtensor *const all[] = {condition, x, y, out, dx, dy, half, dhalf, narrow, back};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void choices_scales_and_casts(void **state)
{
    (void)state;
    layers_run(2, check_choices, NULL);
}

static tsr_status check_softmax(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *logarithm, *dx, *dlogarithm, *refused;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(make_matrix(mesh, "S(0)", &x));
    TSR_TRY(tsr_softmax(x, -1, &y));
    TSR_TRY(tsr_softmax_into(x, 1, y));
    TSR_TRY(tsr_log_softmax(x, 1, &logarithm));
    TSR_TRY(tsr_log_softmax_into(x, 1, logarithm));
    TSR_TRY(tsr_softmax_backward(x, 1, x, &dx));
    TSR_TRY(tsr_log_softmax_backward(x, 1, x, &dlogarithm));
    const float *const in = tsr_dtensor_to_local(x).data;
    double sum = 0, mean = 0, total = 0;
    for (int i = 0; i < 3; i++)
        sum += exp((double)in[i] - (double)in[2]);
    for (int i = 0; i < 3; i++) {
        mean += (double)in[i] * exp((double)in[i] - (double)in[2]) / sum;
        total += (double)in[i];
    }
    for (int i = 0; i < 3; i++) {
        const double wanted = exp((double)in[i] - (double)in[2]) / sum;
        const tsr_dtensor *const results[] = {y, logarithm, dx, dlogarithm};
        const double all[] = {wanted, log(wanted), wanted * ((double)in[i] - mean), (double)in[i] - wanted * total};
        for (int j = 0; j < 4; j++) {
            const double got = (double)((const float *)tsr_dtensor_to_local(results[j]).data)[i];
            TSR_TRY(expect(fabs(got - all[j]) <= 1e-6 * (1 + fabs(all[j])), "softmax", i, got, all[j]));
        }
    }
    TSR_TRY(layer_expect_refusal(tsr_softmax(x, 2, &refused),
                                 "tsr_softmax: dim is 2, but must be below 2, the dims of x, or -1 for the last"));
    tsr_dtensor *const all[] = {x, y, logarithm, dx, dlogarithm};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void softmax_is_along_a_dim(void **state)
{
    (void)state;
    layers_run(2, check_softmax, NULL);
}

/* A gradient of another shape, and one of another dtype. */
static tsr_status refuse_other_shapes(const tsr_mesh *mesh, const tsr_dtensor *x)
{
    const int64_t shape[] = {5, 2}, *const own = tsr_layout_shape(tsr_dtensor_layout(x));
    const double values[64] = {0};
    tsr_dtensor *flat, *wide, *out = NULL;
    char sentence[160];
    const tsr_tensor few = tsr_tensor_contiguous((float *)values, TSR_F32, 2, shape);
    const tsr_tensor all = tsr_tensor_contiguous((double *)values, TSR_F64, 2, own);
    TSR_TRY(tsr_distribute(&few, mesh, "S(0)", &flat));
    TSR_TRY(tsr_distribute(&all, mesh, "S(0)", &wide));
    snprintf(
        sentence, sizeof sentence,
        "tsr_exp_backward: dout is f32 5x2 \"S(0)\", but must be f32 %dx%d in the result's gradient layout, \"S(0)\"",
        (int)own[0], (int)own[1]);
    TSR_TRY(layer_expect_refusal(tsr_exp_backward(x, flat, &out), sentence));
    snprintf(sentence, sizeof sentence,
             "tsr_exp_backward: dout is f64 %dx%d \"S(0)\", but must be f32 %dx%d in the result's gradient layout, "
             "\"S(0)\"",
             (int)own[0], (int)own[1], (int)own[0], (int)own[1]);
    TSR_TRY(layer_expect_refusal(tsr_exp_backward(x, wide, &out), sentence));
    tsr_dtensor_destroy(wide);
    tsr_dtensor_destroy(flat);
    return TSR_OK;
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const int64_t column = 2;
    tsr_mesh *mesh;
    tsr_dtensor *cut, *terms, *out = NULL, *wrong;
    const tsr_op *op = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(make_matrix(mesh, "S(0)", &cut));
    TSR_TRY(make_matrix(mesh, "P", &terms));
    TSR_TRY(make_matrix(mesh, "R", &wrong));
    TSR_TRY(layer_expect_refusal(
        tsr_add(wrong, terms, &out),
        "tsr_add: y is Partial(sum) on mesh dim tp and x is not, so x would count once for each rank; "
        "redistribute y from \"P\" to \"R\""));
    TSR_TRY(layer_expect_refusal(
        tsr_mul(cut, wrong, &out),
        "tsr_mul: mesh dim tp must cut dim 0 of x and dim 0 of y alike; redistribute y from \"R\" to \"S(0)\""));
    TSR_TRY(layer_expect_refusal(
        tsr_exp(terms, &out),
        "tsr_exp: x is Partial(sum) on mesh dim tp, which exp does not pass on: its terms must be reduced "
        "first; redistribute x from \"P\" to \"R\""));
    TSR_TRY(layer_expect_refusal(tsr_exp(NULL, &out), "tsr_exp: x is NULL"));
    TSR_TRY(layer_expect_refusal(tsr_exp(cut, NULL), "tsr_exp: out is NULL"));
    TSR_TRY(layer_expect_refusal(
        tsr_exp_into(cut, wrong),
        "tsr_exp_into: out is f32 as \"R\" of 2 dims, but the result is f32 as \"S(0)\" of 2 dims, with the shape "
        "that the operands give; make it by tsr_op_propagate() and tsr_dtensor_create()"));
    TSR_TRY(layer_expect_refusal(tsr_sum(cut, 1, &column, 0, &out),
                                 "tsr_sum: dims are 2, but they must differ and be below 2, the dims of the tensor"));
    TSR_TRY(
        layer_expect_refusal(tsr_exp_backward(cut, wrong, &out),
                             "tsr_exp_backward: dout is \"R\", but must be in the result's gradient layout, \"S(0)\""));
    TSR_TRY(refuse_other_shapes(mesh, cut));
    TSR_TRY(tsr_op_find(NULL, "gelu", &op));
    const tsr_attribute word = tsr_attribute_word("approximate", "sigmoid"),
                        number = tsr_attribute_int("approximate", 1), other = tsr_attribute_float("beta", 1);
    TSR_TRY(layer_expect_refusal(tsr_op_call(op, 1, &word, (const tsr_dtensor *const[]){cut}, &out),
                                 "gelu: attribute approximate is \"sigmoid\", but must be one of none|tanh"));
    TSR_TRY(layer_expect_refusal(tsr_op_call(op, 1, &number, (const tsr_dtensor *const[]){cut}, &out),
                                 "gelu: attribute approximate must be a word"));
    TSR_TRY(layer_expect_refusal(tsr_op_call(op, 1, &other, (const tsr_dtensor *const[]){cut}, &out),
                                 "gelu: attribute \"beta\": gelu has approximate"));
    TSR_TRY(tsr_op_find(NULL, "cast", &op));
    const tsr_attribute dtype = tsr_attribute_dtype("dtype", TSR_C64);
    TSR_TRY(layer_expect_refusal(tsr_op_call_into(op, 1, &dtype, (const tsr_dtensor *const[]){cut}, &wrong),
                                 "cast: dtype is c64, but cast makes f64, f32, f16, bf16, i64, i32, bool"));
    TSR_TRY(tsr_op_find(NULL, "sum_to", &op));
    const tsr_attribute shape = tsr_attribute_ints("shape", 1, &column);
    TSR_TRY(layer_expect_refusal(tsr_op_call(op, 1, &shape, (const tsr_dtensor *const[]){cut}, &out),
                                 "sum_to: repeating a tensor of the shape does not give the shape of x"));
    TSR_TRY(expect(!out, "an output after errors", 0, 0, 0));
    tsr_dtensor_destroy(cut);
    tsr_dtensor_destroy(terms);
    tsr_dtensor_destroy(wrong);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void errors_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

static tsr_status expect_sentence(tsr_status status, const char *part)
{
    if (status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), part))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "\"%s\" is not in: %s", part, tsr_status_message());
}

/* Lists that are NULL or too long, attributes that are left out or NULL, and meshes that differ. */
static tsr_status give_bad_lists(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {2, 3}, nine[9] = {1, 1, 1, 1, 1, 1, 1, 2, 3};
    const float values[6] = {1, 2, 3, 4, 5, 6};
    const tsr_op *op;
    tsr_mesh *mesh, *wide;
    tsr_dtensor *x, *other, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1x2", &wide));
    const tsr_tensor global = tsr_tensor_contiguous((void *)values, TSR_F32, 2, shape);
    TSR_TRY(tsr_distribute(&global, mesh, "S(0)", &x));
    TSR_TRY(tsr_distribute(&global, wide, "R,S(0)", &other));
    TSR_TRY(expect_sentence(tsr_sum(x, 1, NULL, 0, &out), "the list of attribute dim is NULL, but has 1 numbers"));
    TSR_TRY(expect_sentence(tsr_sum(x, -1, nine, 0, &out), "attribute dim has -1 numbers, but must have 0 to 8"));
    TSR_TRY(expect_sentence(tsr_reshape(x, 9, nine, &out), "attribute shape has 9 numbers"));
    TSR_TRY(tsr_op_find(NULL, "redistribute", &op));
    TSR_TRY(expect_sentence(tsr_op_call(op, 0, NULL, (const tsr_dtensor *const[]){x}, &out), "placements"));
    TSR_TRY(expect_sentence(tsr_op_call(op, 1, NULL, (const tsr_dtensor *const[]){x}, &out), "attributes is NULL"));
    TSR_TRY(expect_sentence(tsr_neg_backward(x, other, &out), "dout is on another mesh than x"));
    TSR_TRY(expect_sentence(tsr_neg_into(x, other), "out is f32"));
    tsr_dtensor_destroy(other);
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(wide);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void bad_lists_are_refused(void **state)
{
    (void)state;
    layers_run(2, give_bad_lists, NULL);
}

static void names_of_other_libraries_lead_to_ours(void **state)
{
    static const struct {
        const char *name, *sentence;
    } names[] = {{"mm", "no op is called \"mm\"; use matmul"},
                 {"bmm", "no op is called \"bmm\"; use matmul"},
                 {"addmm", "no op is called \"addmm\"; use linear, or add of a matmul"},
                 {"cat", "no op is called \"cat\"; use concat"},
                 {"concatenate", "no op is called \"concatenate\"; use concat"},
                 {"sum_to_size", "no op is called \"sum_to_size\"; use sum_to"},
                 {"view", "no op is called \"view\"; use reshape"},
                 {"stack", "no op is called \"stack\"; use tsr_stack()"},
                 {"zzz", "no op is called \"zzz\"; tsr_op_get() lists all"}};
    const tsr_op *op = NULL;
    (void)state;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        assert_int_equal(tsr_op_find(NULL, names[i].name, &op), TSR_ERROR_ARGUMENT);
        assert_null(op);
        assert_string_equal(tsr_status_message(), names[i].sentence);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(bad_lists_are_refused),
        cmocka_unit_test(elements_are_those_of_libm),
        cmocka_unit_test(gelu_has_two_forms),
        cmocka_unit_test(sums_over_cut_dims_are_partial),
        cmocka_unit_test(choices_scales_and_casts),
        cmocka_unit_test(softmax_is_along_a_dim),
        cmocka_unit_test(names_of_other_libraries_lead_to_ours),
        cmocka_unit_test(errors_say_what_would_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
