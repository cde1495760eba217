#include "ops/eager/run.h"

#include "ops/eager/compute.h"
#include "ops/rows/table.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

/* One call: its case, and what the rule gives. */
typedef struct eager_call {
    tsr_op_case c;
    const tsr_layout *operands[TSR_OP_MOST_OPERANDS];
    int operand_count, result_count;
    tsr_op_inferred inferred;
    tsr_dtensor *results[TSR_OP_MOST_RESULTS];
} eager_call;

static tsr_status check_host(const eager_call *e, const tsr_dtensor *tensor, const char *name)
{
    if (!tsr_dtensor_to_local(tensor).device.driver)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s is on a device, but %s has a kernel for the host alone",
                          e->c.caller, name, e->c.op->name);
}

/* Infers the results' layouts; the mesh must have an open communicator. */
static tsr_status begin_call(eager_call *e, const char *caller, const tsr_op *op, size_t count,
                             const tsr_attribute *attributes, const tsr_dtensor *const *operands)
{
    while (op->results[e->result_count])
        e->result_count++;
    for (; op->operands[e->operand_count]; e->operand_count++)
        e->operands[e->operand_count] =
            operands[e->operand_count] ? tsr_dtensor_layout(operands[e->operand_count]) : NULL;
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, e->operands, &e->c));
    TSR_TRY(tsr_comm_check_open(tsr_mesh_comm(tsr_layout_mesh(tsr_eager_some_operand(&e->c))), caller));
    for (int i = 0; i < e->operand_count; i++) {
        if (operands[i])
            TSR_TRY(check_host(e, operands[i], op->operands[i]));
    }
    return tsr_op_infer(&e->c, &e->inferred);
}

static void end_call(eager_call *e)
{
    tsr_op_inferred_clear(&e->inferred);
    for (int i = 0; i < TSR_OP_MOST_RESULTS; i++)
        tsr_dtensor_destroy(e->results[i]);
}

static tsr_status make_results(eager_call *e)
{
    for (int i = 0; i < e->result_count; i++)
        TSR_TRY(tsr_dtensor_create(e->inferred.results[i], tsr_device_host(), &e->results[i]));
    return TSR_OK;
}

tsr_status tsr_eager_run(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                         const tsr_dtensor *const *operands, tsr_dtensor **results)
{
    eager_call e = {.c = {NULL}};
    if (!results)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", caller);
    tsr_status status = begin_call(&e, caller, op, count, attributes, operands);
    if (status == TSR_OK)
        status = tsr_eager_compute(&e.c, &e.inferred, operands, e.results, make_results(&e));
    for (int i = 0; i < e.result_count && status == TSR_OK; i++)
        results[i] = tsr_dtensor_retain(e.results[i]);
    end_call(&e);
    return status;
}

/* Checks that a result's dtensor has the layout of the rule, and can be written. */
static tsr_status check_result(const eager_call *e, int result, const tsr_dtensor *tensor)
{
    const char *const name = e->c.op->results[result];
    if (!tensor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", e->c.caller, name);
    const tsr_layout *const own = tsr_dtensor_layout(tensor), *const wanted = e->inferred.results[result];
    if (!tsr_layout_equal(own, wanted)) {
        char ours[256], theirs[256];
        tsr_layout_print(own, ours, sizeof ours);
        tsr_layout_print(wanted, theirs, sizeof theirs);
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "%s: %s is %s as \"%s\" of %d dims, but the result is %s as \"%s\" of %d dims, with the shape that "
            "the operands give; make it by tsr_op_propagate() and tsr_dtensor_create()",
            e->c.caller, name, tsr_dtype_name(tsr_layout_dtype(own)), ours, tsr_layout_ndim(own),
            tsr_dtype_name(tsr_layout_dtype(wanted)), theirs, tsr_layout_ndim(wanted));
    }
    const tsr_tensor local = tsr_dtensor_to_local(tensor);
    if (tsr_tensor_overlaps(&local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of %s share memory, so it can only be read",
                              e->c.caller, name);
    return check_host(e, tensor, name);
}

tsr_status tsr_eager_run_into(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    eager_call e = {.c = {NULL}};
    tsr_status status = begin_call(&e, caller, op, count, attributes, operands);
    if (status == TSR_OK) {
        for (int i = 0; i < e.result_count && status == TSR_OK; i++)
            status = check_result(&e, i, results[i]);
        status = tsr_eager_compute(&e.c, &e.inferred, operands, results, status);
    }
    end_call(&e);
    return status;
}

static tsr_status check_arguments(const char *caller, const void *op, const void *operands, const void *results)
{
    if (op && operands && results)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", caller, !op ? "op" : operands ? "results" : "operands");
}

tsr_status tsr_op_call(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                       const tsr_dtensor *const *operands, tsr_dtensor **results)
{
    TSR_TRY(check_arguments("tsr_op_call", op, operands, results));
    return tsr_eager_run(op->name, op, count, attributes, operands, results);
}

tsr_status tsr_op_call_into(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    TSR_TRY(check_arguments("tsr_op_call_into", op, operands, results));
    return tsr_eager_run_into(op->name, op, count, attributes, operands, results);
}
