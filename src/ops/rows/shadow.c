#include "ops/rows/shadow.h"

#include "ops/rows/settle.h"
#include "ops/rows/table.h"

#include <tessera/sys/status.h>

#include <string.h>

static const char *no_variable(void *user, const char *name)
{
    (void)user;
    (void)name;
    return NULL;
}

/* A context that answers questions of layouts as `own` does. */
static tsr_status make_context(tsr_context *own, tsr_context **out)
{
    tsr_context_options options = TSR_CONTEXT_OPTIONS_INIT;
    options.environment = no_variable;
    options.policy = tsr_context_policy(own, &options.policy_bytes);
    options.ops = tsr_context_ops(own, &options.op_count);
    return tsr_context_create(&options, out);
}

static tsr_status make_mesh(tsr_context *context, const tsr_mesh *mesh, tsr_mesh **out)
{
    int64_t shape[TSR_MAX_DIMS];
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++)
        shape[k] = tsr_mesh_size(mesh, k);
    return tsr_mesh_create_abstract(context, tsr_mesh_ndim(mesh), shape, NULL, NULL, out);
}

static tsr_status copy_layout(const tsr_op_shadow *s, const tsr_layout *layout, tsr_layout **out)
{
    return tsr_layout_create(s->mesh, tsr_layout_placements(layout), tsr_layout_ndim(layout), tsr_layout_shape(layout),
                             tsr_layout_dtype(layout), out);
}

tsr_status tsr_op_shadow_make(int count, const tsr_layout *const *layouts, tsr_op_shadow *out)
{
    int some = 0;
    *out = (tsr_op_shadow){.context = NULL};
    while (!layouts[some])
        some++;
    const tsr_mesh *const mesh = tsr_layout_mesh(layouts[some]);
    TSR_TRY(make_context(tsr_mesh_context(mesh), &out->context));
    TSR_TRY(make_mesh(out->context, mesh, &out->mesh));
    for (int i = some; i < count; i++) {
        if (layouts[i] && !tsr_op_are_on_one_mesh(mesh, tsr_layout_mesh(layouts[i])))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "the tensors of a call are on two meshes");
        if (layouts[i])
            TSR_TRY(copy_layout(out, layouts[i], &out->copies[i]));
    }
    return TSR_OK;
}

tsr_status tsr_op_shadow_case(const tsr_op_case *c, const tsr_layout *gradient, tsr_op_shadow *out, tsr_op_case *copied)
{
    const tsr_layout *layouts[TSR_OP_SHADOW_LAYOUTS] = {[TSR_OP_MOST_OPERANDS] = gradient};
    for (int i = 0; c->op->operands[i]; i++)
        layouts[i] = c->operands[i];
    *copied = *c;
    copied->operands = (const tsr_layout *const *)out->copies;
    return tsr_op_shadow_make(TSR_OP_SHADOW_LAYOUTS, layouts, out);
}

void tsr_op_shadow_clear(tsr_op_shadow *shadow)
{
    for (int i = 0; i < TSR_OP_SHADOW_LAYOUTS; i++)
        tsr_layout_destroy(shadow->copies[i]);
    tsr_mesh_destroy(shadow->mesh);
    tsr_context_destroy(shadow->context);
}

static tsr_context *context_of(const tsr_op_case *c)
{
    int some = 0;
    while (!c->operands[some])
        some++;
    return tsr_mesh_context(tsr_layout_mesh(c->operands[some]));
}

tsr_status tsr_op_foresee(const tsr_op_case *c, tsr_op_outlook *out)
{
    int64_t bytes;
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_layout *operands[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_policy policy = tsr_context_policy(context_of(c), &bytes);
    memset(out, 0, sizeof *out);
    tsr_status status = tsr_op_infer(c, &out->inferred);
    if (status != TSR_ERROR_ARGUMENT || policy == TSR_POLICY_FORBID)
        return status;
    TSR_TRY(tsr_op_settle_case(c, policy, bytes, fitted));
    tsr_op_case moved = *c;
    moved.operands = operands;
    for (int i = 0; c->op->operands[i]; i++)
        operands[i] = fitted[i];
    status = tsr_op_infer(&moved, &out->inferred);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(fitted[i]);
    out->settles = true;
    return status;
}
