/* Grouped products of local tensors: those of one rank, on a mesh of its own. */
#include "ops/eager/typed/typed.h"

#include <tessera/products.h>
#include <tessera/sys/memory.h>
#include <tessera/sys/ops.h>
#include <tessera/sys/status.h>

#include <stdbool.h>

enum { OPERANDS_OF_ALL = 3 };

/* A product. */
typedef struct product {
    const char *caller;
    const tsr_op *op;
    tsr_mesh *mesh;
    const char *const *names; /* of the operands, and the result */
    const tsr_tensor *const *operands;
    const tsr_tensor *out;
    bool is_checked_alone; /* nothing is computed */
} product;

static tsr_status check_tensor(const product *p, int i)
{
    const tsr_tensor *const t = i < OPERANDS_OF_ALL ? p->operands[i] : p->out;
    int64_t count;
    if (!t)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", p->caller, p->names[i]);
    if (t->device.driver || t->device.index != 0)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s is on a device: local grouped products are on the host",
                              p->caller, p->names[i]);
    const tsr_status status = tsr_tensor_count(t, &count);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: %s: %s", p->caller, p->names[i], tsr_status_message());
    if (count > 0 && !t->data)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has no data, but %lld elements", p->caller, p->names[i],
                              (long long)count);
    for (int dim = 0; dim < t->ndim; dim++)
        if (t->strides[dim] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has stride %lld: strides are 0 or more", p->caller,
                                  p->names[i], (long long)t->strides[dim]);
    return TSR_OK;
}

/* Checks that the result is what the op makes. */
static tsr_status check_result(const product *p, const tsr_layout *made)
{
    bool same = p->out->ndim == tsr_layout_ndim(made) && p->out->dtype == tsr_layout_dtype(made);
    for (int dim = 0; same && dim < p->out->ndim; dim++)
        same = p->out->shape[dim] == tsr_layout_shape(made)[dim];
    if (!same)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s has not the shape and dtype of the product, %s", p->caller,
                              p->names[OPERANDS_OF_ALL], tsr_dtype_name(tsr_layout_dtype(made)));
    if (tsr_tensor_overlaps(p->out))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is written, but its elements share memory", p->caller,
                              p->names[OPERANDS_OF_ALL]);
    return TSR_OK;
}

static tsr_status compute(const product *p, const tsr_attribute *attribute, const tsr_layout *const *layouts,
                          const tsr_layout *made)
{
    static const int64_t origin[TSR_MAX_DIMS];
    tsr_tensor inputs[OPERANDS_OF_ALL];
    tsr_context *const context = tsr_mesh_context(p->mesh);
    void *workspace = NULL;
    for (int i = 0; i < OPERANDS_OF_ALL; i++)
        inputs[i] = *p->operands[i];
    tsr_kernel_call call = {.op = p->caller,
                            .code = p->op->code,
                            .attributes = attribute,
                            .kernels = tsr_context_kernels(context),
                            .input_count = OPERANDS_OF_ALL,
                            .output_count = 1,
                            .inputs = inputs,
                            .outputs = p->out,
                            .layouts = layouts,
                            .result_layouts = &made,
                            .coordinate = origin,
                            .stage = TSR_STAGE_WHOLE};
    const int64_t bytes = p->op->workspace_bytes(&call);
    if (bytes > 0)
        TSR_TRY(tsr_allocate_data(context, (size_t)bytes, &workspace));
    call.workspace = workspace;
    const tsr_status status = p->op->host(&call);
    tsr_release(context, workspace);
    return status;
}

/* Computes with layouts that are made; `attribute` may be NULL. */
static tsr_status compute_checked(const product *p, const tsr_attribute *attribute, const tsr_layout *const *layouts)
{
    tsr_layout *made[TSR_OP_MOST_RESULTS];
    TSR_TRY(tsr_op_propagate(p->op, attribute ? 1 : 0, attribute, layouts, made));
    tsr_status status = check_result(p, made[0]);
    if (status == TSR_OK && !p->is_checked_alone)
        status = compute(p, attribute, layouts, made[0]);
    tsr_layout_destroy(made[0]);
    return status;
}

static tsr_status run(const product *p, const tsr_attribute *attribute)
{
    const tsr_placement whole = tsr_replicate();
    tsr_layout *layouts[OPERANDS_OF_ALL] = {NULL};
    tsr_status status = TSR_OK;
    for (int i = 0; i <= OPERANDS_OF_ALL && status == TSR_OK; i++)
        status = check_tensor(p, i);
    for (int i = 0; i < OPERANDS_OF_ALL && status == TSR_OK; i++)
        status = tsr_layout_create(p->mesh, &whole, p->operands[i]->ndim, p->operands[i]->shape, p->operands[i]->dtype,
                                   &layouts[i]);
    if (status == TSR_OK)
        status = compute_checked(p, attribute, (const tsr_layout *const *)layouts);
    for (int i = 0; i < OPERANDS_OF_ALL; i++)
        tsr_layout_destroy(layouts[i]);
    return status;
}

/* Checks and computes one product. Gradients' rows have an attribute, the result's dtype. */
static tsr_status multiply(tsr_context *context, product p, const char *row_name)
{
    static const int64_t one = 1;
    const bool is_gradient = row_name[sizeof "grouped_matmul" - 1] != 0;
    const tsr_attribute dtype = tsr_attribute_dtype("dtype", p.out ? p.out->dtype : TSR_F32);
    TSR_TRY(tsr_mesh_create_abstract(context, 1, &one, NULL, NULL, &p.mesh));
    p.op = row(row_name);
    const tsr_status status = run(&p, is_gradient ? &dtype : NULL);
    tsr_mesh_destroy(p.mesh);
    return status;
}

tsr_status tsr_grouped_matmul_local(tsr_context *context, const tsr_tensor *x, const tsr_tensor *w,
                                    const tsr_tensor *sizes, const tsr_tensor *out)
{
    static const char *const names[] = {"x", "w", "sizes", "out"};
    const tsr_tensor *const operands[] = {x, w, sizes};
    return multiply(context, (product){"tsr_grouped_matmul_local", NULL, NULL, names, operands, out, false},
                    "grouped_matmul");
}

tsr_status tsr_grouped_matmul_local_backward(tsr_context *context, const tsr_tensor *x, const tsr_tensor *w,
                                             const tsr_tensor *sizes, const tsr_tensor *dout, const tsr_tensor *dx,
                                             const tsr_tensor *dw)
{
    static const char caller[] = "tsr_grouped_matmul_local_backward";
    static const char *const names_x[] = {"dout", "w", "sizes", "dx"}, *const names_w[] = {"x", "dout", "sizes", "dw"};
    const tsr_tensor *const of_x[] = {dout, w, sizes}, *const of_w[] = {x, dout, sizes};
    const product of_dw = {caller, NULL, NULL, names_w, of_w, dw, false};
    product checked = of_dw;
    checked.is_checked_alone = true;
    /* Nothing is written if either is wrong. */
    if (dx && dw)
        TSR_TRY(multiply(context, checked, "grouped_matmul_gradient_w"));
    if (dx)
        TSR_TRY(
            multiply(context, (product){caller, NULL, NULL, names_x, of_x, dx, false}, "grouped_matmul_gradient_x"));
    return dw ? multiply(context, of_dw, "grouped_matmul_gradient_w") : TSR_OK;
}
