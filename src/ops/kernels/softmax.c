#include "ops/kernels/softmax.h"

#include "ops/kernels/pointwise.h"

#include <math.h>
#include <stdbool.h>
#include <string.h>

#define CHUNK 512

/* A row along the dim: its first element, and how far apart its elements are. */
typedef struct line {
    char *at;
    int64_t stride;
} line;

typedef struct softmax {
    const tsr_pointwise_kernels *kernels;
    tsr_dtype memory, computed;
    int64_t bytes, length;
    int code;
} softmax;

int tsr_softmax_dim(const tsr_attribute *dim, int ndim)
{
    const int64_t named = dim->integer == -1 ? ndim - 1 : dim->integer;
    return named >= 0 && named < ndim ? (int)named : -1;
}

static int64_t chunk_length(const softmax *s, int64_t done)
{
    return s->length - done < CHUNK ? s->length - done : CHUNK;
}

/* Reads n elements from element `done` on as f64. */
static void read_chunk(const softmax *s, const line *row, int64_t done, int64_t n, double *to)
{
    _Alignas(64) char array[CHUNK * sizeof(double)];
    s->kernels->gather[s->memory](row->at + done * row->stride * s->bytes, array, n, row->stride);
    s->kernels->convert[s->computed][TSR_F64]((const void *const[]){array, NULL, NULL}, to, n, 0);
}

static void write_chunk(const softmax *s, const line *row, int64_t done, int64_t n, const double *from)
{
    _Alignas(64) char array[CHUNK * sizeof(double)];
    s->kernels->convert[TSR_F64][s->computed]((const void *const[]){from, NULL, NULL}, array, n, 0);
    s->kernels->scatter[s->memory](array, row->at + done * row->stride * s->bytes, n, row->stride);
}

static void exponentiate(const softmax *s, double *values, int64_t n)
{
    s->kernels->loops[TSR_POINTWISE_EXP][TSR_F64]((const void *const[]){values, NULL, NULL}, values, n, 0);
}

static double fold(const double *lanes)
{
    double sum = lanes[0];
    for (int i = 1; i < TSR_POINTWISE_LANES; i++)
        sum += lanes[i];
    return sum;
}

/* The largest element of a row; NaN if there is one. */
static double find_largest(const softmax *s, const line *x)
{
    double values[CHUNK], largest = -INFINITY;
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = chunk_length(s, done);
        read_chunk(s, x, done, n, values);
        for (int64_t i = 0; i < n; i++)
            largest = values[i] > largest || values[i] != values[i] ? values[i] : largest;
    }
    return largest;
}

/* Reads x less the largest element. */
static void read_shifted(const softmax *s, const line *x, int64_t done, int64_t n, double largest, double *values)
{
    read_chunk(s, x, done, n, values);
    for (int64_t i = 0; i < n; i++)
        values[i] -= largest;
}

static void run_forward(const softmax *s, const line *x, const line *y)
{
    double values[CHUNK], lanes[TSR_POINTWISE_LANES] = {0};
    const double largest = find_largest(s, x);
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = chunk_length(s, done);
        read_shifted(s, x, done, n, largest, values);
        exponentiate(s, values, n);
        s->kernels->add_lanes[TSR_F64](values, lanes, n);
    }
    double sum = fold(lanes), logarithm;
    s->kernels->loops[TSR_POINTWISE_LOG][TSR_F64]((const void *const[]){&sum, NULL, NULL}, &logarithm, 1, 0);
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = chunk_length(s, done);
        read_shifted(s, x, done, n, largest, values);
        if (s->code == TSR_SOFTMAX)
            exponentiate(s, values, n);
        for (int64_t i = 0; i < n; i++)
            values[i] = s->code == TSR_SOFTMAX ? values[i] / sum : values[i] - logarithm;
        write_chunk(s, y, done, n, values);
    }
}

/* dx = y (d - sum of d y) for softmax, d - e^y (sum of d) for its logarithm. */
static void run_backward(const softmax *s, const line *d, const line *y, const line *dx)
{
    double gradients[CHUNK], results[CHUNK], lanes[TSR_POINTWISE_LANES] = {0};
    const bool plain = s->code == TSR_SOFTMAX_GRADIENT;
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = chunk_length(s, done);
        read_chunk(s, d, done, n, gradients);
        read_chunk(s, y, done, n, results);
        for (int64_t i = 0; i < n; i++)
            gradients[i] *= plain ? results[i] : 1;
        s->kernels->add_lanes[TSR_F64](gradients, lanes, n);
    }
    const double sum = fold(lanes);
    for (int64_t done = 0; done < s->length; done += CHUNK) {
        const int64_t n = chunk_length(s, done);
        read_chunk(s, d, done, n, gradients);
        read_chunk(s, y, done, n, results);
        if (!plain)
            exponentiate(s, results, n);
        for (int64_t i = 0; i < n; i++)
            results[i] = plain ? results[i] * (gradients[i] - sum) : gradients[i] - results[i] * sum;
        write_chunk(s, dx, done, n, results);
    }
}

/* Moves a row to that of the next index in all dims but `dim`; false: there is none. */
static bool advance(const tsr_tensor *const *tensors, int count, int dim, int64_t bytes, int64_t *index, line *rows)
{
    for (int k = tensors[0]->ndim - 1; k >= 0; k--) {
        if (k == dim)
            continue;
        const int64_t size = tensors[0]->shape[k];
        const bool more = ++index[k] < size;
        for (int i = 0; i < count; i++)
            rows[i].at += (more ? 1 : 1 - size) * tensors[i]->strides[k] * bytes;
        if (more)
            return true;
        index[k] = 0;
    }
    return false;
}

tsr_status tsr_softmax_run(const tsr_kernel_call *call)
{
    const tsr_tensor *const out = &call->outputs[0];
    const tsr_tensor *const tensors[] = {&call->inputs[0], call->input_count > 1 ? &call->inputs[1] : out, out};
    const int dim = tsr_softmax_dim(&call->attributes[0], out->ndim), count = call->input_count + 1;
    softmax s = {.kernels = tsr_pointwise_kernels_for(call->kernels), .memory = out->dtype, .code = call->code};
    int64_t index[TSR_MAX_DIMS] = {0};
    line rows[3];
    s.computed = tsr_pointwise_computes_in(out->dtype);
    s.bytes = (int64_t)tsr_dtype_bytes(out->dtype);
    s.length = out->shape[dim];
    for (int k = 0; k < out->ndim; k++) {
        if (out->shape[k] == 0)
            return TSR_OK;
    }
    for (int i = 0; i < count; i++)
        rows[i] = (line){tensors[i]->data, tensors[i]->strides[dim]};
    do {
        if (count == 2)
            run_forward(&s, &rows[0], &rows[1]);
        else
            run_backward(&s, &rows[0], &rows[1], &rows[2]);
    } while (advance(tensors, count, dim, s.bytes, index, rows));
    return TSR_OK;
}
