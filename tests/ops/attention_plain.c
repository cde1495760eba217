#include "attention_plain.h"

#include <tessera/sys/status.h>

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Halves away from zero: test values are no ties. */
static double round_to(double value, tsr_dtype dtype)
{
    int exponent;
    const double mantissa = frexp(value, &exponent);
    return ldexp(round(ldexp(mantissa, element_precision(dtype))), exponent - element_precision(dtype));
}

static void set_shapes(plain *p)
{
    const attention_shape *const s = &p->s;
    const int64_t q[] = {s->heads, s->queries, s->dim}, k[] = {s->kv_heads, s->keys, s->dim};
    const int64_t v[] = {s->kv_heads, s->keys, s->value_dim}, out[] = {s->heads, s->queries, s->value_dim};
    const int64_t *const shapes[] = {q, k, v, out, out, q, k, v};
    for (int t = 0; t < PLAIN_TENSORS; t++) {
        memcpy(p->shapes[t], shapes[t], sizeof q);
        p->counts[t] = shapes[t][0] * shapes[t][1] * shapes[t][2];
        p->values[t] = calloc((size_t)p->counts[t] + 1, sizeof(double));
    }
}

static double *row_of(const plain *p, int tensor, int64_t head, int64_t token)
{
    return p->values[tensor] + (head * p->shapes[tensor][1] + token) * p->shapes[tensor][2];
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += a[i] * b[i];
    return sum;
}

/* What the mask adds to a score. */
static double mask_of(const attention_shape *s, int64_t query, int64_t key)
{
    if (s->mask == BOOL_MASK)
        return (query * 5 + key * 3) % 7 < 4 ? 0 : -INFINITY;
    return s->mask == ADDED_MASK ? (double)((query * 3 + key) % 9 - 4) / 4 : 0;
}

static bool attends(const attention_shape *s, int64_t query, int64_t key)
{
    const int64_t away = query + s->keys - s->queries - key;
    return mask_of(s, query, key) > -INFINITY && !(s->causal && away < 0) &&
           !(s->window && (away >= s->window || -away >= s->window));
}

static double scale_of(const attention_shape *s)
{
    return s->scale != 0 ? s->scale : 1 / sqrt((double)s->dim);
}

/* The weights of a query; all 0 if it attends no key. */
static void weigh(const plain *p, int64_t head, int64_t query, double *weights)
{
    const attention_shape *const s = &p->s;
    const int64_t kv_head = head / (s->heads / s->kv_heads);
    double largest = -INFINITY, sum = 0;
    for (int64_t key = 0; key < s->keys; key++) {
        weights[key] = scale_of(s) * dot(row_of(p, Q, head, query), row_of(p, K, kv_head, key), s->dim);
        weights[key] += mask_of(s, query, key);
        if (attends(s, query, key))
            largest = fmax(largest, weights[key]);
    }
    for (int64_t key = 0; key < s->keys; key++) {
        weights[key] = attends(s, query, key) ? exp(weights[key] - largest) : 0;
        sum += weights[key];
    }
    for (int64_t key = 0; key < s->keys && sum > 0; key++)
        weights[key] /= sum;
}

static void add(double *to, double factor, const double *from, int64_t n)
{
    for (int64_t i = 0; i < n; i++)
        to[i] += factor * from[i];
}

static void differentiate(const plain *p, int64_t head, int64_t query, const double *weights)
{
    const attention_shape *const s = &p->s;
    const int64_t kv_head = head / (s->heads / s->kv_heads);
    const double *const dout = row_of(p, DOUT, head, query);
    const double mean = dot(dout, row_of(p, OUT, head, query), s->value_dim);
    for (int64_t key = 0; key < s->keys; key++) {
        const double slope = dot(dout, row_of(p, V, kv_head, key), s->value_dim);
        const double d = weights[key] * (slope - mean) * scale_of(s);
        add(row_of(p, DQ, head, query), d, row_of(p, K, kv_head, key), s->dim);
        add(row_of(p, DK, kv_head, key), d, row_of(p, Q, head, query), s->dim);
        add(row_of(p, DV, kv_head, key), weights[key], dout, s->value_dim);
    }
}

static void compute(plain *p, bool gradients)
{
    const attention_shape *const s = &p->s;
    double *const weights = calloc((size_t)s->keys + 1, sizeof(double));
    for (int t = OUT; t < (gradients ? PLAIN_TENSORS : OUT + 1); t++)
        memset(p->values[t], 0, (size_t)p->counts[t] * sizeof(double));
    for (int64_t head = 0; head < s->heads; head++) {
        for (int64_t query = 0; query < s->queries; query++) {
            weigh(p, head, query, weights);
            for (int64_t key = 0; key < s->keys; key++)
                add(row_of(p, OUT, head, query), weights[key], row_of(p, V, head / (s->heads / s->kv_heads), key),
                    s->value_dim);
            if (gradients)
                differentiate(p, head, query, weights);
        }
    }
    free(weights);
}

void plain_attend(plain *p)
{
    compute(p, false);
}

void plain_create(const attention_shape *s, tsr_dtype dtype, plain *out)
{
    uint64_t state = 7;
    *out = (plain){.s = *s};
    set_shapes(out);
    for (int t = Q; t <= DOUT; t++) {
        for (int64_t i = 0; i < out->counts[t]; i++) {
            state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
            out->values[t][i] = round_to((double)(int64_t)(state >> 11) * 0x1p-52 - 1, dtype);
        }
    }
    compute(out, true);
}

void plain_destroy(plain *p)
{
    for (int t = 0; t < PLAIN_TENSORS; t++)
        free(p->values[t]);
}

/*
 * With values of at most 1, scores are at most s = |scale| dim. An error of (dim + 4) u s in a
 * score is a relative one in its weight, and counts twice in a quotient of sums; f is the relative
 * error of a weight, and of what is summed with it. A gradient of weights is at most value_dim, and
 * its error at most value_dim^2 u more.
 */
double plain_bound(const plain *p, int tensor, double u, int ranks)
{
    const attention_shape *const s = &p->s;
    const double scale = fabs(scale_of(s)), n = (double)s->dim + (s->mask ? 8 : 4);
    const double f = (2 * n * scale * (double)s->dim + 300 + (double)s->keys / 32 + 2 * ranks) * u;
    const double slope = scale * (double)s->value_dim * (4 * f + 2 * (double)s->value_dim * u);
    const double rows = (double)(s->queries * s->heads);
    return tensor == OUT ? f : tensor == DQ ? slope : tensor == DK ? rows * slope : rows * f;
}

tsr_status plain_distribute(const plain *p, int tensor, tsr_dtype dtype, const tsr_mesh *mesh, const char *placements,
                            tsr_dtensor **out)
{
    char *const data = calloc((size_t)p->counts[tensor] + 1, sizeof(double));
    for (int64_t i = 0; i < p->counts[tensor]; i++)
        element_set(data, dtype, i, p->values[tensor][i]);
    const tsr_tensor global = tsr_tensor_contiguous(data, dtype, 3, p->shapes[tensor]);
    const tsr_status status = tsr_distribute(&global, mesh, placements, out);
    free(data);
    return status;
}

tsr_status plain_mask(const plain *p, tsr_dtype dtype, const tsr_mesh *mesh, const char *placements, tsr_dtensor **out)
{
    const attention_shape *const s = &p->s;
    const int64_t shape[] = {s->queries, s->keys}, count = s->queries * s->keys;
    const tsr_dtype own = s->mask == BOOL_MASK ? TSR_BOOL : dtype;
    *out = NULL;
    if (s->mask == NO_MASK)
        return TSR_OK;
    char *const data = calloc((size_t)count + 1, sizeof(double));
    for (int64_t i = 0; i < count; i++) {
        if (own == TSR_BOOL)
            data[i] = mask_of(s, i / s->keys, i % s->keys) == 0;
        else
            element_set(data, own, i, mask_of(s, i / s->keys, i % s->keys));
    }
    const tsr_tensor global = tsr_tensor_contiguous(data, own, 2, shape);
    const tsr_status status = tsr_distribute(&global, mesh, placements, out);
    free(data);
    return status;
}

tsr_status plain_compare(const plain *p, int tensor, const tsr_dtensor *got, double bound)
{
    static const char *const names[] = {"q", "k", "v", "dout", "out", "dq", "dk", "dv"};
    tsr_dtensor *full;
    TSR_TRY(tsr_full_tensor(got, &full));
    const tsr_tensor local = tsr_dtensor_to_local(full);
    const double u = local.dtype == TSR_F64 || local.dtype == TSR_F32 ? 0 : ldexp(1, -element_precision(local.dtype));
    int64_t count = 0;
    tsr_status status = tsr_tensor_count(&local, &count);
    if (status == TSR_OK && count != p->counts[tensor])
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%s has %lld elements", names[tensor], (long long)count);
    for (int64_t i = 0; i < count && status == TSR_OK; i++) {
        const double wanted = p->values[tensor][i], value = element_get(local.data, local.dtype, i);
        if (!(fabs(value - wanted) <= bound + 2 * u * fabs(wanted) + DBL_MIN))
            status = tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %s is %.17g, not %.17g within %g",
                                    (long long)i, names[tensor], value, wanted, bound);
    }
    tsr_dtensor_destroy(full);
    return status;
}

tsr_attention_options plain_options(const plain *p)
{
    tsr_attention_options options = TSR_ATTENTION_OPTIONS_INIT;
    options.causal = p->s.causal;
    options.window = p->s.window;
    options.scale = p->s.scale;
    return options;
}
