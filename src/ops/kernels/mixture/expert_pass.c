#include "ops/kernels/mixture/expert_pass.h"

#include "ops/layer.h"
#include "ops/numbers.h"

#include <string.h>

/* The most tokens that are multiplied at a time: as many as make a product, next to which reading
 * the weights again is little. */
#define MOST_ROWS 256

static tsr_status plan_pass(const tsr_kernel_call *call, int first, char *workspace, tsr_expert_plan *plan, void *own,
                            tsr_expert_pass *p)
{
    const tsr_tensor *const x = &call->inputs[first], *const ids = &call->inputs[first + 1];
    *p = (tsr_expert_pass){.call = call,
                           .first = first,
                           .x = x,
                           .gate_up = &call->inputs[first + 2],
                           .down = &call->inputs[first + 3],
                           .kernels = tsr_pointwise_kernels_for(call->kernels),
                           .computed = tsr_pointwise_computes_in(x->dtype),
                           .rows = tsr_smaller(ids->shape[0] * ids->shape[1], MOST_ROWS),
                           .arena = {workspace, 0}};
    p->site = (tsr_matmul_site){.device = tsr_device_host(), .needs = &p->needs, .any_strides = true};
    p->sorting = tsr_arena_take(&p->arena, tsr_slots_bytes(call, first));
    p->tokens = tsr_expert_take(p, p->rows, x->shape[1], x->dtype);
    p->values = tsr_expert_take(p, p->rows, p->gate_up->shape[1], p->computed);
    TSR_TRY(
        tsr_expert_multiply(p, p->tokens, tsr_matrix_transpose(tsr_expert_matrix(p->gate_up, 0)), p->values, false));
    return plan(p, own);
}

int64_t tsr_expert_pass_bytes(const tsr_kernel_call *call, int first, tsr_expert_plan *plan, void *own)
{
    tsr_expert_pass p;
    if (plan_pass(call, first, NULL, plan, own, &p) != TSR_OK)
        return 0;
    return (int64_t)(p.arena.used + tsr_layer_needs_bytes(&p.needs));
}

tsr_status tsr_expert_pass_begin(const tsr_kernel_call *call, int first, tsr_expert_plan *plan, void *own,
                                 tsr_expert_pass *p)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(call->layouts[first]);
    TSR_TRY(plan_pass(call, first, call->workspace, plan, own, p));
    TSR_TRY(tsr_layer_choose(tsr_mesh_context(mesh), tsr_device_host(), &p->choice));
    p->site = tsr_layer_site(tsr_device_host(), &p->choice, &p->needs,
                             call->workspace ? (char *)call->workspace + p->arena.used : NULL, NULL);
    tsr_choice_hold(&p->choice);
    return tsr_slots_sort(call, first, p->sorting, &p->slots);
}

void tsr_expert_pass_end(tsr_expert_pass *p)
{
    tsr_choice_release(&p->choice);
}

tsr_matrix tsr_expert_take(tsr_expert_pass *p, int64_t rows, int64_t columns, tsr_dtype dtype)
{
    void *const data = tsr_arena_take(&p->arena, (size_t)(rows * columns) * tsr_dtype_bytes(dtype));
    return (tsr_matrix){data, rows, columns, columns, 1, dtype};
}

/* Moves the first element of a matrix; a site that measures has no data. */
static tsr_matrix move(tsr_matrix m, int64_t elements)
{
    m.data = m.data ? (char *)m.data + elements * (int64_t)tsr_dtype_bytes(m.dtype) : NULL;
    return m;
}

tsr_matrix tsr_expert_rows(tsr_matrix m, int64_t first, int64_t count)
{
    m.rows = count;
    return move(m, first * m.row_stride);
}

tsr_matrix tsr_expert_half(tsr_matrix values, int half)
{
    values.cols /= 2;
    return move(values, half * values.cols * values.col_stride);
}

tsr_matrix tsr_expert_matrix(const tsr_tensor *tensor, int64_t index)
{
    const tsr_matrix m = {tensor->data,       tensor->shape[1],   tensor->shape[2],
                          tensor->strides[1], tensor->strides[2], tensor->dtype};
    return move(m, index * tensor->strides[0]);
}

tsr_matrix tsr_expert_slot(const tsr_tensor *tensor, int64_t slot)
{
    const int64_t each = tensor->shape[1];
    const tsr_matrix m = {tensor->data, 1, tensor->shape[2], tensor->shape[2], tensor->strides[2], tensor->dtype};
    return move(m, slot / each * tensor->strides[0] + slot % each * tensor->strides[1]);
}

tsr_status tsr_expert_copy(const tsr_expert_pass *p, tsr_matrix from, tsr_matrix to)
{
    if (from.col_stride != 1 || to.col_stride != 1)
        return tsr_matrix_copy(&p->site, from, to);
    if (to.cols)
        memcpy(to.data, from.data, (size_t)to.cols * tsr_dtype_bytes(to.dtype));
    return TSR_OK;
}

tsr_status tsr_expert_values(tsr_expert_pass *p, int64_t expert, int64_t begin, int64_t count)
{
    const tsr_matrix x = tsr_matrix_of(p->x), tokens = tsr_expert_rows(p->tokens, 0, count);
    for (int64_t i = 0; i < count; i++) {
        const int64_t token = p->slots.order[begin + i] / p->slots.each;
        TSR_TRY(tsr_expert_copy(p, tsr_expert_rows(x, token, 1), tsr_expert_rows(tokens, i, 1)));
    }
    return tsr_expert_multiply(p, tokens, tsr_matrix_transpose(tsr_expert_matrix(p->gate_up, expert)),
                               tsr_expert_rows(p->values, 0, count), false);
}

tsr_pointwise_loop *tsr_expert_loop(const tsr_expert_pass *p, bool slope, double *parameter)
{
    static const int codes[][2] = {[TSR_MIXTURE_SILU] = {TSR_POINTWISE_SILU, TSR_POINTWISE_SILU_BACKWARD},
                                   [TSR_MIXTURE_GELU] = {TSR_POINTWISE_GELU, TSR_POINTWISE_GELU_BACKWARD},
                                   [TSR_MIXTURE_GELU_TANH] = {TSR_POINTWISE_GELU, TSR_POINTWISE_GELU_BACKWARD},
                                   [TSR_MIXTURE_RELU] = {TSR_POINTWISE_RELU, TSR_POINTWISE_RELU_BACKWARD}};
    const int64_t activation = p->call->attributes[TSR_MIXTURE_ACTIVATION].integer;
    *parameter = activation == TSR_MIXTURE_GELU_TANH;
    return p->kernels->loops[codes[activation][slope]][p->computed];
}

void tsr_expert_activate(const tsr_expert_pass *p, tsr_matrix hidden, int64_t count)
{
    double parameter;
    tsr_pointwise_loop *const activate = tsr_expert_loop(p, false, &parameter),
                              *const multiply = p->kernels->loops[TSR_POINTWISE_MUL][p->computed];
    const tsr_matrix gates = tsr_expert_half(p->values, 0), ups = tsr_expert_half(p->values, 1);
    for (int64_t i = 0; i < count; i++) {
        void *const out = tsr_expert_rows(hidden, i, 1).data;
        activate((const void *const[]){tsr_expert_rows(gates, i, 1).data}, out, hidden.cols, &parameter);
        multiply((const void *const[]){out, tsr_expert_rows(ups, i, 1).data}, out, hidden.cols, NULL);
    }
}

tsr_status tsr_expert_multiply(tsr_expert_pass *p, tsr_matrix a, tsr_matrix b, tsr_matrix c, bool accumulate)
{
    if (!p->site.needs)
        return tsr_matrix_multiply(&p->site, a, b, c, accumulate);
    return tsr_matrix_measure(&p->site, a, b, c, accumulate);
}
