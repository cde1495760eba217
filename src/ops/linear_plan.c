#include "ops/agreement.h"
#include "ops/blas_guard.h"
#include "ops/layer.h"
#include <stdio.h>
#include <string.h>
#include <tessera/sys/memory.h>

#define CALLER "tsr_linear_plan"

/* What this rank brings for one operand. */
typedef struct local_form {
    tsr_layout *layout; /* NULL for no bias */
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
} local_form;

struct tsr_linear_plan {
    tsr_context *context;
    tsr_comm *comm;
    local_form x, w, b, own, y; /* own: as the rule leaves y */
    tsr_plan *move;             /* own to y; NULL where they are the same */
    bool inside, adds_bias;
    size_t own_bytes, product_bytes; /* of workspace: y as the rule leaves it where it moves on, then what products want */
};

static tsr_status fill_form(tsr_layout *layout, local_form *form)
{
    form->ndim = tsr_layout_ndim(layout);
    return tsr_layout_local(layout, NULL, form->shape, NULL);
}

static tsr_status retain_form(const tsr_layout *layout, local_form *form)
{
    if (!layout)
        return TSR_OK;
    form->layout = tsr_layout_retain((tsr_layout *)layout);
    return fill_form(form->layout, form);
}

/* A workspace part keeps the alignment of what follows it. */
static size_t aligned(size_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

static tsr_status measure(tsr_linear_plan *plan)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(plan->own.layout), coordinate, &inside));
    TSR_TRY(tsr_layer_adds_bias(plan->own.layout, &plan->adds_bias));
    plan->inside = inside;
    if (!inside)
        return TSR_OK;
    int64_t rows = 1;
    for (int dim = 0; dim < plan->x.ndim - 1; dim++)
        rows *= plan->x.shape[dim];
    plan->product_bytes = tsr_matmul_workspace_bytes(tsr_layout_dtype(plan->x.layout), rows, plan->w.shape[0], plan->w.shape[1]);
    size_t bytes;
    TSR_TRY(tsr_layout_local_bytes(plan->own.layout, NULL, &bytes));
    plan->own_bytes = plan->move ? aligned(bytes) : 0;
    return TSR_OK;
}

static tsr_status check_result_mesh(const tsr_layout *x, const tsr_layout *y)
{
    if (!y || tsr_mesh_equal(tsr_layout_mesh(x), tsr_layout_mesh(y)))
        return TSR_OK;
    char ours[128], theirs[128];
    tsr_mesh_print(tsr_layout_mesh(x), ours, sizeof(ours));
    tsr_mesh_print(tsr_layout_mesh(y), theirs, sizeof(theirs));
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: x is on mesh %s but y on mesh %s; both must be on one mesh", ours, theirs);
}

static tsr_status fill_plan(tsr_linear_plan *plan, const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const tsr_layout *y)
{
    TSR_TRY(check_result_mesh(x, y));
    TSR_TRY(tsr_linear_propagate(x, w, b, &plan->own.layout));
    TSR_TRY(fill_form(plan->own.layout, &plan->own));
    TSR_TRY(retain_form(x, &plan->x));
    TSR_TRY(retain_form(w, &plan->w));
    TSR_TRY(retain_form(b, &plan->b));
    TSR_TRY(retain_form(y ? y : plan->own.layout, &plan->y));
    if (!tsr_layout_equal(plan->own.layout, plan->y.layout))
        TSR_TRY(tsr_plan_create(plan->own.layout, plan->y.layout, NULL, &plan->move));
    return measure(plan);
}

tsr_status tsr_linear_plan_create(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const tsr_layout *y, tsr_linear_plan **out)
{
    if (!x || !w || !out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_create: %s is NULL; only b and y may be", !x ? "x" : !w ? "w" : "out");
    tsr_comm *comm = tsr_mesh_comm(tsr_layout_mesh(x));
    if (!comm)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              CALLER "_create: x is on an abstract mesh; a layer that runs needs a mesh over a communicator");
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(x));
    tsr_linear_plan *plan = NULL;
    tsr_status status = tsr_allocate(context, sizeof(*plan), (void **)&plan);
    if (status == TSR_OK) {
        *plan = (tsr_linear_plan){.context = tsr_context_retain(context), .comm = comm};
        status = fill_plan(plan, x, w, b, y);
        tsr_blas_hold();
    }
    if (!tsr_is_shared_fault(status))
        status = tsr_agree(comm, CALLER "_create", status);
    if (status == TSR_OK && plan->move)
        status = tsr_plan_prepare(plan->move, comm);
    if (status == TSR_OK)
        *out = plan;
    else
        tsr_linear_plan_destroy(plan);
    return status;
}

void tsr_linear_plan_destroy(tsr_linear_plan *plan)
{
    if (!plan)
        return;
    tsr_blas_release();
    tsr_plan_destroy(plan->move);
    tsr_layout_destroy(plan->y.layout);
    tsr_layout_destroy(plan->own.layout);
    tsr_layout_destroy(plan->b.layout);
    tsr_layout_destroy(plan->w.layout);
    tsr_layout_destroy(plan->x.layout);
    tsr_context *context = plan->context;
    tsr_release(context, plan);
    tsr_context_destroy(context);
}

const tsr_layout *tsr_linear_plan_result(const tsr_linear_plan *plan)
{
    return plan->y.layout;
}

size_t tsr_linear_plan_workspace_bytes(const tsr_linear_plan *plan)
{
    const size_t moving = plan->move ? tsr_plan_workspace_bytes(plan->move) : 0;
    /* Products are done before anything moves, so both use what lies behind the rule's own y. */
    return plan->own_bytes + (moving > plan->product_bytes ? moving : plan->product_bytes);
}

static tsr_status refuse_tensor(const local_form *form, const char *name, const tsr_tensor *tensor)
{
    if (!tensor)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: %s is NULL, but the plan has a layout for it", name);
    char wanted[256] = "", given[256] = "";
    size_t a = 0, b = 0;
    for (int dim = 0; dim < form->ndim; dim++)
        a += (size_t)snprintf(wanted + a, sizeof(wanted) - a, "%s%lld", dim ? "x" : "", (long long)form->shape[dim]);
    for (int dim = 0; dim < tensor->ndim && dim < TSR_MAX_DIMS; dim++)
        b += (size_t)snprintf(given + b, sizeof(given) - b, "%s%lld", dim ? "x" : "", (long long)tensor->shape[dim]);
    return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: %s is %s %s, but the plan's layout gives this rank %s %s", name,
                          tsr_dtype_name(tensor->dtype), given, tsr_dtype_name(tsr_layout_dtype(form->layout)), wanted);
}

static tsr_status check_tensor(const local_form *form, const char *name, const tsr_tensor *tensor)
{
    if (!form->layout)
        return tensor ? tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: %s is given, but the plan was made without it", name) : TSR_OK;
    if (!tensor || tensor->ndim != form->ndim || tensor->dtype != tsr_layout_dtype(form->layout))
        return refuse_tensor(form, name, tensor);
    bool empty = false, same = true;
    for (int dim = 0; dim < form->ndim; dim++) {
        same = same && tensor->shape[dim] == form->shape[dim];
        empty = empty || form->shape[dim] == 0;
    }
    if (!same)
        return refuse_tensor(form, name, tensor);
    if (!tensor->data && !empty)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: %s has no data", name);
    return TSR_OK;
}

static tsr_status check_execution(const tsr_linear_plan *plan, const tsr_tensor *const *operands, const void *workspace, size_t bytes)
{
    static const char *const names[] = {"x", "w", "b", "y"};
    const local_form *const forms[] = {&plan->x, &plan->w, &plan->b, &plan->y};
    for (int i = 0; i < 4; i++)
        TSR_TRY(check_tensor(forms[i], names[i], operands[i]));
    TSR_TRY(tsr_layer_check_devices(CALLER "_execute", operands, names, 4));
    const size_t wanted = tsr_linear_plan_workspace_bytes(plan);
    if (bytes < wanted || (wanted > 0 && !workspace))
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: workspace %p of %zu bytes; the plan wants %zu bytes", workspace, bytes,
                              wanted);
    return TSR_OK;
}

/* What lies behind the rule's own y in the workspace. */
static void *rest_of(const tsr_linear_plan *plan, void *workspace)
{
    return workspace ? (char *)workspace + plan->own_bytes : NULL;
}

/* Where the products of this execution go: y itself, or the front of the workspace if y still has to move. */
static tsr_tensor own_tensor(const tsr_linear_plan *plan, const tsr_tensor *y, void *workspace)
{
    if (!plan->move)
        return *y;
    tsr_tensor own = tsr_tensor_contiguous(workspace, y->dtype, plan->own.ndim, plan->own.shape);
    own.device = y->device;
    return own;
}

tsr_status tsr_linear_plan_execute(const tsr_linear_plan *plan, const tsr_tensor *x, const tsr_tensor *w, const tsr_tensor *b,
                                   const tsr_tensor *y, void *workspace, size_t bytes, tsr_stream stream)
{
    if (!plan)
        return tsr_status_set(TSR_ERROR_ARGUMENT, CALLER "_execute: plan is NULL");
    if (!plan->inside)
        return TSR_OK;
    tsr_status status = check_execution(plan, (const tsr_tensor *[]){x, w, b, y}, workspace, bytes);
    tsr_tensor own;
    if (status == TSR_OK) {
        own = own_tensor(plan, y, workspace);
        const tsr_matmul_site site = {x->device, x->dtype, stream, rest_of(plan, workspace)};
        status = tsr_layer_forward(&site, x, w, plan->adds_bias ? b : NULL, &own);
    }
    if (!plan->move)
        return status;
    if (status == TSR_OK)
        return tsr_plan_execute(plan->move, plan->comm, &own, y, rest_of(plan, workspace), bytes - plan->own_bytes, stream);
    /* Peers wait in the redistribution: without tensors this rank takes part in it as failed, with the sentence of its own failure. */
    tsr_kept_message kept;
    tsr_message_keep(&kept);
    tsr_plan_execute(plan->move, plan->comm, NULL, NULL, NULL, 0, stream);
    return tsr_message_restore(&kept, status);
}
