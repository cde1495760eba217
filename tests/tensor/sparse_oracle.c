#include "sparse_oracle.h"

#include "reference.h"

#include <math.h>
#include <string.h>

double dense_load(tsr_dtype dtype, const void *from)
{
    double wide;
    memcpy(&wide, from, dtype == TSR_F64 ? sizeof wide : 0);
    return dtype == TSR_F64 ? wide : reference_load(dtype, from);
}

void dense_store(tsr_dtype dtype, double value, void *to)
{
    if (dtype == TSR_F64)
        memcpy(to, &value, sizeof value);
    else
        reference_store(dtype, value, to);
}

double dense_number(unsigned salt, int64_t i)
{
    unsigned x = salt * 2654435761U ^ ((unsigned)i + 1) * 2246822519U;
    x ^= x >> 15;
    x *= 3266489917U;
    x ^= x >> 13;
    return ((double)(x % 65) - 32) / 16;
}

/* The result of one operation: f64 for tables of f64, else f32. Doubles hold products and sums of
 * two f32 so well that rounding twice changes nothing. */
static double r(const dense_table *d, double x)
{
    return d->dtype == TSR_F64 ? x : (double)(float)x;
}

void dense_begin(dense_table *d)
{
    const bool sums = d->options.kind == TSR_SPARSE_ADAGRAD || d->options.kind == TSR_SPARSE_ROWWISE_ADAGRAD;
    for (int i = 0; i < DENSE_ELEMENTS; i++) {
        d->states[0][i] = sums ? r(d, d->options.initial_accumulator) : 0;
        d->states[1][i] = d->gradient[i] = 0;
    }
    memset(d->steps, 0, sizeof d->steps);
    memset(d->named, 0, sizeof d->named);
}

void dense_bring(dense_table *d, int64_t id, const double *row)
{
    double *const sum = d->gradient + id * d->width;
    for (int64_t i = 0; i < d->width; i++)
        sum[i] = d->named[id] == 0 ? row[i] : r(d, sum[i] + row[i]);
    d->named[id]++;
}

static double root_of(const dense_table *d, double x)
{
    const double epsilon = r(d, d->options.epsilon);
    return d->options.epsilon_in_root ? r(d, sqrt(r(d, x + epsilon))) : r(d, r(d, sqrt(x)) + epsilon);
}

/* Squares are added in eight sums by turns, and these in halves. */
static double mean_of_squares(const dense_table *d, const double *g)
{
    double sums[8] = {0};
    for (int64_t i = 0; i < d->width; i++)
        sums[i % 8] = r(d, sums[i % 8] + r(d, g[i] * g[i]));
    for (int half = 4; half > 0; half /= 2)
        for (int i = 0; i < half; i++)
            sums[i] = r(d, sums[i] + sums[i + half]);
    return d->width == 0 ? 0 : r(d, sums[0] / (double)d->width);
}

static double sgd(const dense_table *d, double w, double g, double *state)
{
    if (d->options.momentum > 0)
        g = *state = r(d, r(d, r(d, d->options.momentum) * *state) + g);
    return r(d, w - r(d, r(d, d->options.learning_rate) * g));
}

static double adagrad(const dense_table *d, double w, double g, double sum)
{
    return r(d, w - r(d, r(d, d->options.learning_rate) * r(d, g / root_of(d, sum))));
}

static double adam(const dense_table *d, double w, double g, double *mean, double *square, int64_t step)
{
    const tsr_sparse_options *const o = &d->options;
    const double by1 = 1 - pow(o->beta1, (double)step), by2 = 1 - pow(o->beta2, (double)step);
    const double new1 = r(d, 1 - o->beta1), new2 = r(d, 1 - o->beta2);
    if (o->steps == TSR_SPARSE_STEPS_ROW) {
        *mean = r(d, r(d, r(d, o->beta1) * *mean) + r(d, new1 * g));
        *square = r(d, r(d, r(d, o->beta2) * *square) + r(d, new2 * r(d, g * g)));
        const double up = r(d, r(d, o->learning_rate) * r(d, *mean / r(d, by1)));
        return r(d, w - r(d, up / root_of(d, r(d, *square / r(d, by2)))));
    }
    *mean = r(d, *mean + r(d, r(d, g - *mean) * new1));
    *square = r(d, *square + r(d, r(d, r(d, g * g) - *square) * new2));
    const double rate = r(d, o->learning_rate * sqrt(by2) / by1);
    return r(d, w - r(d, rate * r(d, *mean / root_of(d, *square))));
}

static void step_row(dense_table *d, int64_t row)
{
    double *const w = d->table + row * d->width, *const g = d->gradient + row * d->width;
    double *const a = d->states[0] + row * d->width, *const b = d->states[1] + row * d->width;
    for (int64_t i = 0; i < d->width; i++) {
        if (d->named[row] > 1 && d->options.duplicates == TSR_SPARSE_DUPLICATES_MEAN)
            g[i] = r(d, g[i] / (double)d->named[row]);
        if (d->options.weight_decay > 0)
            g[i] = r(d, g[i] + r(d, r(d, d->options.weight_decay) * w[i]));
    }
    if (d->options.kind == TSR_SPARSE_ROWWISE_ADAGRAD)
        d->states[0][row] = r(d, d->states[0][row] + mean_of_squares(d, g));
    for (int64_t i = 0; i < d->width; i++) {
        double to;
        if (d->options.kind == TSR_SPARSE_SGD)
            to = sgd(d, w[i], g[i], &a[i]);
        else if (d->options.kind == TSR_SPARSE_ROWWISE_ADAGRAD)
            to = adagrad(d, w[i], g[i], d->states[0][row]);
        else if (d->options.kind == TSR_SPARSE_ADAM)
            to = adam(d, w[i], g[i], &a[i], &b[i], d->steps[row]);
        else {
            a[i] = r(d, a[i] + r(d, g[i] * g[i]));
            to = adagrad(d, w[i], g[i], a[i]);
        }
        unsigned char rounded[16];
        dense_store(d->dtype, to, rounded);
        w[i] = dense_load(d->dtype, rounded);
    }
}

void dense_step(dense_table *d)
{
    const bool global = d->options.steps == TSR_SPARSE_STEPS_GLOBAL;
    for (int64_t row = 0; row < d->rows; row++) {
        const bool all =
            global && d->options.kind == TSR_SPARSE_SGD && (d->options.momentum > 0 || d->options.weight_decay > 0);
        d->steps[row] += global || d->named[row] > 0;
        if (d->named[row] > 0 || all)
            step_row(d, row);
    }
    memset(d->gradient, 0, sizeof d->gradient);
    memset(d->named, 0, sizeof d->named);
}
