#include "ops/kernels/mixture/combine.h"

#include "ops/kernels/pointwise.h"
#include "ops/numbers.h"

#include <string.h>

/* Elements that are computed at a time. */
#define CHUNK 512

/* A call; numbers of one token are in the workspace, in the dtype of the computation. */
typedef struct combining {
    const tsr_kernel_call *call;
    const tsr_pointwise_kernels *kernels;
    tsr_dtype computed;
    int64_t tokens, slots, length; /* length: of a slot */
    size_t numbers;                /* bytes of the weights of a token */
} combining;

static combining begin(const tsr_kernel_call *call)
{
    const tsr_tensor *const whole =
        call->code == TSR_COMBINE_Y ? &call->outputs[0] : &call->inputs[call->code == TSR_COMBINE_WEIGHTS];
    combining c = {.call = call,
                   .kernels = tsr_pointwise_kernels_for(call->kernels),
                   .computed = tsr_pointwise_computes_in(whole->dtype),
                   .tokens = whole->shape[0],
                   .slots = whole->shape[1],
                   .length = whole->shape[2]};
    c.numbers = tsr_aligned_bytes((size_t)c.slots * tsr_dtype_bytes(c.computed));
    return c;
}

int64_t tsr_combine_bytes(const tsr_kernel_call *call)
{
    const combining c = begin(call);
    return (int64_t)(c.numbers + 2 * tsr_aligned_bytes(CHUNK * tsr_dtype_bytes(c.computed)));
}

/* Room for a chunk: 0 or 1. */
static void *chunk_of(const combining *c, int which)
{
    return (char *)c->call->workspace + c->numbers +
           (size_t)which * tsr_aligned_bytes(CHUNK * tsr_dtype_bytes(c->computed));
}

static void *element(const tsr_tensor *tensor, int64_t offset)
{
    return (char *)tensor->data + offset * (int64_t)tsr_dtype_bytes(tensor->dtype);
}

/* Element (token, slot, at) of a tensor of three dims, or (token, at) of one of two. */
static void *find(const tsr_tensor *tensor, int64_t token, int64_t slot, int64_t at)
{
    const int64_t *const strides = tensor->strides;
    if (tensor->ndim == 2)
        return element(tensor, token * strides[0] + at * strides[1]);
    return element(tensor, token * strides[0] + slot * strides[1] + at * strides[2]);
}

/* Elements from `at` on as numbers of the computation: where they lie, or in `room`. */
static const void *read(const combining *c, const tsr_tensor *tensor, int64_t token, int64_t slot, int64_t at,
                        int64_t n, void *room)
{
    const int64_t stride = tensor->strides[tensor->ndim - 1];
    void *const from = find(tensor, token, slot, at);
    if (tensor->dtype == c->computed && stride == 1)
        return from;
    c->kernels->gather[tensor->dtype](from, room, n, stride);
    return room;
}

static void write(const combining *c, const void *from, const tsr_tensor *tensor, int64_t token, int64_t slot,
                  int64_t at, int64_t n)
{
    c->kernels->scatter[tensor->dtype](from, find(tensor, token, slot, at), n, tensor->strides[tensor->ndim - 1]);
}

/* Where a result is computed: in its own memory, or in `room`, from which write() takes it. */
static void *place(const combining *c, const tsr_tensor *tensor, int64_t token, int64_t slot, int64_t at, void *room)
{
    return tensor->dtype == c->computed && tensor->strides[tensor->ndim - 1] == 1 ? find(tensor, token, slot, at)
                                                                                  : room;
}

/* Keeps the weights of a token, because out may have their memory. */
static void keep_weights(const combining *c, int64_t token)
{
    const tsr_tensor *const weights = &c->call->inputs[1];
    c->kernels->gather[weights->dtype](find(weights, token, 0, 0), c->call->workspace, c->slots, weights->strides[1]);
}

static double weight(const combining *c, int64_t slot)
{
    return c->computed == TSR_F64 ? ((const double *)c->call->workspace)[slot]
                                  : (double)((const float *)c->call->workspace)[slot];
}

/* The sum over slots of one token. */
static void add_slots(const combining *c, int64_t token)
{
    const tsr_tensor *const y = &c->call->inputs[0], *const out = &c->call->outputs[0];
    keep_weights(c, token);
    for (int64_t at = 0, n; at < c->length; at += n) {
        n = tsr_smaller(c->length - at, CHUNK);
        void *const sum = place(c, out, token, 0, at, chunk_of(c, 0));
        if (c->slots == 0)
            memset(sum, 0, (size_t)n * tsr_dtype_bytes(c->computed));
        for (int64_t slot = 0; slot < c->slots; slot++) {
            const void *const term = read(c, y, token, slot, at, n, chunk_of(c, 1));
            (slot ? c->kernels->add_scaled : c->kernels->start_scaled)[c->computed](term, weight(c, slot), sum, n);
        }
        if (sum == chunk_of(c, 0))
            write(c, sum, out, token, 0, at, n);
    }
}

/* What each slot of one token gets of dout. */
static void spread(const combining *c, int64_t token)
{
    const tsr_tensor *const dout = &c->call->inputs[0], *const dy = &c->call->outputs[0];
    keep_weights(c, token);
    for (int64_t slot = 0; slot < c->slots; slot++) {
        for (int64_t at = 0, n; at < c->length; at += n) {
            n = tsr_smaller(c->length - at, CHUNK);
            void *const term = place(c, dy, token, slot, at, chunk_of(c, 0));
            c->kernels->start_scaled[c->computed](read(c, dout, token, 0, at, n, chunk_of(c, 1)), weight(c, slot), term,
                                                  n);
            if (term == chunk_of(c, 0))
                write(c, term, dy, token, slot, at, n);
        }
    }
}

/* The sum of products of dout and a slot, in ascending order, in f64. */
static double add_products(const combining *c, int64_t token, int64_t slot)
{
    double sum = 0;
    for (int64_t at = 0, n; at < c->length; at += n) {
        n = tsr_smaller(c->length - at, CHUNK);
        const void *const a = read(c, &c->call->inputs[0], token, 0, at, n, chunk_of(c, 0)), *const b = read(
                                                                                                 c, &c->call->inputs[1],
                                                                                                 token, slot, at, n,
                                                                                                 chunk_of(c, 1));
        for (int64_t i = 0; i < n; i++)
            sum += c->computed == TSR_F64 ? ((const double *)a)[i] * ((const double *)b)[i]
                                          : (double)((const float *)a)[i] * (double)((const float *)b)[i];
    }
    return sum;
}

/* The products of dout with each slot of one token. */
static void multiply(const combining *c, int64_t token)
{
    for (int64_t slot = 0; slot < c->slots; slot++) {
        const double sum = add_products(c, token, slot);
        if (c->computed == TSR_F64)
            ((double *)c->call->workspace)[slot] = sum;
        else
            ((float *)c->call->workspace)[slot] = (float)sum;
    }
    write(c, c->call->workspace, &c->call->outputs[0], token, 0, 0, c->slots);
}

tsr_status tsr_combine_run(const tsr_kernel_call *call)
{
    static void (*const by_code[])(const combining *, int64_t) = {
        [TSR_COMBINE] = add_slots, [TSR_COMBINE_Y] = spread, [TSR_COMBINE_WEIGHTS] = multiply};
    const combining c = begin(call);
    for (int64_t token = 0; token < c.tokens; token++)
        by_code[call->code](&c, token);
    return TSR_OK;
}
