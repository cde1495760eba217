#include "ops/kernels/attention/rope.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/attention/rope_kernels.h"
#include "ops/kernels/pointwise.h"

#include <math.h>
#include <stdbool.h>

#define TWO_PI 6.28318530717958647693

static const tsr_rope_kernels *const sets[] = TSR_KERNEL_SETS(tsr_rope_kernels);

static const tsr_rope_kernels *find_kernels(const char *name)
{
    return sets[tsr_kernel_set(name)];
}

typedef struct rope {
    const tsr_kernel_call *call;
    const tsr_rope_kernels *kernels;
    const tsr_pointwise_kernels *moves;
    const tsr_tensor *x, *positions, *out;
    tsr_dtype computed;
    int64_t bytes, half;
    double *frequencies, *cosines, *sines; /* `half` each */
    double fastest;                        /* the highest frequency */
    void *row;                             /* a head of a token */
} rope;

/*
 * Llama 3.1 extends the context by slowing down the pairs that rotate slowly: those that turn less
 * than low_freq_factor times within the original length are slowed by `factor`, those that turn
 * more than high_freq_factor times are not, and those between get a blend. (Source:
 * models/llama3_1/api/model.py, apply_scaling, in github.com/meta-llama/llama-models.) Without an
 * original length all are slowed.
 */
static double slow_down(const tsr_attribute *a, double frequency)
{
    const double factor = a[TSR_ROPE_FACTOR].number, low = a[TSR_ROPE_LOW].number, high = a[TSR_ROPE_HIGH].number;
    const double turns = (double)a[TSR_ROPE_ORIGINAL].integer * frequency / TWO_PI;
    if (a[TSR_ROPE_ORIGINAL].integer == 0 || turns < low)
        return frequency / factor;
    if (turns > high)
        return frequency;
    const double blend = (turns - low) / (high - low);
    return (1 - blend) * frequency / factor + blend * frequency;
}

static void set_frequencies(rope *r)
{
    const tsr_attribute *const a = r->call->attributes;
    for (int64_t i = 0; i < r->half; i++) {
        r->frequencies[i] = slow_down(a, pow(a[TSR_ROPE_BASE].number, -(double)i / (double)r->half));
        r->fastest = r->frequencies[i] > r->fastest ? r->frequencies[i] : r->fastest;
    }
}

/* Sines and cosines of a token; of the negative angle for the gradient. */
static void turn_token(const rope *r, int64_t position)
{
    const bool in_loop = fabs((double)position * r->fastest) < TSR_ROPE_MOST_ANGLE;
    if (in_loop)
        r->kernels->turn((double)position, r->frequencies, r->half, r->cosines, r->sines);
    for (int64_t i = 0; i < r->half; i++) {
        if (!in_loop) {
            r->cosines[i] = cos((double)position * r->frequencies[i]);
            r->sines[i] = sin((double)position * r->frequencies[i]);
        }
        r->sines[i] = r->call->code ? -r->sines[i] : r->sines[i];
    }
}

/* Rotates the heads of a token, the first of which is at the two addresses. */
static void rotate_token(const rope *r, const char *from, char *to)
{
    const int heads = r->x->ndim - 2, dim = heads + 1;
    for (int64_t head = 0; head < r->x->shape[heads]; head++) {
        r->moves->gather[r->x->dtype](from + head * r->x->strides[heads] * r->bytes, r->row, 2 * r->half,
                                      r->x->strides[dim]);
        r->kernels->rotate[r->computed](r->row, r->half, r->cosines, r->sines, r->row);
        r->moves->scatter[r->x->dtype](r->row, to + head * r->out->strides[heads] * r->bytes, 2 * r->half,
                                       r->out->strides[dim]);
    }
}

static int64_t read_position(const rope *r, int64_t offset)
{
    return r->positions->dtype == TSR_I64 ? ((const int64_t *)r->positions->data)[offset]
                                          : ((const int32_t *)r->positions->data)[offset];
}

static void rotate_all(const rope *r)
{
    const int leading = r->x->ndim - 2;
    int64_t count = 1;
    for (int dim = 0; dim < leading; dim++)
        count *= r->out->shape[dim];
    for (int64_t token = 0; token < count; token++) {
        int64_t left = token, from = 0, to = 0, at = 0;
        for (int dim = leading - 1; dim >= 0; dim--) {
            const int64_t index = left % r->out->shape[dim];
            const int own = dim - (leading - r->positions->ndim);
            left /= r->out->shape[dim];
            from += r->x->shape[dim] > 1 ? index * r->x->strides[dim] : 0;
            to += index * r->out->strides[dim];
            at += own >= 0 && r->positions->shape[own] > 1 ? index * r->positions->strides[own] : 0;
        }
        turn_token(r, read_position(r, at));
        rotate_token(r, (const char *)r->x->data + from * r->bytes, (char *)r->out->data + to * r->bytes);
    }
}

static rope begin_rope(const tsr_kernel_call *call)
{
    const tsr_tensor *const x = &call->inputs[0];
    return (rope){.call = call,
                  .kernels = find_kernels(call->kernels),
                  .moves = tsr_pointwise_kernels_for(call->kernels),
                  .x = x,
                  .positions = &call->inputs[1],
                  .out = &call->outputs[0],
                  .computed = tsr_pointwise_computes_in(x->dtype),
                  .bytes = (int64_t)tsr_dtype_bytes(x->dtype),
                  .half = x->shape[x->ndim - 1] / 2};
}

tsr_status tsr_rope_run(const tsr_kernel_call *call)
{
    rope r = begin_rope(call);
    if (r.half == 0)
        return TSR_OK;
    r.frequencies = call->workspace;
    r.cosines = r.frequencies + r.half;
    r.sines = r.cosines + r.half;
    r.row = r.sines + r.half;
    set_frequencies(&r);
    rotate_all(&r);
    return TSR_OK;
}

int64_t tsr_rope_workspace(const tsr_kernel_call *call)
{
    return begin_rope(call).half * 5 * (int64_t)sizeof(double);
}
