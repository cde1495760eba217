#include "layers.h"

#include "moves.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

/* The layouts of a layer; those that it lacks are NULL. */
typedef struct layer {
    bool row;
    bool along[TSR_MAX_DIMS]; /* the mesh dims that cut the weight */
    tsr_layout *x, *w, *b, *y, *dy, *dx, *dw, *db;
} layer;

static void destroy_layouts(layer *l)
{
    tsr_layout *const all[] = {l->x, l->w, l->b, l->y, l->dy, l->dx, l->dw, l->db};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tsr_layout_destroy(all[i]);
}

/* `text` if it is given, else `in` along the dims that cut the weight, and `out` elsewhere. */
static tsr_status choose_placements(const tsr_xla_work *work, const layer *l, const char *name, const char *text,
                                    tsr_placement in, tsr_placement out, tsr_placement *placements, void **numbers)
{
    *numbers = NULL;
    if (text)
        return tsr_xla_placements(work->context, work->mesh, name, text, placements, numbers);
    for (int m = 0; m < tsr_mesh_ndim(work->mesh); m++)
        placements[m] = l->along[m] ? in : out;
    return TSR_OK;
}

static tsr_status lay_out_x(tsr_xla_work *work, const tsr_xla_attributes *attributes, const XLA_FFI_Buffer *x, layer *l)
{
    tsr_placement placements[TSR_MAX_DIMS];
    void *numbers;
    const int last = (int)x->rank - 1;
    TSR_TRY(choose_placements(work, l, "x", attributes->x, l->row ? tsr_shard(last) : tsr_replicate(), tsr_shard(0),
                              placements, &numbers));
    const tsr_status status = tsr_xla_layout(work->mesh, x, placements, &attributes->x_shape, "x", &l->x);
    tsr_release(work->context, numbers);
    return status;
}

static tsr_status lay_out_w(tsr_xla_work *work, const tsr_xla_attributes *attributes, const XLA_FFI_Buffer *w, layer *l)
{
    tsr_placement placements[TSR_MAX_DIMS];
    if (w->rank != 2)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "w has %lld dims; it is (out, in)", (long long)w->rank);
    for (int m = 0; m < tsr_mesh_ndim(work->mesh); m++)
        placements[m] = l->along[m] ? tsr_shard(l->row ? 1 : 0) : tsr_replicate();
    return tsr_xla_layout(work->mesh, w, placements, &attributes->w_shape, "w", &l->w);
}

static tsr_status lay_out_b(tsr_xla_work *work, tsr_dtype dtype, layer *l)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int m = 0; m < tsr_mesh_ndim(work->mesh); m++)
        placements[m] = l->along[m] && !l->row ? tsr_shard(0) : tsr_replicate();
    return tsr_layout_create(work->mesh, placements, 1, tsr_layout_shape(l->w), dtype, &l->b);
}

static tsr_status lay_out_y(tsr_xla_work *work, const tsr_xla_attributes *attributes, layer *l)
{
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_layout *rule = NULL;
    void *numbers = NULL;
    TSR_TRY(tsr_linear_propagate(l->x, l->w, l->b, &rule));
    const int last = tsr_layout_ndim(l->x) - 1;
    tsr_status status = choose_placements(work, l, "y", attributes->y, l->row ? tsr_replicate() : tsr_shard(last),
                                          tsr_shard(0), placements, &numbers);
    if (status == TSR_OK)
        status = tsr_layout_with(rule, placements, &l->y);
    tsr_layout_destroy(rule);
    tsr_release(work->context, numbers);
    return status;
}

static tsr_status lay_out_operands(tsr_xla_work *work, const tsr_xla_attributes *attributes, tsr_xla_kind kind,
                                   const XLA_FFI_CallFrame *frame, layer *l)
{
    const int ndim = tsr_mesh_ndim(work->mesh);
    l->row = kind == TSR_XLA_ROW || kind == TSR_XLA_ROW_BACKWARD;
    if (attributes->dims && *attributes->dims)
        TSR_TRY(tsr_xla_dims(work->mesh, attributes->dims, l->along));
    else
        l->along[ndim - 1] = true;
    const XLA_FFI_Buffer *const x = tsr_xla_work_buffer(work, frame, 0);
    if (x->rank == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "x is a scalar; its last dim is that of the features");
    TSR_TRY(lay_out_x(work, attributes, x, l));
    return lay_out_w(work, attributes, tsr_xla_work_buffer(work, frame, 1), l);
}

/* ---- Forward ---- */

static tsr_status prepare_forward(tsr_xla_work *work, const tsr_xla_attributes *attributes,
                                  const XLA_FFI_CallFrame *frame, layer *l)
{
    const bool bias = work->operands == 3;
    if (bias)
        TSR_TRY(lay_out_b(work, tsr_xla_dtype(tsr_xla_work_buffer(work, frame, 2)->dtype), l));
    TSR_TRY(lay_out_y(work, attributes, l));
    TSR_TRY(tsr_xla_work_box(work, frame, 0, l->x, "x"));
    TSR_TRY(tsr_xla_work_box(work, frame, 1, l->w, "w"));
    if (bias)
        TSR_TRY(tsr_xla_work_box(work, frame, 2, l->b, "b"));
    TSR_TRY(tsr_xla_work_box(work, frame, work->operands, l->y, "y"));
    TSR_TRY(tsr_linear_plan_create_on(l->x, l->w, l->b, l->y, work->lane.device, &work->forward));
    return tsr_xla_work_allocate(work, tsr_linear_plan_workspace_bytes(work->forward));
}

static tsr_status execute_forward(const tsr_xla_work *work)
{
    const tsr_tensor *const t = work->tensors;
    return tsr_linear_plan_execute(work->forward, &t[0], &t[1], work->operands == 3 ? &t[2] : NULL, &t[work->operands],
                                   work->workspace, work->bytes, work->lane.stream);
}

/* ---- Backward ---- */

static tsr_status lay_out_gradient(tsr_xla_work *work, const char *name, const char *text, const tsr_layout *operand,
                                   tsr_layout **out)
{
    tsr_layout *own = NULL;
    void *numbers = NULL;
    tsr_placement placements[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_gradient(operand, &own));
    if (!text) {
        *out = own;
        return TSR_OK;
    }
    tsr_status status = tsr_xla_placements(work->context, work->mesh, name, text, placements, &numbers);
    if (status == TSR_OK)
        status = tsr_layout_with(own, placements, out);
    tsr_layout_destroy(own);
    tsr_release(work->context, numbers);
    return status;
}

static tsr_status prepare_backward(tsr_xla_work *work, const tsr_xla_attributes *attributes,
                                   const XLA_FFI_CallFrame *frame, layer *l)
{
    const bool bias = work->results == 3;
    if (bias)
        TSR_TRY(lay_out_b(work, tsr_xla_dtype(tsr_xla_work_buffer(work, frame, 5)->dtype), l));
    TSR_TRY(lay_out_y(work, attributes, l));
    TSR_TRY(tsr_layout_gradient(l->y, &l->dy));
    TSR_TRY(lay_out_gradient(work, "dx", attributes->dx, l->x, &l->dx));
    TSR_TRY(lay_out_gradient(work, "dw", attributes->dw, l->w, &l->dw));
    if (bias)
        TSR_TRY(lay_out_gradient(work, "db", attributes->db, l->b, &l->db));
    const tsr_layout *const layouts[] = {l->x, l->w, l->dy, l->dx, l->dw, l->db};
    static const char *const names[] = {"x", "w", "dy", "dx", "dw", "db"};
    for (int at = 0; at < (bias ? 6 : 5); at++)
        TSR_TRY(tsr_xla_work_box(work, frame, at, layouts[at], names[at]));
    TSR_TRY(tsr_linear_backward_plan_create(l->x, l->w, l->b, l->dy, l->dx, l->dw, l->db, work->lane.device,
                                            &work->backward));
    return tsr_xla_work_allocate(work, tsr_linear_backward_plan_workspace_bytes(work->backward));
}

static tsr_status execute_backward(const tsr_xla_work *work)
{
    const tsr_tensor *const t = work->tensors;
    return tsr_linear_backward_plan_execute(work->backward, &t[0], &t[1], &t[2], &t[3], &t[4],
                                            work->results == 3 ? &t[5] : NULL, work->workspace, work->bytes,
                                            work->lane.stream);
}

/* ---- Both ---- */

static tsr_status check_counts(const tsr_xla_work *work, bool backward)
{
    const int64_t in = work->operands, out = work->results;
    if (backward ? in == 3 && (out == 2 || out == 3) : (in == 2 || in == 3) && out == 1)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the call has %lld operands and %lld results; %s", (long long)in,
                          (long long)out,
                          backward ? "operands are x, w and dy, results dx, dw and perhaps db"
                                   : "operands are x, w and perhaps b, the result is y");
}

tsr_status tsr_xla_layer_prepare(tsr_xla_work *work, tsr_xla_kind kind, const tsr_xla_attributes *attributes,
                                 const XLA_FFI_CallFrame *frame)
{
    const bool backward = kind == TSR_XLA_COLUMN_BACKWARD || kind == TSR_XLA_ROW_BACKWARD;
    layer l = {0};
    TSR_TRY(check_counts(work, backward));
    tsr_status status = lay_out_operands(work, attributes, kind, frame, &l);
    if (status == TSR_OK)
        status =
            backward ? prepare_backward(work, attributes, frame, &l) : prepare_forward(work, attributes, frame, &l);
    destroy_layouts(&l);
    return status;
}

tsr_status tsr_xla_layer_execute(const tsr_xla_work *work)
{
    return work->forward ? execute_forward(work) : execute_backward(work);
}
