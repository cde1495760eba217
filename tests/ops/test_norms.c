/* Softmax and norms: values against plain loops in f64, with the bounds of the kernels' errors; cut
 * rows, numbers that f32 cannot square, and errors. */
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

enum { ROWS = 6, MOST = 1200 };

/* Half a unit in the last place of f32 near 1, the error of one rounding. */
#define U 0x1p-24

static const double epsilon = 1e-5;

typedef struct trial {
    const char *mesh, *x, *weight; /* placements */
    int64_t length;
    double scale, offset; /* of elements */
} trial;

static const trial trials[] = {
    {"1", "R", "R", MOST, 1, 0},
    {"1", "R", "R", 5, 1, 0},
    {"3", "S(1)", "S(0)", 1000, 1, 0},
    {"4", "S(1)", "S(0)", 2, 1, 0},
    {"2x2", "S(0),S(1)", "R,S(0)", 301, 1, 0},
    {"2x2", "S(1),S(1)", "S(0),S(0)", 7, 1, 0},
    {"3", "S(0)", "R", 130, 1, 0},
    {"3", "S(1;sizes=0,100,33)", "S(0;sizes=0,100,33)", 133, 1, 0},
    {"2", "S(1)", "S(0)", 600, 1, 1e4},
    {"2", "S(1)", "S(0)", 600, 1e25, 0},
    {"2", "S(1)", "S(0)", 600, 1e-25, 0},
};

/* Numbers between -1 and 1 without order. */
static double number(int64_t i)
{
    return (double)((uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) >> 40) * 0x1p-23 - 1;
}

static float element(const trial *t, int64_t i)
{
    return (float)(t->scale * 3 * number(i + 1) + t->offset);
}

static tsr_status make(const tsr_mesh *mesh, const char *placements, int ndim, int64_t rows, int64_t length,
                       const float *values, tsr_dtensor **out)
{
    const int64_t shape[] = {rows, length};
    return support_distribute(mesh, placements, TSR_F32, ndim, shape + 2 - ndim, values, out);
}

typedef struct tensors {
    tsr_mesh *mesh;
    tsr_dtensor *x, *weight, *bias;
    float values[ROWS * MOST], weights[MOST], biases[MOST];
} tensors;

static tsr_status make_tensors(tsr_comm *comm, const trial *t, tensors *all)
{
    for (int64_t i = 0; i < ROWS * t->length; i++)
        all->values[i] = element(t, i);
    for (int64_t i = 0; i < t->length; i++) {
        all->weights[i] = (float)number(7 * i + 3);
        all->biases[i] = (float)number(5 * i + 2);
    }
    TSR_TRY(tsr_mesh_parse(comm, NULL, t->mesh, &all->mesh));
    TSR_TRY(make(all->mesh, t->x, 2, ROWS, t->length, all->values, &all->x));
    TSR_TRY(make(all->mesh, t->weight, 1, 1, t->length, all->weights, &all->weight));
    return make(all->mesh, t->weight, 1, 1, t->length, all->biases, &all->bias);
}

static void destroy_tensors(tensors *all)
{
    tsr_dtensor_destroy(all->x);
    tsr_dtensor_destroy(all->weight);
    tsr_dtensor_destroy(all->bias);
    tsr_mesh_destroy(all->mesh);
}

/* What a row is. */
typedef struct row_sums {
    double largest, exponentials, mean, variance, squares;
} row_sums;

static row_sums sum_row(const float *x, int64_t n)
{
    row_sums s = {-INFINITY, 0, 0, 0, 0};
    for (int64_t i = 0; i < n; i++) {
        s.largest = fmax(s.largest, (double)x[i]);
        s.mean += (double)x[i] / (double)n;
        s.squares += (double)x[i] * (double)x[i] / (double)n;
    }
    for (int64_t i = 0; i < n; i++) {
        s.exponentials += exp((double)x[i] - s.largest);
        s.variance += ((double)x[i] - s.mean) * ((double)x[i] - s.mean) / (double)n;
    }
    return s;
}

/* Collective: compares a result's row with a reference by a bound. */
typedef struct result {
    const char *what;
    tsr_dtensor *whole;
} result;

static tsr_status gather(const char *what, tsr_dtensor *y, result *out)
{
    out->what = what;
    const tsr_status status = tsr_full_tensor(y, &out->whole);
    tsr_dtensor_destroy(y);
    return status;
}

static tsr_status compare(const result *r, int64_t i, double wanted, double bound)
{
    const double got = (double)((const float *)tsr_dtensor_to_local(r->whole).data)[i];
    return support_expect_held(fabs(got - wanted) <= bound, r->what, i, got, wanted);
}

static tsr_status check_softmax(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    static const int64_t last = 1;
    tensors *const all = calloc(1, sizeof *all);
    tsr_dtensor *y;
    result softmax, logarithm, sums;
    TSR_TRY(make_tensors(comm, t, all));
    TSR_TRY(tsr_softmax(all->x, -1, &y));
    TSR_TRY(tsr_softmax_into(all->x, 1, y));
    TSR_TRY(gather("softmax", y, &softmax));
    TSR_TRY(tsr_log_softmax(all->x, 1, &y));
    TSR_TRY(tsr_log_softmax_into(all->x, 1, y));
    TSR_TRY(gather("log_softmax", y, &logarithm));
    TSR_TRY(tsr_logsumexp(all->x, 1, &last, 0, &y));
    TSR_TRY(tsr_logsumexp_into(all->x, 1, &last, 0, y));
    TSR_TRY(gather("logsumexp", y, &sums));
    for (int64_t i = 0; i < ROWS * t->length; i++) {
        const row_sums s = sum_row(all->values + i / t->length * t->length, t->length);
        const double below = (double)all->values[i] - s.largest, wanted = exp(below) / s.exponentials;
        const double log_wanted = below - log(s.exponentials);
        TSR_TRY(compare(&softmax, i, wanted, wanted * U * (10 + fabs(below)) + 0x1p-125));
        TSR_TRY(compare(&logarithm, i, log_wanted, U * (10 + fabs(log_wanted))));
        if (i % t->length == 0) {
            const double sum = s.largest + log(s.exponentials);
            TSR_TRY(compare(&sums, i / t->length, sum, U * (10 + fabs(sum))));
        }
    }
    tsr_dtensor_destroy(softmax.whole);
    tsr_dtensor_destroy(logarithm.whole);
    tsr_dtensor_destroy(sums.whole);
    destroy_tensors(all);
    free(all);
    return TSR_OK;
}

static tsr_status check_norms(tsr_comm *comm, void *arg)
{
    const trial *const t = arg;
    tensors *const all = calloc(1, sizeof *all);
    tsr_dtensor *y;
    result rms, centred, plain;
    TSR_TRY(make_tensors(comm, t, all));
    const double small = epsilon * t->scale * t->scale;
    TSR_TRY(tsr_rms_norm(all->x, all->weight, small, &y));
    TSR_TRY(tsr_rms_norm_into(all->x, all->weight, small, y));
    TSR_TRY(gather("rms_norm", y, &rms));
    TSR_TRY(tsr_layer_norm(all->x, all->weight, all->bias, small, &y));
    TSR_TRY(tsr_layer_norm_into(all->x, all->weight, all->bias, small, y));
    TSR_TRY(gather("layer_norm", y, &centred));
    TSR_TRY(tsr_layer_norm(all->x, NULL, NULL, small, &y));
    TSR_TRY(gather("layer_norm alone", y, &plain));
    for (int64_t i = 0; i < ROWS * t->length; i++) {
        const row_sums s = sum_row(all->values + i / t->length * t->length, t->length);
        const double x = (double)all->values[i], w = (double)all->weights[i % t->length],
                     b = (double)all->biases[i % t->length], r = x / sqrt(s.squares + small) * w;
        const double normal = (x - s.mean) / sqrt(s.variance + small);
        TSR_TRY(compare(&rms, i, r, fabs(r) * 6 * U));
        TSR_TRY(compare(&centred, i, normal * w + b, U * (fabs(w) * (6 + 16 * fabs(normal)) + fabs(normal * w + b))));
        TSR_TRY(compare(&plain, i, normal, U * (6 + 16 * fabs(normal))));
    }
    tsr_dtensor_destroy(rms.whole);
    tsr_dtensor_destroy(centred.whole);
    tsr_dtensor_destroy(plain.whole);
    destroy_tensors(all);
    free(all);
    return TSR_OK;
}

static void values_are_those_of_plain_loops(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof trials / sizeof trials[0]; i++) {
        if (trials[i].scale == 1)
            layers_run(support_count_ranks(trials[i].mesh), check_softmax, (void *)&trials[i]);
        layers_run(support_count_ranks(trials[i].mesh), check_norms, (void *)&trials[i]);
    }
}

static tsr_status check_vectors(tsr_comm *comm, void *arg)
{
    static const double powers[] = {1, 2, (double)INFINITY};
    static const double wanted[][2] = {{7, 9}, {5, 5}, {4, 6}};
    static const float values[] = {3, -4, 0, -1, 2, -6},
                       slopes[][6] = {{1, -1, 0, -1, 1, -1}, {0}, {0, -1, 0, 0, 0, -1}};
    static const int64_t last = 1;
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *dx;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, 2, 3, values, &x));
    for (int p = 0; p < 3; p++) {
        TSR_TRY(tsr_norm(x, powers[p], 1, &last, 1, &y));
        TSR_TRY(tsr_norm_into(x, powers[p], 1, &last, 1, y));
        const float *const got = tsr_dtensor_to_local(y).data;
        TSR_TRY(support_expect_held((double)got[0] == wanted[p][0], "norm", 0, (double)got[0], wanted[p][0]));
        if (p != 1)
            TSR_TRY(support_expect_held((double)got[1] == wanted[p][1], "norm", 1, (double)got[1], wanted[p][1]));
        tsr_dtensor *one, *whole;
        TSR_TRY(make(mesh, "R", 2, 2, 1, (const float[]){1, 1}, &one));
        TSR_TRY(tsr_norm_backward(x, powers[p], 1, &last, 1, one, &dx));
        TSR_TRY(tsr_full_tensor(dx, &whole));
        for (int i = 0; i < 6; i++) {
            const double slope = (double)((const float *)tsr_dtensor_to_local(whole).data)[i];
            const double size = i < 3 ? 5 : sqrt(41);
            const double right =
                p == 1 ? (double)(float)((double)values[i] / (double)(float)size) : (double)slopes[p][i];
            TSR_TRY(support_expect_held(p == 1 ? fabs(slope - right) <= U : slope == right, "the norm's gradient", i,
                                        slope, right));
        }
        tsr_dtensor *const made[] = {y, dx, one, whole};
        for (int i = 0; i < 4; i++)
            tsr_dtensor_destroy(made[i]);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void vectors_have_three_norms(void **state)
{
    (void)state;
    layers_run(2, check_vectors, NULL);
}

/* Rows with what is no number: of which the softmax has none, and the logsumexp is as given. */
static tsr_status check_infinities(tsr_comm *comm, void *arg)
{
    static const int64_t last = 1;
    const float inf = (float)INFINITY, nan = (float)NAN;
    const float values[] = {-inf, -inf, -inf, -inf, 1, inf, 2, -inf, 1, nan, 2, 3, -inf, 0, -inf, -inf};
    const double sums[] = {-INFINITY, INFINITY, NAN, 0};
    tsr_mesh *mesh;
    tsr_dtensor *x, *y, *sum, *largest, *whole;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, tsr_comm_size(comm) == 1 ? "1" : "2", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, 4, 4, values, &x));
    TSR_TRY(tsr_softmax(x, 1, &y));
    TSR_TRY(tsr_logsumexp(x, 1, &last, 0, &sum));
    TSR_TRY(tsr_norm(x, (double)INFINITY, 1, &last, 0, &largest));
    TSR_TRY(tsr_full_tensor(y, &whole));
    for (int i = 0; i < 4; i++) {
        const double got = (double)((const float *)tsr_dtensor_to_local(sum).data)[i];
        const double size = (double)((const float *)tsr_dtensor_to_local(largest).data)[i];
        TSR_TRY(support_expect_held(got == sums[i] || (isnan(got) && isnan(sums[i])), "logsumexp", i, got, sums[i]));
        TSR_TRY(support_expect_held(i == 2 ? isnan(size) : isinf(size), "norm", i, size, INFINITY));
        for (int j = 0; j < 4; j++) {
            const double part = (double)((const float *)tsr_dtensor_to_local(whole).data)[4 * i + j];
            TSR_TRY(support_expect_held(i < 3 ? isnan(part) : part == (j == 1), "softmax", 4 * i + j, part, j == 1));
        }
    }
    tsr_dtensor *const all[] = {x, y, sum, largest, whole};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void infinities_and_nans(void **state)
{
    (void)state;
    layers_run(1, check_infinities, NULL);
    layers_run(2, check_infinities, NULL);
}

/* The exponential's gradient of each row, by its own formula. */
static tsr_status check_exponential_gradients(tsr_comm *comm, void *arg)
{
    static const float values[] = {0, 1, -2, 0.5F, 3}, ones[] = {1, -1, 2, 0, 0.5F};
    static const int64_t dim = 1;
    tsr_mesh *mesh;
    tsr_dtensor *x, *d, *one, *made[3];
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "3", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, 1, 5, values, &x));
    TSR_TRY(make(mesh, "S(1)", 2, 1, 5, ones, &d));
    TSR_TRY(make(mesh, "R", 1, 1, 1, (const float[]){2}, &one));
    TSR_TRY(tsr_softmax_backward(x, 1, d, &made[0]));
    TSR_TRY(tsr_log_softmax_backward(x, 1, d, &made[1]));
    TSR_TRY(tsr_logsumexp_backward(x, 1, &dim, 0, one, &made[2]));
    const row_sums s = sum_row(values, 5);
    double dot = 0, sum = 0;
    for (int i = 0; i < 5; i++) {
        dot += (double)ones[i] * exp((double)values[i] - s.largest) / s.exponentials;
        sum += (double)ones[i];
    }
    for (int k = 0; k < 3; k++) {
        result r;
        TSR_TRY(gather("a gradient of softmax", made[k], &r));
        for (int i = 0; i < 5; i++) {
            const double y = exp((double)values[i] - s.largest) / s.exponentials, g = (double)ones[i];
            const double wanted = k == 0 ? y * (g - dot) : k == 1 ? g - y * sum : 2 * y;
            TSR_TRY(compare(&r, i, wanted, 32 * U));
        }
        tsr_dtensor_destroy(r.whole);
    }
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(d);
    tsr_dtensor_destroy(one);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void gradients_of_exponentials(void **state)
{
    (void)state;
    layers_run(3, check_exponential_gradients, NULL);
}

/* Rows that are strided or narrow have the bits of plain f32 rows. */
static tsr_status check_bits(tsr_comm *comm, void *arg)
{
    enum { LINES = 5, COLUMNS = 300 };
    float values[LINES * COLUMNS], turned[LINES * COLUMNS];
    tsr_mesh *mesh;
    tsr_dtensor *x, *t, *narrow, *wide, *y[6];
    (void)arg;
    for (int64_t i = 0; i < LINES * COLUMNS; i++) {
        values[i] = (float)number(i);
        turned[i % COLUMNS * LINES + i / COLUMNS] = values[i];
    }
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, "R", 2, LINES, COLUMNS, values, &x));
    TSR_TRY(make(mesh, "R", 2, COLUMNS, LINES, turned, &t));
    TSR_TRY(tsr_softmax(x, 1, &y[0]));
    TSR_TRY(tsr_softmax(t, 0, &y[1]));
    TSR_TRY(tsr_cast(x, TSR_BF16, &narrow));
    TSR_TRY(tsr_cast(narrow, TSR_F32, &wide));
    TSR_TRY(tsr_layer_norm(narrow, NULL, NULL, epsilon, &y[2]));
    TSR_TRY(tsr_layer_norm(wide, NULL, NULL, epsilon, &y[3]));
    TSR_TRY(tsr_cast(y[3], TSR_BF16, &y[4]));
    TSR_TRY(tsr_rms_norm_backward(narrow, NULL, epsilon, narrow, &y[5], NULL));
    const float *const a = tsr_dtensor_to_local(y[0]).data, *const b = tsr_dtensor_to_local(y[1]).data;
    const uint16_t *const c = tsr_dtensor_to_local(y[2]).data, *const d = tsr_dtensor_to_local(y[4]).data;
    for (int64_t i = 0; i < LINES * COLUMNS; i++) {
        const float other = b[i % COLUMNS * LINES + i / COLUMNS];
        TSR_TRY(support_expect_held(a[i] == other, "softmax along dim 0", i, (double)other, (double)a[i]));
        TSR_TRY(support_expect_held(c[i] == d[i], "layer_norm of bf16", i, c[i], d[i]));
    }
    tsr_dtensor *const others[] = {x, t, narrow, wide};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(others[i]);
    for (int i = 0; i < 6; i++)
        tsr_dtensor_destroy(y[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void strides_and_widths_change_no_bits(void **state)
{
    (void)state;
    layers_run(1, check_bits, NULL);
}

/* Results of replicas, by rank. */
static float replicas[4][2][ROWS * 9];

static tsr_status keep_replicas(tsr_comm *comm, void *arg)
{
    const trial t = {"2x2", "R,S(1)", "R,S(0)", 9, 1, 0};
    const int rank = tsr_comm_rank(comm);
    tensors *const all = calloc(1, sizeof *all);
    tsr_dtensor *y, *z;
    (void)arg;
    TSR_TRY(make_tensors(comm, &t, all));
    TSR_TRY(tsr_softmax(all->x, 1, &y));
    TSR_TRY(tsr_layer_norm(all->x, all->weight, all->bias, epsilon, &z));
    const tsr_tensor a = tsr_dtensor_to_local(y), b = tsr_dtensor_to_local(z);
    memcpy(replicas[rank][0], a.data, (size_t)(ROWS * a.shape[1]) * sizeof(float));
    memcpy(replicas[rank][1], b.data, (size_t)(ROWS * b.shape[1]) * sizeof(float));
    tsr_dtensor_destroy(y);
    tsr_dtensor_destroy(z);
    destroy_tensors(all);
    free(all);
    return TSR_OK;
}

static void replicas_have_the_same_bits(void **state)
{
    (void)state;
    layers_run(4, keep_replicas, NULL);
    assert_memory_equal(replicas[0], replicas[2], sizeof replicas[0]);
    assert_memory_equal(replicas[1], replicas[3], sizeof replicas[1]);
}

/* Results that are large enough to bypass the cache, of all sets of instructions. */
enum { LARGE = 4096, LONG = 528 };

static tsr_status compute_large(tsr_comm *comm, void *arg)
{
    float *const values = malloc((size_t)LARGE * LONG * sizeof *values), *const out = arg;
    tsr_mesh *mesh;
    tsr_dtensor *x, *y[3];
    for (int64_t i = 0; i < LARGE * LONG; i++)
        values[i] = (float)(4 * number(i));
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    TSR_TRY(make(mesh, "R", 2, LARGE, LONG, values, &x));
    TSR_TRY(tsr_softmax(x, 1, &y[0]));
    TSR_TRY(tsr_rms_norm(x, NULL, epsilon, &y[1]));
    TSR_TRY(tsr_layer_norm(x, NULL, NULL, epsilon, &y[2]));
    for (int i = 0; i < 3; i++) {
        const float *const from = tsr_dtensor_to_local(y[i]).data;
        memcpy(out + i * 2 * LONG, from, LONG * sizeof *out);
        memcpy(out + (i * 2 + 1) * LONG, from + (LARGE - 1) * LONG, LONG * sizeof *out);
        tsr_dtensor_destroy(y[i]);
    }
    tsr_dtensor_destroy(x);
    tsr_mesh_destroy(mesh);
    free(values);
    return TSR_OK;
}

static void large_results_have_the_same_bits(void **state)
{
    static float results[3][6 * LONG];
    (void)state;
    layers_run_sets(compute_large, results, sizeof results[0]);
    double sum = 0;
    for (int i = 0; i < LONG; i++)
        sum += (double)results[0][LONG + i];
    assert_true(fabs(sum - 1) < 1e-6);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    static const float values[12] = {0};
    static const int64_t twice[] = {1, 1};
    tsr_mesh *mesh;
    tsr_dtensor *x, *short_weight, *whole, *wide, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, 3, 4, values, &x));
    TSR_TRY(make(mesh, "S(0)", 1, 1, 3, values, &short_weight));
    TSR_TRY(make(mesh, "R", 1, 1, 4, values, &whole));
    TSR_TRY(tsr_cast(whole, TSR_F64, &wide));
    TSR_TRY(
        layer_expect_refusal(tsr_rms_norm(x, short_weight, 0, &out),
                             "tsr_rms_norm: dim 0 of weight has size 3, but dim 1 of x has 4; \"... h , h -> ... h | h "
                             "exchange | linear {1}\" wants them equal"));
    TSR_TRY(
        layer_expect_refusal(tsr_rms_norm(x, whole, 0, &out),
                             "tsr_rms_norm: mesh dim tp must cut dim 1 of x and dim 0 of weight alike; redistribute "
                             "weight from \"R\" to \"S(0)\""));
    TSR_TRY(layer_expect_refusal(tsr_layer_norm(x, NULL, NULL, -1, &out),
                                 "tsr_layer_norm: epsilon is -1, but must be 0 or a positive number"));
    TSR_TRY(layer_expect_refusal(tsr_layer_norm(x, wide, NULL, 0, &out),
                                 "tsr_layer_norm: x is f32 but weight is f64; both must have one dtype, cast one"));
    TSR_TRY(
        layer_expect_refusal(tsr_norm(x, 3, 0, NULL, 0, &out), "tsr_norm: p is 3, but norm has p 1, 2 and infinity"));
    TSR_TRY(layer_expect_refusal(
        tsr_logsumexp(x, 2, twice, 0, &out),
        "tsr_logsumexp: dims are 1,1, but they must differ and be below 2, the dims of the tensor"));
    TSR_TRY(layer_expect_refusal(tsr_softmax(x, 2, &out),
                                 "tsr_softmax: dim is 2, but must be below 2, the dims of x, or -1 for the last"));
    tsr_dtensor *const all[] = {x, short_weight, whole, wide};
    for (int i = 0; i < 4; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void errors_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

/* Rows without elements have results without elements, and the identity as sums. */
static tsr_status check_empty(tsr_comm *comm, void *arg)
{
    static const int64_t last = 1;
    tsr_mesh *mesh;
    tsr_dtensor *x, *weight, *y, *dx, *dweight, *sum, *norm;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "S(1)", 2, 3, 0, (const float[]){0}, &x));
    TSR_TRY(make(mesh, "S(0)", 1, 1, 0, (const float[]){0}, &weight));
    TSR_TRY(tsr_layer_norm(x, weight, weight, epsilon, &y));
    TSR_TRY(tsr_rms_norm_backward(x, weight, epsilon, y, &dx, &dweight));
    TSR_TRY(tsr_logsumexp(x, 1, &last, 0, &sum));
    TSR_TRY(tsr_norm(x, 2, 1, &last, 0, &norm));
    const double a = (double)((const float *)tsr_dtensor_to_local(sum).data)[2];
    const double b = (double)((const float *)tsr_dtensor_to_local(norm).data)[2];
    TSR_TRY(support_expect_held(a == -INFINITY, "logsumexp", 2, a, -INFINITY));
    TSR_TRY(support_expect_held(b == 0, "norm", 2, b, 0));
    tsr_dtensor *const all[] = {x, weight, y, dx, dweight, sum, norm};
    for (int i = 0; i < 7; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void rows_may_be_empty(void **state)
{
    (void)state;
    layers_run(2, check_empty, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(values_are_those_of_plain_loops),
        cmocka_unit_test(vectors_have_three_norms),
        cmocka_unit_test(infinities_and_nans),
        cmocka_unit_test(gradients_of_exponentials),
        cmocka_unit_test(replicas_have_the_same_bits),
        cmocka_unit_test(large_results_have_the_same_bits),
        cmocka_unit_test(errors_say_what_would_work),
        cmocka_unit_test(rows_may_be_empty),
        cmocka_unit_test(strides_and_widths_change_no_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
