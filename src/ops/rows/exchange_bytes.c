#include "ops/rows/exchange_bytes.h"

#include "ops/rows/table.h"

#include <tessera/sys/status.h>

unsigned tsr_op_met(const tsr_op_case *c, int stage, unsigned exchanged)
{
    return c->op->meets ? c->op->meets(c, stage, exchanged) : exchanged;
}

int64_t tsr_op_record_stride(const tsr_op *op, const tsr_kernel_call *call)
{
    const int64_t bytes = op->record_bytes(call);
    return ((bytes + TSR_RECORD_ALIGNMENT - 1) / TSR_RECORD_ALIGNMENT + 1) * TSR_RECORD_ALIGNMENT;
}

/* A local tensor without data. */
static tsr_status shape_local(const tsr_layout *layout, const int64_t *coordinate, tsr_tensor *out)
{
    int64_t shape[TSR_MAX_DIMS];
    *out = (tsr_tensor){.ndim = -1};
    if (!layout)
        return TSR_OK;
    TSR_TRY(tsr_layout_local(layout, coordinate, shape, NULL));
    *out = tsr_tensor_contiguous(NULL, tsr_layout_dtype(layout), tsr_layout_ndim(layout), shape);
    return TSR_OK;
}

/* The ranks that meet after a stage. */
static int64_t count_ranks(const tsr_op_case *c, const tsr_mesh *mesh, int stage, unsigned exchanged)
{
    int64_t count = 1;
    const unsigned met = tsr_op_met(c, stage, exchanged);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        count *= met >> k & 1 ? tsr_mesh_size(mesh, k) : 1;
    return count;
}

static int64_t add_records(const tsr_op_case *c, const tsr_mesh *mesh, unsigned exchanged, tsr_kernel_call *call)
{
    int64_t bytes = 0;
    for (call->stage = 0; call->stage < c->op->exchanges; call->stage++) {
        const int64_t stride = tsr_op_record_stride(c->op, call);
        call->record_count = (int)count_ranks(c, mesh, call->stage, exchanged);
        bytes += stride * (call->record_count - 1);
    }
    return bytes;
}

static tsr_status count_bytes(const tsr_op_case *c, const tsr_op_inferred *inferred, const int64_t *coordinate,
                              int64_t *bytes)
{
    tsr_tensor inputs[TSR_OP_MOST_OPERANDS], outputs[TSR_OP_MOST_RESULTS];
    tsr_kernel_call call = {.op = c->op->name,
                            .code = c->op->code,
                            .attributes = c->attributes,
                            .kernels = "portable",
                            .inputs = inputs,
                            .outputs = outputs,
                            .layouts = c->operands,
                            .result_layouts = (const tsr_layout *const *)inferred->results,
                            .coordinate = coordinate};
    for (; c->op->operands[call.input_count]; call.input_count++)
        TSR_TRY(shape_local(c->operands[call.input_count], coordinate, &inputs[call.input_count]));
    for (; c->op->results[call.output_count]; call.output_count++)
        TSR_TRY(shape_local(inferred->results[call.output_count], coordinate, &outputs[call.output_count]));
    *bytes = add_records(c, tsr_layout_mesh(inferred->results[0]), inferred->exchanged, &call);
    return TSR_OK;
}

tsr_status tsr_op_exchange_bytes(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                 const tsr_layout *const *operands, const int64_t *coordinate, int64_t *bytes)
{
    tsr_op_case c;
    tsr_op_inferred inferred;
    int64_t own[TSR_MAX_DIMS];
    int inside = 1;
    if (!op || !operands || !bytes)
        return tsr_op_refuse_null("tsr_op_exchange_bytes", op, operands, "bytes");
    TSR_TRY(tsr_op_begin(op->name, op, count, attributes, operands, &c));
    TSR_TRY(tsr_op_infer(&c, &inferred));
    tsr_status status = TSR_OK;
    if (!coordinate)
        status = tsr_mesh_coordinate(tsr_layout_mesh(inferred.results[0]), own, &inside);
    *bytes = 0;
    if (status == TSR_OK && inside && inferred.exchanged && op->exchanges)
        status = count_bytes(&c, &inferred, coordinate ? coordinate : own, bytes);
    tsr_op_inferred_clear(&inferred);
    return status;
}
