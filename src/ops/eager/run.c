#include "ops/eager/run.h"

#include "ops/eager/attend.h"
#include "ops/eager/cache.h"
#include "ops/eager/compute.h"
#include "ops/eager/settle.h"
#include "ops/eager/view.h"
#include "ops/rows/table.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/device.h>
#include <tessera/sys/status.h>

/* One call: its case, and what the rule gives. */
typedef struct eager_call {
    tsr_op_case c;
    const tsr_layout *operands[TSR_OP_MOST_OPERANDS];
    const tsr_mesh *mesh;
    tsr_eager_cache *cache;
    const tsr_eager_answer *answer;
    tsr_device device; /* of the first operand */
    const char *first; /* its name */
} eager_call;

/* Checks that a tensor lies where the others do. */
static tsr_status check_device(const eager_call *e, const tsr_dtensor *tensor, const char *name)
{
    if (tsr_device_same(tsr_dtensor_to_local(tensor).device, e->device))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: %s lies on another device than %s; all tensors of a call must be on one", e->c.caller,
                          name, e->first);
}

/* Begins a call; the mesh must have an open communicator. */
static tsr_status begin_call(eager_call *e, const char *caller, const tsr_op *op, size_t count,
                             const tsr_attribute *attributes, const tsr_dtensor *const *operands)
{
    for (int i = 0; op->operands[i]; i++)
        e->operands[i] = operands[i] ? tsr_dtensor_layout(operands[i]) : NULL;
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, e->operands, &e->c));
    int some = 0;
    while (!e->operands[some])
        some++;
    e->mesh = tsr_layout_mesh(e->operands[some]);
    e->device = tsr_dtensor_to_local(operands[some]).device;
    e->first = op->operands[some];
    TSR_TRY(tsr_comm_check_open(tsr_mesh_comm(e->mesh), caller));
    for (int i = 0; op->operands[i]; i++) {
        if (operands[i])
            TSR_TRY(check_device(e, operands[i], op->operands[i]));
    }
    return TSR_OK;
}

/* Finds the answer for a call that has begun. */
static tsr_status find_answer(eager_call *e)
{
    TSR_TRY(tsr_eager_cache_of(e->mesh, &e->cache));
    return tsr_eager_answer_for(e->cache, &e->c, &e->answer);
}

static tsr_computation describe(const eager_call *e, const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    int inside;
    const int64_t *const coordinate = tsr_eager_coordinate(e->cache, &inside);
    return (tsr_computation){.c = &e->c,
                             .exchanged = e->c.op->exchanges ? e->answer->inferred.exchanged : 0,
                             .mesh = e->mesh,
                             .coordinate = coordinate,
                             .inside = inside,
                             .device = e->device,
                             .operands = operands,
                             .results = results};
}

static tsr_status compute(const eager_call *e, const tsr_dtensor *const *operands, tsr_dtensor *const *results,
                          tsr_status local)
{
    const tsr_computation computation = describe(e, operands, results);
    return tsr_eager_compute(&computation, local);
}

/* Makes a result in the layout that was inferred, which is kept on an abstract mesh. `*done`: it is
 * a view, which needs no computation. */
static tsr_status make_result(const eager_call *e, int result, const tsr_dtensor *const *operands, tsr_dtensor **out,
                              bool *done)
{
    const tsr_layout *const kept = e->answer->inferred.results[result];
    tsr_layout *layout;
    tsr_status status = TSR_OK;
    TSR_TRY(tsr_layout_create(e->mesh, tsr_layout_placements(kept), tsr_layout_ndim(kept), tsr_layout_shape(kept),
                              tsr_layout_dtype(kept), &layout));
    if (e->c.op->view) {
        const tsr_computation computation = describe(e, operands, NULL);
        status = tsr_eager_view(&computation, layout, out);
        *done = status == TSR_OK && *out;
    }
    if (status == TSR_OK && !*done)
        status = tsr_dtensor_create(layout, e->device, out);
    tsr_layout_destroy(layout);
    return status;
}

/* Runs an op on operands that are moved to where they fit. */
static tsr_status run_settled(const eager_call *e, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, tsr_dtensor **made, tsr_dtensor *const *into)
{
    tsr_eager_settled settled;
    TSR_TRY(tsr_eager_settle(&e->c, e->answer, operands, &settled));
    const tsr_dtensor *const *const taken = (const tsr_dtensor *const *)settled.operands;
    const tsr_status status = made ? tsr_eager_run(e->c.caller, e->c.op, count, attributes, taken, made)
                                   : tsr_eager_run_into(e->c.caller, e->c.op, count, attributes, taken, into);
    tsr_eager_settled_clear(&settled);
    return status;
}

tsr_status tsr_eager_run(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                         const tsr_dtensor *const *operands, tsr_dtensor **results)
{
    eager_call e;
    tsr_dtensor *made[TSR_OP_MOST_RESULTS] = {NULL};
    if (!results)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: out is NULL", caller);
    TSR_TRY(begin_call(&e, caller, op, count, attributes, operands));
    tsr_status status = find_answer(&e);
    if (status != TSR_OK)
        return status == TSR_ERROR_MEMORY ? tsr_eager_attend(&e.c, operands, status) : status;
    if (e.answer->settles)
        return run_settled(&e, count, attributes, operands, results, NULL);
    bool done = false;
    for (int i = 0; i < e.answer->result_count && status == TSR_OK; i++)
        status = make_result(&e, i, operands, &made[i], &done);
    if (!done)
        status = compute(&e, operands, made, status);
    for (int i = 0; op->results[i]; i++) {
        if (status == TSR_OK)
            results[i] = made[i];
        else
            tsr_dtensor_destroy(made[i]);
    }
    return status;
}

tsr_status tsr_eager_check_fit(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                               const tsr_dtensor *const *operands)
{
    eager_call e;
    tsr_op_inferred inferred;
    TSR_TRY(begin_call(&e, caller, op, count, attributes, operands));
    TSR_TRY(find_answer(&e));
    if (!e.answer->settles)
        return TSR_OK;
    TSR_TRY(tsr_op_infer(&e.c, &inferred));
    tsr_op_inferred_clear(&inferred);
    return TSR_OK;
}

/* Checks that a result's dtensor has the layout of the rule. */
static tsr_status check_layout(const eager_call *e, int result, const tsr_layout *own)
{
    const tsr_layout *const wanted = e->answer->inferred.results[result];
    if (tsr_layout_equal(own, wanted) && tsr_eager_is_on(e->cache, own))
        return TSR_OK;
    char ours[256], theirs[256];
    tsr_layout_print(own, ours, sizeof ours);
    tsr_layout_print(wanted, theirs, sizeof theirs);
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "%s: %s is %s as \"%s\" of %d dims, but the result is %s as \"%s\" of %d dims, with the shape that "
        "the operands give; make it by tsr_op_propagate() and tsr_dtensor_create()",
        e->c.caller, e->c.op->results[result], tsr_dtype_name(tsr_layout_dtype(own)), ours, tsr_layout_ndim(own),
        tsr_dtype_name(tsr_layout_dtype(wanted)), theirs, tsr_layout_ndim(wanted));
}

/* Finds the answer for the operands, and checks that the results have its layouts. */
static tsr_status check_layouts(eager_call *e, const tsr_layout *const *layouts)
{
    if (tsr_eager_recall(e->cache, &e->c, layouts, &e->answer))
        return TSR_OK;
    TSR_TRY(tsr_eager_answer_for(e->cache, &e->c, &e->answer));
    if (e->answer->settles)
        return TSR_OK;
    for (int i = 0; i < e->answer->result_count; i++)
        TSR_TRY(check_layout(e, i, layouts[i]));
    tsr_eager_remember(e->cache, &e->c, layouts, e->answer);
    return TSR_OK;
}

/* Checks that a result can be written. */
static tsr_status check_writable(const eager_call *e, int result, const tsr_dtensor *tensor)
{
    const char *const name = e->c.op->results[result];
    const tsr_tensor local = tsr_dtensor_to_local(tensor);
    if (tsr_tensor_overlaps(&local))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: elements of %s share memory, so it can only be read",
                              e->c.caller, name);
    return check_device(e, tensor, name);
}

static tsr_status check_results(eager_call *e, tsr_dtensor *const *results)
{
    const tsr_layout *layouts[TSR_OP_MOST_RESULTS];
    TSR_TRY(tsr_eager_cache_of(e->mesh, &e->cache));
    for (int i = 0; e->c.op->results[i]; i++) {
        /* The answer tells whether peers wait for this rank. */
        if (!results || !results[i])
            TSR_TRY(tsr_eager_answer_for(e->cache, &e->c, &e->answer));
        if (!results || !results[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", e->c.caller, e->c.op->results[i]);
        layouts[i] = tsr_dtensor_layout(results[i]);
    }
    TSR_TRY(check_layouts(e, layouts));
    for (int i = 0; e->c.op->results[i]; i++)
        TSR_TRY(check_writable(e, i, results[i]));
    return TSR_OK;
}

tsr_status tsr_eager_run_into(const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                              const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    eager_call e;
    e.answer = NULL;
    TSR_TRY(begin_call(&e, caller, op, count, attributes, operands));
    const tsr_status status = check_results(&e, results);
    if (e.answer && e.answer->settles)
        return run_settled(&e, count, attributes, operands, NULL, results);
    if (e.answer)
        return compute(&e, operands, results, status);
    return status == TSR_ERROR_MEMORY ? tsr_eager_attend(&e.c, operands, status) : status;
}

tsr_status tsr_op_call(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                       const tsr_dtensor *const *operands, tsr_dtensor **results)
{
    if (!op || !operands || !results)
        return tsr_op_refuse_null("tsr_op_call", op, operands, "results");
    return tsr_eager_run(op->name, op, count, attributes, operands, results);
}

tsr_status tsr_op_call_into(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                            const tsr_dtensor *const *operands, tsr_dtensor *const *results)
{
    if (!op || !operands || !results)
        return tsr_op_refuse_null("tsr_op_call_into", op, operands, "results");
    return tsr_eager_run_into(op->name, op, count, attributes, operands, results);
}
