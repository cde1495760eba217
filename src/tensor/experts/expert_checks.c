#include "tensor/experts/expert_checks.h"

#include "base/checked.h"
#include "device/device.h"
#include "placement/print.h"
#include "tensor/experts/expert_ids.h"

#include <tessera/sys/status.h>

#include <stdio.h>

/* A call's checks. */
typedef struct checks {
    const tsr_experts_plan *plan;
    const char *call;
    int64_t tokens; /* what all tensors of tokens have; -1: not known yet */
} checks;

static tsr_status check_device(const checks *c, const tsr_expert_operand *o)
{
    char device[64];
    if (o->tensor->device.driver)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: %s is on device %s: calls of experts take tensors on the host", c->call, o->name,
                              tsr_device_print(o->tensor->device, device));
    return tsr_host_is_meant(o->tensor->device, NULL) ? TSR_OK : tsr_refuse_host(o->name, o->tensor->device, NULL);
}

static tsr_status refuse_dtype(const checks *c, const tsr_expert_operand *o, const char *wanted)
{
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is of %s, not of %s", c->call, o->name,
                          tsr_dtype_name(o->tensor->dtype), wanted);
}

static tsr_status check_dtype(const checks *c, const tsr_expert_operand *o)
{
    const tsr_dtype dtype = o->tensor->dtype;
    char either[32];
    switch (o->kind) {
    case TSR_EXPERT_IDS:
        return dtype == TSR_I32 || dtype == TSR_I64 ? TSR_OK : refuse_dtype(c, o, "i32 or i64");
    case TSR_EXPERT_SIZES:
        return dtype == TSR_I64 ? TSR_OK : refuse_dtype(c, o, "i64");
    case TSR_EXPERT_WEIGHTS:
        snprintf(either, sizeof either, "f32 or %s", tsr_dtype_name(c->plan->dtype));
        return dtype == TSR_F32 || dtype == c->plan->dtype
                   ? TSR_OK
                   : refuse_dtype(c, o, c->plan->dtype == TSR_F32 ? "f32" : either);
    default:
        return dtype == c->plan->dtype ? TSR_OK : refuse_dtype(c, o, tsr_dtype_name(c->plan->dtype));
    }
}

static bool is_of_tokens(tsr_expert_kind kind)
{
    return kind != TSR_EXPERT_ROWS && kind != TSR_EXPERT_SIZES;
}

/* The columns that a tensor has; 0: it has none. */
static int64_t columns_of(const checks *c, tsr_expert_kind kind)
{
    if (kind == TSR_EXPERT_SIZES)
        return 0;
    return kind == TSR_EXPERT_TOKENS || kind == TSR_EXPERT_ROWS ? c->plan->width : c->plan->slots;
}

static tsr_status check_shape(checks *c, const tsr_expert_operand *o)
{
    const tsr_tensor *const t = o->tensor;
    const int64_t columns = columns_of(c, o->kind);
    char have[TSR_SHAPE_TEXT], want[TSR_SHAPE_TEXT];
    int64_t wanted[2] = {t->ndim > 0 ? t->shape[0] : 0, columns};
    int64_t elements;
    const tsr_status status = tsr_tensor_count(t, &elements);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: %s: %s", c->call, o->name, tsr_status_message());
    if (o->kind == TSR_EXPERT_SIZES)
        wanted[0] = c->plan->own_count;
    else if (is_of_tokens(o->kind) && c->tokens >= 0)
        wanted[0] = c->tokens;
    const int ndim = columns > 0 ? 2 : 1;
    if (t->ndim != ndim || t->shape[0] != wanted[0] || (columns > 0 && t->shape[1] != columns))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has shape %s, not %s", c->call, o->name,
                              tsr_shape_print(t->ndim, t->shape, have), tsr_shape_print(ndim, wanted, want));
    if (is_of_tokens(o->kind))
        c->tokens = t->shape[0];
    if (elements > 0 && !t->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has no data, but %lld elements", c->call, o->name,
                              (long long)elements);
    return TSR_OK;
}

static tsr_status check_strides(const checks *c, const tsr_expert_operand *o)
{
    const tsr_tensor *const t = o->tensor;
    const bool is_rows = o->kind == TSR_EXPERT_TOKENS || o->kind == TSR_EXPERT_ROWS;
    if (tsr_shape_is_empty(t->ndim, t->shape))
        return TSR_OK;
    if (is_rows && t->shape[1] != 1 && t->strides[1] != 1)
        return tsr_status_set(
            TSR_ERROR_UNSUPPORTED,
            "%s: %s has gaps within its rows: each row must be contiguous, and between rows there may be gaps", c->call,
            o->name);
    for (int dim = 0; dim < t->ndim; dim++)
        if (t->strides[dim] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has stride %lld: strides are 0 or more", c->call, o->name,
                                  (long long)t->strides[dim]);
    if (o->written && tsr_tensor_overlaps(t))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is written, but its elements share memory", c->call, o->name);
    return TSR_OK;
}

/* Bytes from the first element to behind the last. */
static size_t span_of(const tsr_tensor *t)
{
    int64_t last = 0;
    if (tsr_shape_is_empty(t->ndim, t->shape))
        return 0;
    for (int dim = 0; dim < t->ndim; dim++)
        last += (t->shape[dim] - 1) * t->strides[dim];
    return (size_t)(last + 1) * tsr_dtype_bytes(t->dtype);
}

static tsr_status check_apart(const checks *c, const tsr_expert_operand *a, const tsr_expert_operand *b)
{
    const uintptr_t first = (uintptr_t)a->tensor->data, second = (uintptr_t)b->tensor->data;
    const size_t first_bytes = span_of(a->tensor), second_bytes = span_of(b->tensor);
    if (first_bytes == 0 || second_bytes == 0 || first + first_bytes <= second || second + second_bytes <= first)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s overlaps %s", c->call, a->name, b->name);
}

static tsr_status check_ids(const checks *c, const tsr_expert_operand *o)
{
    for (int64_t token = 0; token < o->tensor->shape[0]; token++)
        for (int64_t slot = 0; slot < c->plan->slots; slot++) {
            const int64_t id = tsr_expert_id(o->tensor, token, slot);
            if (id < -1 || id >= c->plan->count)
                return tsr_status_set(TSR_ERROR_ARGUMENT,
                                      "%s: %s of rank %d at token %lld, slot %lld is %lld: there are %lld experts, "
                                      "counted from 0, and -1 leaves a slot empty",
                                      c->call, o->name, tsr_comm_rank(c->plan->comm), (long long)token, (long long)slot,
                                      (long long)id, (long long)c->plan->count);
        }
    return TSR_OK;
}

/* Checks numbers that depend on the plan. */
static tsr_status check_sizes(const checks *c, bool dispatches, const tsr_expert_operand *o)
{
    const int64_t count = o->tensor->shape[0];
    if (dispatches && is_of_tokens(o->kind) && count > c->plan->tokens)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %lld tokens, but the plan is for %lld", c->call, o->name,
                              (long long)count, (long long)c->plan->tokens);
    if (!dispatches && o->kind == TSR_EXPERT_ROWS && count < c->plan->received)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has %lld rows, but %lld came to this rank", c->call, o->name,
                              (long long)count, (long long)c->plan->received);
    return o->kind == TSR_EXPERT_IDS ? check_ids(c, o) : TSR_OK;
}

static tsr_status check_one(checks *c, bool dispatches, const tsr_expert_operand *o)
{
    if (!o->tensor)
        return o->optional ? TSR_OK : tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", c->call, o->name);
    TSR_TRY(check_device(c, o));
    TSR_TRY(check_dtype(c, o));
    TSR_TRY(check_shape(c, o));
    TSR_TRY(check_strides(c, o));
    return check_sizes(c, dispatches, o);
}

tsr_status tsr_expert_check(const tsr_experts_plan *plan, const char *call, bool dispatches,
                            const tsr_expert_operand *operands, size_t count)
{
    checks c = {plan, call, dispatches ? -1 : plan->token_count};
    if (!dispatches && !plan->routed)
        return tsr_status_set(TSR_ERROR_STATE,
                              "%s: the plan has no dispatch to follow: its last one failed, or there was "
                              "none",
                              call);
    for (size_t i = 0; i < count; i++)
        TSR_TRY(check_one(&c, dispatches, &operands[i]));
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < count; k++)
            if (i != k && operands[i].written && operands[i].tensor && operands[k].tensor)
                TSR_TRY(check_apart(&c, &operands[i], &operands[k]));
    return TSR_OK;
}
