#include "ops/kernels/attention/rope.h"

#include "ops/kernel_sets.h"
#include "ops/kernels/attention/frequencies.h"
#include "ops/kernels/attention/rope_kernels.h"
#include "ops/kernels/pointwise.h"

#include <math.h>

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
    tsr_frequencies frequencies;
    double *cosines, *sines; /* `half` each */
    bool direct;             /* loops can read and write heads where they lie */
    void *row;               /* a head of a token */
} rope;

/* Sines and cosines of a token; of the negative angle for the gradient. */
static void turn_token(const rope *r, int64_t position)
{
    const bool in_loop = fabs((double)position * r->frequencies.fastest) < TSR_ROPE_MOST_ANGLE;
    if (in_loop)
        r->kernels->turn((double)position, r->frequencies.of, r->half, r->cosines, r->sines);
    for (int64_t i = 0; i < r->half && !in_loop; i++) {
        r->cosines[i] = cos((double)position * r->frequencies.of[i]);
        r->sines[i] = sin((double)position * r->frequencies.of[i]);
    }
    for (int64_t i = 0; i < r->half && r->call->code; i++)
        r->sines[i] = -r->sines[i];
}

/* Rotates the heads of a token, the first of which is at the two addresses. */
static void rotate_token(const rope *r, const char *from, char *to)
{
    const int heads = r->x->ndim - 2, dim = heads + 1;
    const int64_t from_step = r->x->strides[heads] * r->bytes, to_step = r->out->strides[heads] * r->bytes;
    for (int64_t head = 0; head < r->x->shape[heads]; head++, from += from_step, to += to_step) {
        if (r->direct) {
            r->kernels->rotate[r->computed](from, r->half, r->cosines, r->sines, to);
            continue;
        }
        r->moves->gather[r->x->dtype](from, r->row, 2 * r->half, r->x->strides[dim]);
        r->kernels->rotate[r->computed](r->row, r->half, r->cosines, r->sines, r->row);
        r->moves->scatter[r->x->dtype](r->row, to, 2 * r->half, r->out->strides[dim]);
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

static int64_t half_of(const tsr_kernel_call *call)
{
    const tsr_tensor *const x = &call->inputs[0];
    return x->shape[x->ndim - 1] / 2;
}

/* The workspace has frequencies that are not kept, cosines, sines, and a head. */
static rope begin_rope(const tsr_kernel_call *call)
{
    const tsr_tensor *const x = &call->inputs[0], *const out = &call->outputs[0];
    const int64_t half = half_of(call);
    double *const memory = call->workspace;
    rope r = {.call = call,
              .kernels = find_kernels(call->kernels),
              .moves = tsr_pointwise_kernels_for(call->kernels),
              .x = x,
              .positions = &call->inputs[1],
              .out = out,
              .computed = tsr_pointwise_computes_in(x->dtype),
              .bytes = (int64_t)tsr_dtype_bytes(x->dtype),
              .half = half,
              .cosines = memory + half,
              .sines = memory + 2 * half,
              .row = memory + 3 * half};
    r.direct = r.computed == x->dtype && x->strides[x->ndim - 1] == 1 && out->strides[x->ndim - 1] == 1;
    if (!tsr_frequencies_find(call, half, &r.frequencies))
        r.frequencies = tsr_frequencies_compute(call->attributes, half, memory);
    return r;
}

tsr_status tsr_rope_run(const tsr_kernel_call *call)
{
    if (half_of(call) == 0)
        return TSR_OK;
    const rope r = begin_rope(call);
    rotate_all(&r);
    return TSR_OK;
}

int64_t tsr_rope_workspace(const tsr_kernel_call *call)
{
    const int64_t half = half_of(call);
    tsr_frequencies_keep(call, half);
    return half * 5 * (int64_t)sizeof(double);
}
