#include <tessera/linear.h>

#include "ops/agreement.h"
#include "ops/blas_guard.h"
#include "ops/layer.h"
#include "ops/rule.h"

static const tsr_rule product_rule = {"tsr_linear", "linear: b k, o k -> b o", {"x", "w"}, 1};
static const tsr_rule biased_rule = {"tsr_linear", "linear: b k, o k + o -> b o", {"x", "w", "b"}, 1};

tsr_status tsr_linear_propagate(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, tsr_layout **y)
{
    if (!x || !w || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_linear: %s is NULL; only b may be", !x ? "x" : !w ? "w" : "y");
    const tsr_layout *const operands[] = {x, w, b};
    return tsr_rule_apply(b ? &biased_rule : &product_rule, operands, y);
}

/* One call of tsr_linear(): `own` is y's layout as the rule leaves it. */
typedef struct call {
    const tsr_dtensor *x, *w, *b;
    tsr_layout *own;
    bool moves; /* y is wanted in another layout */
} call;

/* Equal layouts may still be written differently, on mesh dims of size 1: then y gets what was asked for. */
static tsr_status compare_with_wanted(call *c, const tsr_placement *y_placements)
{
    tsr_layout *wanted;
    TSR_TRY(tsr_layout_with(c->own, y_placements, &wanted));
    c->moves = !tsr_layout_equal(c->own, wanted);
    tsr_layout *unused = wanted;
    if (!c->moves) {
        unused = c->own;
        c->own = wanted;
    }
    tsr_layout_destroy(unused);
    return TSR_OK;
}

static tsr_status plan_call(call *c, const tsr_placement *y_placements)
{
    TSR_TRY(tsr_linear_propagate(tsr_dtensor_layout(c->x), tsr_dtensor_layout(c->w), c->b ? tsr_dtensor_layout(c->b) : NULL, &c->own));
    if (y_placements)
        TSR_TRY(compare_with_wanted(c, y_placements));
    const tsr_tensor x = tsr_dtensor_to_local(c->x), w = tsr_dtensor_to_local(c->w);
    const tsr_tensor b = c->b ? tsr_dtensor_to_local(c->b) : x;
    return tsr_layer_check_devices("tsr_linear", (const tsr_tensor *[]){&x, &w, &b}, (const char *[]){"x", "w", "b"}, 3);
}

static tsr_status multiply(const call *c, const tsr_tensor *y)
{
    const tsr_tensor x = tsr_dtensor_to_local(c->x), w = tsr_dtensor_to_local(c->w);
    const tsr_tensor b = c->b ? tsr_dtensor_to_local(c->b) : x;
    tsr_context *context = tsr_mesh_context(tsr_layout_mesh(c->own));
    bool adds_bias;
    TSR_TRY(tsr_layer_adds_bias(c->own, &adds_bias));
    const bool direct = tsr_tensor_is_contiguous(&x) && tsr_tensor_is_contiguous(&w);
    const size_t bytes = direct ? 0 : tsr_matmul_workspace_bytes(x.dtype, INT64_MAX, w.shape[0], w.shape[1]);
    tsr_matmul_site site = {.device = x.device, .dtype = x.dtype};
    TSR_TRY(tsr_layer_workspace_create(context, x.device, bytes, &site.workspace));
    tsr_blas_hold();
    const tsr_status status = tsr_layer_forward(&site, &x, &w, c->b && adds_bias ? &b : NULL, y);
    tsr_blas_release();
    tsr_layer_workspace_destroy(context, x.device, site.workspace, bytes);
    return status;
}

/* y as the rule leaves it. */
static tsr_status compute(const call *c, tsr_dtensor **out)
{
    const tsr_tensor x = tsr_dtensor_to_local(c->x);
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    tsr_dtensor *y;
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(c->own), coordinate, &inside));
    TSR_TRY(tsr_dtensor_create(c->own, x.device, &y));
    const tsr_tensor local = tsr_dtensor_to_local(y);
    const tsr_status status = inside ? multiply(c, &local) : TSR_OK;
    if (status == TSR_OK)
        *out = y;
    else
        tsr_dtensor_destroy(y);
    return status;
}

/* Redistributes `computed` to the placements wanted, unless some rank failed before. */
static tsr_status finish(const call *c, tsr_status local, const tsr_placement *y_placements, tsr_dtensor *computed, tsr_dtensor **out)
{
    TSR_TRY(tsr_agree(tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(c->x))), "tsr_linear", local));
    if (c->moves)
        return tsr_redistribute(computed, y_placements, out);
    *out = tsr_dtensor_retain(computed);
    return TSR_OK;
}

tsr_status tsr_linear(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b, const tsr_placement *y_placements, tsr_dtensor **y)
{
    if (!x || !w || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_linear: %s is NULL; only b and y_placements may be", !x ? "x" : !w ? "w" : "y");
    call c = {.x = x, .w = w, .b = b};
    tsr_dtensor *computed = NULL;
    tsr_status status = plan_call(&c, y_placements);
    if (tsr_is_shared_fault(status))
        goto destroy_layout;
    if (status == TSR_OK)
        status = compute(&c, &computed);
    if (y_placements)
        status = finish(&c, status, y_placements, computed, y);
    else if (status == TSR_OK)
        *y = tsr_dtensor_retain(computed);
    tsr_dtensor_destroy(computed);
destroy_layout:
    tsr_layout_destroy(c.own);
    return status;
}
