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

static void read(const combining *c, const tsr_tensor *tensor, int64_t token, int64_t slot, int64_t at, int64_t n,
                 void *to)
{
    c->kernels->gather[tensor->dtype](find(tensor, token, slot, at), to, n, tensor->strides[tensor->ndim - 1]);
}

static void write(const combining *c, const void *from, const tsr_tensor *tensor, int64_t token, int64_t slot,
                  int64_t at, int64_t n)
{
    c->kernels->scatter[tensor->dtype](from, find(tensor, token, slot, at), n, tensor->strides[tensor->ndim - 1]);
}

/* x[i] times the token's number `slot`. */
static void scale(const combining *c, int64_t slot, void *x, int64_t n)
{
    const double factor = c->computed == TSR_F64 ? ((const double *)c->call->workspace)[slot]
                                                 : (double)((const float *)c->call->workspace)[slot];
    c->kernels->loops[TSR_POINTWISE_SCALE][c->computed]((const void *const[]){x}, x, n, &factor);
}

static void apply(const combining *c, int code, const void *x, void *out, int64_t n)
{
    c->kernels->loops[code][c->computed]((const void *const[]){out, x}, out, n, NULL);
}

/* The sum over slots of one token. */
static void add_slots(const combining *c, int64_t token)
{
    const tsr_tensor *const y = &c->call->inputs[0], *const out = &c->call->outputs[0];
    void *const term = chunk_of(c, 1), *const sum = chunk_of(c, 0);
    read(c, &c->call->inputs[1], token, 0, 0, c->slots, c->call->workspace);
    for (int64_t at = 0, n; at < c->length; at += n) {
        n = tsr_smaller(c->length - at, CHUNK);
        if (c->slots == 0)
            memset(sum, 0, (size_t)n * tsr_dtype_bytes(c->computed));
        for (int64_t slot = 0; slot < c->slots; slot++) {
            void *const to = slot ? term : sum;
            read(c, y, token, slot, at, n, to);
            scale(c, slot, to, n);
            if (slot)
                apply(c, TSR_POINTWISE_ADD, term, sum, n);
        }
        write(c, sum, out, token, 0, at, n);
    }
}

/* What each slot of one token gets of dout. */
static void spread(const combining *c, int64_t token)
{
    const tsr_tensor *const dout = &c->call->inputs[0];
    void *const term = chunk_of(c, 1);
    read(c, &c->call->inputs[1], token, 0, 0, c->slots, c->call->workspace);
    for (int64_t slot = 0; slot < c->slots; slot++) {
        for (int64_t at = 0, n; at < c->length; at += n) {
            n = tsr_smaller(c->length - at, CHUNK);
            read(c, dout, token, 0, at, n, term);
            scale(c, slot, term, n);
            write(c, term, &c->call->outputs[0], token, slot, at, n);
        }
    }
}

/* The sum of products of dout and a slot, in ascending order, in f64. */
static double add_products(const combining *c, int64_t token, int64_t slot)
{
    void *const a = chunk_of(c, 0), *const b = chunk_of(c, 1);
    double sum = 0;
    for (int64_t at = 0, n; at < c->length; at += n) {
        n = tsr_smaller(c->length - at, CHUNK);
        read(c, &c->call->inputs[0], token, 0, at, n, a);
        read(c, &c->call->inputs[1], token, slot, at, n, b);
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
