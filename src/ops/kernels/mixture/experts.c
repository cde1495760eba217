#include "ops/kernels/mixture/experts.h"

#include "ops/kernels/mixture/expert_pass.h"
#include "ops/numbers.h"

#include <tessera/sys/status.h>

#include <string.h>

/* What the op adds to a pass. */
typedef struct forward {
    tsr_matrix made;    /* what down makes of the tokens of an expert */
    tsr_matrix nothing; /* a row of -0 */
    tsr_matrix widened; /* a token in the dtype of values */
} forward;

static tsr_status plan_forward(tsr_expert_pass *p, void *own)
{
    forward *const f = own;
    const tsr_tensor *const y = &p->call->outputs[0];
    f->made = tsr_expert_take(p, p->rows, y->shape[2], y->dtype);
    f->nothing = tsr_expert_take(p, 1, y->shape[2], y->dtype);
    f->widened = tsr_expert_take(p, 1, p->x->shape[1], p->computed);
    return tsr_expert_multiply(p, tsr_expert_half(p->values, 0), tsr_matrix_transpose(tsr_expert_matrix(p->down, 0)),
                               f->made, false);
}

int64_t tsr_experts_bytes(const tsr_kernel_call *call)
{
    forward f;
    return tsr_expert_pass_bytes(call, 0, plan_forward, &f);
}

/* Computes `count` slots of an expert, from place `begin` of the order on. */
static tsr_status compute_slots(tsr_expert_pass *p, const forward *f, int64_t expert, int64_t begin, int64_t count)
{
    const tsr_matrix hidden = tsr_expert_half(tsr_expert_rows(p->values, 0, count), 0);
    TSR_TRY(tsr_expert_values(p, expert, begin, count));
    tsr_expert_activate(p, hidden, count);
    TSR_TRY(tsr_expert_multiply(p, hidden, tsr_matrix_transpose(tsr_expert_matrix(p->down, expert)),
                                tsr_expert_rows(f->made, 0, count), false));
    for (int64_t i = 0; i < count; i++)
        TSR_TRY(tsr_expert_copy(p, tsr_expert_rows(f->made, i, 1),
                                tsr_expert_slot(&p->call->outputs[0], p->slots.order[begin + i])));
    return TSR_OK;
}

/* A row of -0: added to what another rank has, it changes nothing. */
static void fill_nothing(const forward *f)
{
    const tsr_matrix row = f->nothing;
    const size_t bytes = tsr_dtype_bytes(row.dtype);
    const double f64 = -0.0;
    const float f32 = -0.0f;
    const uint16_t half = 0x8000;
    const void *const zero = row.dtype == TSR_F64   ? (const void *)&f64
                             : row.dtype == TSR_F32 ? (const void *)&f32
                                                    : &half;
    for (int64_t i = 0; i < row.cols; i++)
        memcpy((char *)row.data + (size_t)i * bytes, zero, bytes);
}

/* The token itself, in the dtype of y. */
static tsr_status pass_token(const tsr_expert_pass *p, const forward *f, int64_t slot, tsr_matrix to)
{
    const tsr_matrix from = tsr_expert_rows(tsr_matrix_of(p->x), slot / p->slots.each, 1);
    if (from.dtype == to.dtype)
        return tsr_expert_copy(p, from, to);
    p->kernels->gather[from.dtype](from.data, f->widened.data, from.cols, from.col_stride);
    p->kernels->scatter[to.dtype](f->widened.data, to.data, to.cols, to.col_stride);
    return TSR_OK;
}

/* Writes a slot that no expert of this rank computes. */
static tsr_status write_other(const tsr_expert_pass *p, const forward *f, int64_t slot)
{
    const int64_t place = p->slots.places[slot];
    const tsr_matrix to = tsr_expert_slot(&p->call->outputs[0], slot);
    const bool answers = place == TSR_SLOT_DROPPED || (place == TSR_SLOT_BEYOND && p->slots.gives);
    if (!answers)
        return tsr_expert_copy(p, f->nothing, to);
    if (place == TSR_SLOT_BEYOND && p->call->attributes[TSR_MIXTURE_BEYOND].integer == TSR_MIXTURE_IDENTITY)
        return pass_token(p, f, slot, to);
    return tsr_matrix_fill(&p->site, to, 0);
}

static tsr_status compute_all(tsr_expert_pass *p, const forward *f)
{
    for (int64_t expert = 0; expert < p->slots.experts; expert++) {
        const int64_t end = p->slots.starts[expert + 1];
        for (int64_t at = p->slots.starts[expert]; at < end; at += p->rows)
            TSR_TRY(compute_slots(p, f, expert, at, tsr_smaller(end - at, p->rows)));
    }
    fill_nothing(f);
    for (int64_t slot = 0; slot < p->slots.tokens * p->slots.each; slot++) {
        if (p->slots.places[slot] < 0)
            TSR_TRY(write_other(p, f, slot));
    }
    return TSR_OK;
}

/* Refuses a result in the memory of weights, which every token reads. */
static tsr_status check_memory(const tsr_kernel_call *call)
{
    for (int i = 2; i < 4; i++) {
        if (call->outputs[0].data && call->outputs[0].data == call->inputs[i].data)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: y must not have the memory of %s", call->op,
                                  i == 2 ? "gate_up" : "down");
    }
    return TSR_OK;
}

tsr_status tsr_experts_run(const tsr_kernel_call *call)
{
    tsr_expert_pass p;
    forward f;
    TSR_TRY(check_memory(call));
    tsr_status status = tsr_expert_pass_begin(call, 0, plan_forward, &f, &p);
    if (status == TSR_OK)
        status = compute_all(&p, &f);
    tsr_expert_pass_end(&p);
    return status;
}
