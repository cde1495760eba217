#include "ops/kernels/mixture/experts_gradient.h"

#include "ops/kernels/mixture/expert_pass.h"
#include "ops/numbers.h"

#include <string.h>

/* What the gradient adds to a pass. */
typedef struct backward {
    const tsr_tensor *dout, *dx, *dgate_up, *ddown;
    tsr_matrix douts;          /* rows of dout of the tokens of an expert */
    tsr_matrix hidden, slopes; /* activation(gates) * ups, and its gradient */
    tsr_matrix dvalues, made;  /* gradients of values, and what tokens get of an expert */
    tsr_matrix slots, sum;     /* what each slot gives to dx, and one row of it */
    tsr_matrix gate_up, down;  /* sums of an expert's gradients, where theirs have a narrower dtype */
} backward;

/* Where the gradient of a matrix is summed: in its own memory unless its dtype is narrower. */
static tsr_matrix take_sums(tsr_expert_pass *p, const tsr_tensor *gradient)
{
    if (gradient->dtype == p->computed)
        return tsr_expert_matrix(gradient, 0);
    return tsr_expert_take(p, gradient->shape[1], gradient->shape[2], p->computed);
}

static tsr_matrix sums_of(const tsr_expert_pass *p, const tsr_tensor *gradient, tsr_matrix sums, int64_t expert)
{
    return gradient->dtype == p->computed ? tsr_expert_matrix(gradient, expert) : sums;
}

/* The products of `count` tokens of an expert that make gradients, once gradients of values are
 * made. */
static tsr_status multiply_back(tsr_expert_pass *p, const backward *b, int64_t expert, int64_t count, bool accumulate)
{
    const tsr_matrix douts = tsr_expert_rows(b->douts, 0, count), dvalues = tsr_expert_rows(b->dvalues, 0, count);
    TSR_TRY(tsr_expert_multiply(p, tsr_matrix_transpose(douts), tsr_expert_rows(b->hidden, 0, count),
                                sums_of(p, b->ddown, b->down, expert), accumulate));
    TSR_TRY(tsr_expert_multiply(p, tsr_matrix_transpose(dvalues), tsr_expert_rows(p->tokens, 0, count),
                                sums_of(p, b->dgate_up, b->gate_up, expert), accumulate));
    return tsr_expert_multiply(p, dvalues, tsr_expert_matrix(p->gate_up, expert), tsr_expert_rows(b->made, 0, count),
                               false);
}

static tsr_status plan_backward(tsr_expert_pass *p, void *own)
{
    backward *const b = own;
    const tsr_kernel_call *const call = p->call;
    const int64_t tokens = p->x->shape[0], all = tokens * call->inputs[2].shape[1], inner = p->down->shape[2];
    *b = (backward){
        .dout = &call->inputs[0], .dx = &call->outputs[0], .dgate_up = &call->outputs[1], .ddown = &call->outputs[2]};
    b->douts = tsr_expert_take(p, p->rows, b->dout->shape[2], b->dout->dtype);
    b->hidden = tsr_expert_take(p, p->rows, inner, p->computed);
    b->slopes = tsr_expert_take(p, p->rows, inner, p->computed);
    b->dvalues = tsr_expert_take(p, p->rows, 2 * inner, p->computed);
    b->made = tsr_expert_take(p, p->rows, p->x->shape[1], p->computed);
    b->slots = tsr_expert_take(p, all, p->x->shape[1], p->computed);
    b->sum = tsr_expert_take(p, 1, p->x->shape[1], p->computed);
    b->gate_up = take_sums(p, b->dgate_up);
    b->down = take_sums(p, b->ddown);
    TSR_TRY(tsr_expert_multiply(p, b->douts, tsr_expert_matrix(p->down, 0), b->slopes, false));
    return multiply_back(p, b, 0, p->rows, true);
}

int64_t tsr_experts_gradient_bytes(const tsr_kernel_call *call)
{
    backward b;
    return tsr_expert_pass_bytes(call, 1, plan_backward, &b);
}

static void apply(const tsr_expert_pass *p, int code, const void *x, const void *y, void *out, int64_t n)
{
    p->kernels->loops[code][p->computed]((const void *const[]){x, y}, out, n, NULL);
}

/* From the slope of hidden values, of one row each: hidden values, and the gradients of gates and
 * ups. */
static void differentiate(const tsr_expert_pass *p, const backward *b, int64_t row)
{
    double parameter;
    const int64_t n = b->hidden.cols;
    const void *const gates = tsr_expert_rows(tsr_expert_half(p->values, 0), row, 1).data,
                      *const ups = tsr_expert_rows(tsr_expert_half(p->values, 1), row, 1).data;
    void *const hidden = tsr_expert_rows(b->hidden, row, 1).data,
                *const slopes = tsr_expert_rows(b->slopes, row, 1).data,
                *const dgates = tsr_expert_rows(tsr_expert_half(b->dvalues, 0), row, 1).data,
                *const dups = tsr_expert_rows(tsr_expert_half(b->dvalues, 1), row, 1).data;
    tsr_expert_loop(p, false, &parameter)((const void *const[]){gates}, hidden, n, &parameter);
    apply(p, TSR_POINTWISE_MUL, slopes, hidden, dups, n);
    apply(p, TSR_POINTWISE_MUL, hidden, ups, hidden, n);
    apply(p, TSR_POINTWISE_MUL, slopes, ups, slopes, n);
    tsr_expert_loop(p, true, &parameter)((const void *const[]){slopes, gates}, dgates, n, &parameter);
}

/* Adds what `count` slots of an expert give, from place `begin` of the order on. */
static tsr_status add_slots(tsr_expert_pass *p, const backward *b, int64_t expert, int64_t begin, int64_t count)
{
    const int64_t *const order = p->slots.order + begin;
    const tsr_matrix douts = tsr_expert_rows(b->douts, 0, count);
    TSR_TRY(tsr_expert_values(p, expert, begin, count));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(tsr_expert_copy(p, tsr_expert_slot(b->dout, order[i]), tsr_expert_rows(douts, i, 1)));
    TSR_TRY(
        tsr_expert_multiply(p, douts, tsr_expert_matrix(p->down, expert), tsr_expert_rows(b->slopes, 0, count), false));
    for (int64_t i = 0; i < count; i++)
        differentiate(p, b, i);
    TSR_TRY(multiply_back(p, b, expert, count, begin > p->slots.starts[expert]));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(tsr_expert_copy(p, tsr_expert_rows(b->made, i, 1), tsr_expert_rows(b->slots, order[i], 1)));
    return TSR_OK;
}

/* Rounds sums to the gradient of an expert's matrix, if they are not there. */
static void round_sums(const tsr_expert_pass *p, const tsr_tensor *gradient, tsr_matrix sums, int64_t expert)
{
    const tsr_matrix to = tsr_expert_matrix(gradient, expert);
    if (gradient->dtype == p->computed)
        return;
    for (int64_t i = 0; i < to.rows; i++)
        p->kernels->scatter[to.dtype](tsr_expert_rows(sums, i, 1).data, tsr_expert_rows(to, i, 1).data, to.cols,
                                      to.col_stride);
}

static tsr_status compute_expert(tsr_expert_pass *p, const backward *b, int64_t expert)
{
    const int64_t begin = p->slots.starts[expert], end = p->slots.starts[expert + 1];
    if (begin == end) {
        TSR_TRY(tsr_matrix_fill(&p->site, tsr_expert_matrix(b->dgate_up, expert), 0));
        return tsr_matrix_fill(&p->site, tsr_expert_matrix(b->ddown, expert), 0);
    }
    for (int64_t at = begin; at < end; at += p->rows)
        TSR_TRY(add_slots(p, b, expert, at, tsr_smaller(end - at, p->rows)));
    round_sums(p, b->dgate_up, b->gate_up, expert);
    round_sums(p, b->ddown, b->down, expert);
    return TSR_OK;
}

/* Adds what a slot gives to dx. */
static void add_slot(const tsr_expert_pass *p, const backward *b, int64_t slot)
{
    const int64_t place = p->slots.places[slot];
    const tsr_matrix given = tsr_expert_rows(b->slots, slot, 1), passed = tsr_expert_slot(b->dout, slot);
    if (place < 0 && !(place == TSR_SLOT_BEYOND && p->slots.gives &&
                       p->call->attributes[TSR_MIXTURE_BEYOND].integer == TSR_MIXTURE_IDENTITY))
        return;
    if (place < 0)
        p->kernels->gather[passed.dtype](passed.data, given.data, given.cols, passed.col_stride);
    apply(p, TSR_POINTWISE_ADD, b->sum.data, given.data, b->sum.data, given.cols);
}

/* dx of each token, by its slots in ascending order. */
static void add_tokens(const tsr_expert_pass *p, const backward *b)
{
    const tsr_matrix dx = tsr_matrix_of(b->dx);
    for (int64_t token = 0; token < p->slots.tokens; token++) {
        memset(b->sum.data, 0, (size_t)b->sum.cols * tsr_dtype_bytes(p->computed));
        for (int64_t j = 0; j < p->slots.each; j++)
            add_slot(p, b, token * p->slots.each + j);
        p->kernels->scatter[dx.dtype](b->sum.data, tsr_expert_rows(dx, token, 1).data, dx.cols, dx.col_stride);
    }
}

static tsr_status compute_all(tsr_expert_pass *p, const backward *b)
{
    for (int64_t expert = 0; expert < p->slots.experts; expert++)
        TSR_TRY(compute_expert(p, b, expert));
    add_tokens(p, b);
    return TSR_OK;
}

tsr_status tsr_experts_gradient_run(const tsr_kernel_call *call)
{
    tsr_expert_pass p;
    backward b;
    tsr_status status = tsr_expert_pass_begin(call, 1, plan_backward, &b, &p);
    if (status == TSR_OK)
        status = compute_all(&p, &b);
    tsr_expert_pass_end(&p);
    return status;
}
