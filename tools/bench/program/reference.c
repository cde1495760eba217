#include "bench/program/reference.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Memory of `count` numbers, which the caller frees; NULL: there is none. */
static double *make_numbers(int64_t count)
{
    return calloc((size_t)count + 1, sizeof(double));
}

static tsr_status lack(void)
{
    return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for the reference");
}

/* A token's row of x. */
static void read_row(const model_sizes *s, int64_t sequence, int64_t token, double *row)
{
    for (int64_t i = 0; i < s->hidden; i++)
        row[i] = model_value(s, MODEL_X, (sequence * s->tokens + token) * s->hidden + i);
}

/* y = w x, for a weight that is stored whole. */
static void multiply(const double *w, int64_t rows, int64_t columns, const double *x, double *y)
{
    for (int64_t i = 0; i < rows; i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += w[i * columns + j] * x[j];
        y[i] = sum;
    }
}

/* multiply(), for one vector alone. */
static void multiply_once(const model_sizes *s, int weight, const double *x, double *y)
{
    const int64_t columns = model_columns(s, weight);
    for (int64_t i = 0; i < model_rows(s, weight); i++) {
        double sum = 0;
        for (int64_t j = 0; j < columns; j++)
            sum += model_value(s, weight, i * columns + j) * x[j];
        y[i] = sum;
    }
}

static void normalize(const model_sizes *s, int weight, const double *x, double *y)
{
    double squares = 0;
    for (int64_t i = 0; i < s->hidden; i++)
        squares += x[i] * x[i];
    const double factor = 1 / sqrt(squares / (double)s->hidden + MODEL_EPSILON);
    for (int64_t i = 0; i < s->hidden; i++)
        y[i] = x[i] * factor * model_value(s, weight, i);
}

static tsr_status compute_mlp(const model_sizes *s, const double *x, double *y)
{
    double *const gate = make_numbers(s->intermediate), *const up = make_numbers(s->intermediate);
    if (gate && up) {
        multiply_once(s, MODEL_GATE, x, gate);
        multiply_once(s, MODEL_UP, x, up);
        for (int64_t i = 0; i < s->intermediate; i++)
            gate[i] = gate[i] / (1 + exp(-gate[i])) * up[i];
        multiply_once(s, MODEL_DOWN, gate, y);
    }
    const tsr_status status = gate && up ? TSR_OK : lack();
    free(gate);
    free(up);
    return status;
}

tsr_status reference_mlp(const model_sizes *sizes, int64_t sequence, double *row)
{
    double *const x = make_numbers(sizes->hidden);
    if (!x)
        return lack();
    read_row(sizes, sequence, sizes->tokens - 1, x);
    const tsr_status status = compute_mlp(sizes, x, row);
    free(x);
    return status;
}

/* Rotates the halves of a head. */
static void rotate(double *head, int64_t dim, int64_t position)
{
    for (int64_t i = 0; i < dim / 2; i++) {
        const double angle = (double)position * pow(MODEL_ROPE_BASE, -2.0 * (double)i / (double)dim);
        const double a = head[i], b = head[i + dim / 2];
        head[i] = a * cos(angle) - b * sin(angle);
        head[i + dim / 2] = b * cos(angle) + a * sin(angle);
    }
}

/* What attention takes: keys and values of all tokens, queries of the last. */
typedef struct attended {
    double *k, *v, *q, *scores, *weight, *x, *normed;
} attended;

static bool make_attended(const model_sizes *s, attended *a)
{
    const int64_t wide = s->kv_heads * (s->hidden / s->heads);
    *a = (attended){make_numbers(s->tokens * wide), make_numbers(s->tokens * wide), make_numbers(s->hidden),
                    make_numbers(s->tokens),        make_numbers(wide * s->hidden), make_numbers(s->hidden),
                    make_numbers(s->hidden)};
    return a->k && a->v && a->q && a->scores && a->weight && a->x && a->normed;
}

static void finish_attended(attended *a)
{
    double *const memory[] = {a->k, a->v, a->q, a->scores, a->weight, a->x, a->normed};
    for (size_t i = 0; i < sizeof memory / sizeof memory[0]; i++)
        free(memory[i]);
}

/* Keys, or values, of all tokens. */
static void project(const model_sizes *s, int64_t sequence, int weight, attended *a, double *out)
{
    const int64_t dim = s->hidden / s->heads, wide = s->kv_heads * dim;
    for (int64_t i = 0; i < wide * s->hidden; i++)
        a->weight[i] = model_value(s, weight, i);
    for (int64_t t = 0; t < s->tokens; t++) {
        read_row(s, sequence, t, a->x);
        normalize(s, MODEL_NORM, a->x, a->normed);
        multiply(a->weight, wide, s->hidden, a->normed, out + t * wide);
        for (int64_t h = 0; h < s->kv_heads && weight == MODEL_WK; h++)
            rotate(out + t * wide + h * dim, dim, t);
    }
}

/* One head's mix of values, in place of its query. */
static void attend(const model_sizes *s, int64_t head, attended *a)
{
    const int64_t dim = s->hidden / s->heads, wide = s->kv_heads * dim, group = s->heads / s->kv_heads;
    const double *const keys = a->k + head / group * dim, *const values = a->v + head / group * dim;
    double *const q = a->q + head * dim, most = -INFINITY, sum = 0;
    for (int64_t t = 0; t < s->tokens; t++) {
        a->scores[t] = 0;
        for (int64_t i = 0; i < dim; i++)
            a->scores[t] += q[i] * keys[t * wide + i] / sqrt((double)dim);
        most = fmax(most, a->scores[t]);
    }
    for (int64_t t = 0; t < s->tokens; t++)
        sum += a->scores[t] = exp(a->scores[t] - most);
    for (int64_t i = 0; i < dim; i++) {
        q[i] = 0;
        for (int64_t t = 0; t < s->tokens; t++)
            q[i] += a->scores[t] / sum * values[t * wide + i];
    }
}

static tsr_status compute_block(const model_sizes *s, int64_t sequence, attended *a, double *row)
{
    const int64_t dim = s->hidden / s->heads;
    project(s, sequence, MODEL_WK, a, a->k);
    project(s, sequence, MODEL_WV, a, a->v);
    /* The last token's rows are those of x and `normed` now. */
    multiply_once(s, MODEL_WQ, a->normed, a->q);
    for (int64_t h = 0; h < s->heads; h++) {
        rotate(a->q + h * dim, dim, s->tokens - 1);
        attend(s, h, a);
    }
    multiply_once(s, MODEL_WO, a->q, row);
    for (int64_t i = 0; i < s->hidden; i++)
        a->x[i] += row[i];
    normalize(s, MODEL_MLP_NORM, a->x, a->normed);
    TSR_TRY(compute_mlp(s, a->normed, row));
    for (int64_t i = 0; i < s->hidden; i++)
        row[i] += a->x[i];
    return TSR_OK;
}

tsr_status reference_block(const model_sizes *sizes, int64_t sequence, double *row)
{
    attended a;
    const tsr_status status = make_attended(sizes, &a) ? compute_block(sizes, sequence, &a, row) : lack();
    finish_attended(&a);
    return status;
}
