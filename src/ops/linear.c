#include "ops/agreement.h"
#include "ops/layer.h"
#include "ops/numbers.h"

#include <tessera/linear.h>
#include <tessera/sys/comm.h>

tsr_status tsr_linear_propagate(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, tsr_layout **y)
{
    if (!x || !w || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_linear_propagate: %s is NULL; only b may be",
                              !x   ? "x"
                              : !w ? "w"
                                   : "y");
    return tsr_layer_propagate("tsr_linear_propagate", x, w, b, y);
}

/* One call of tsr_linear(). Its memory is one block: y in the rule's layout, if y moves, then what
 * the products need. */
typedef struct call {
    const tsr_dtensor *x, *w, *b;
    tsr_layout *own, *wanted; /* y's layout by the rule, and the one that the caller gets */
    bool moves;               /* own and wanted are not equal */
    tsr_comm *comm;
    tsr_context *context;
    tsr_device device;
    tsr_choice choice;
    void *memory;
    size_t bytes;
    tsr_dtensor *computed, *y;
} call;

static tsr_status plan_call(call *c, const tsr_placement *y_placements)
{
    TSR_TRY(tsr_layer_propagate("tsr_linear", tsr_dtensor_layout(c->x), tsr_dtensor_layout(c->w),
                                c->b ? tsr_dtensor_layout(c->b) : NULL, &c->own));
    if (y_placements)
        TSR_TRY(tsr_layout_with(c->own, y_placements, &c->wanted));
    else
        c->wanted = tsr_layout_retain(c->own);
    c->moves = !tsr_layout_equal(c->own, c->wanted);
    const tsr_tensor x = tsr_dtensor_to_local(c->x), w = tsr_dtensor_to_local(c->w);
    const tsr_tensor b = c->b ? tsr_dtensor_to_local(c->b) : x;
    c->device = x.device;
    c->context = tsr_mesh_context(tsr_layout_mesh(c->own));
    TSR_TRY(
        tsr_layer_check_devices("tsr_linear", (const tsr_tensor *[]){&x, &w, &b}, (const char *[]){"x", "w", "b"}, 3));
    TSR_TRY(tsr_layer_check_products("tsr_linear", c->device, tsr_dtensor_layout(c->x), tsr_dtensor_layout(c->w),
                                     c->b ? tsr_dtensor_layout(c->b) : NULL, c->own));
    return tsr_layer_choose(c->context, c->device, &c->choice);
}

/* Computes the products into `y`, or measures their needs if the site measures. */
static tsr_status multiply_into_y(const call *c, const tsr_matmul_site *site, const tsr_tensor *y)
{
    const tsr_tensor x = tsr_dtensor_to_local(c->x), w = tsr_dtensor_to_local(c->w);
    const tsr_tensor b = c->b ? tsr_dtensor_to_local(c->b) : x;
    bool adds_bias;
    TSR_TRY(tsr_layer_adds_bias(c->own, &adds_bias));
    return tsr_layer_forward(site, &x, &w, c->b && adds_bias ? &b : NULL, y);
}

/* Measures the products for y in the rule's layout, without data: only its strides matter. */
static tsr_status measure_call(const call *c, tsr_matmul_site site, tsr_matmul_needs *needs)
{
    int64_t shape[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(c->own, NULL, shape, NULL));
    const tsr_tensor y = tsr_tensor_contiguous(NULL, tsr_layout_dtype(c->own), tsr_layout_ndim(c->own), shape);
    site.needs = needs;
    return multiply_into_y(c, &site, &y);
}

/* Allocates everything that this call needs, and gives the site its part. */
static tsr_status acquire_call(call *c, bool inside, tsr_matmul_site *site)
{
    tsr_matmul_needs needs = {0};
    size_t own_bytes;
    TSR_TRY(tsr_dtensor_create(c->wanted, c->device, &c->y));
    if (inside)
        TSR_TRY(measure_call(c, *site, &needs));
    TSR_TRY(tsr_layout_local_bytes(c->own, NULL, &own_bytes));
    own_bytes = c->moves ? tsr_aligned_bytes(own_bytes) : 0;
    c->bytes = own_bytes + tsr_layer_needs_bytes(&needs);
    TSR_TRY(tsr_layer_workspace_create(c->context, c->device, c->bytes, &c->memory));
    tsr_layer_place(site, &needs, c->memory ? (char *)c->memory + own_bytes : NULL);
    if (c->moves)
        return tsr_layer_borrow(c->own, c->device, c->memory, &c->computed);
    c->computed = tsr_dtensor_retain(c->y);
    return TSR_OK;
}

/* Computes y in the rule's layout. */
static tsr_status compute(call *c)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside;
    tsr_matmul_site site = tsr_layer_site(c->device, &c->choice, NULL);
    TSR_TRY(tsr_mesh_coordinate(tsr_layout_mesh(c->own), coordinate, &inside));
    TSR_TRY(acquire_call(c, inside, &site));
    const tsr_tensor y = tsr_dtensor_to_local(c->computed);
    if (!inside)
        return TSR_OK;
    tsr_choice_hold(&c->choice);
    const tsr_status status = multiply_into_y(c, &site, &y);
    tsr_choice_release(&c->choice);
    return status;
}

/* Redistributes y to the wanted placements, unless a rank failed (`local` is this rank's
 * status). */
static tsr_status finish_result(const call *c, tsr_status local)
{
    TSR_TRY(tsr_agree(c->comm, local));
    return c->moves ? tsr_redistribute_into(c->computed, c->y, NULL) : TSR_OK;
}

static void clean_up(call *c)
{
    tsr_dtensor_destroy(c->computed);
    if (c->memory)
        tsr_layer_workspace_destroy(c->context, c->device, c->memory, c->bytes);
    tsr_dtensor_destroy(c->y);
    tsr_layout_destroy(c->wanted);
    tsr_layout_destroy(c->own);
}

static tsr_status check_pointers(const tsr_dtensor *x, const tsr_dtensor *w, tsr_dtensor **y)
{
    if (x && w && y)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_linear: %s is NULL; only b and y_placements may be",
                          !x   ? "x"
                          : !w ? "w"
                               : "y");
}

/* Ranks agree, and so communicate, only if the caller gives placements for y. */
static tsr_status run_call(call *c, const tsr_placement *y_placements, tsr_dtensor **y)
{
    tsr_status status = check_pointers(c->x, c->w, y);
    if (status == TSR_OK)
        status = plan_call(c, y_placements);
    if (y_placements)
        status = tsr_agree_on_provider(c->comm, status, &c->choice);
    if (status == TSR_OK)
        status = y_placements ? finish_result(c, compute(c)) : compute(c);
    if (status == TSR_OK)
        *y = tsr_dtensor_retain(c->y);
    clean_up(c);
    return status;
}

tsr_status tsr_linear(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b,
                      const tsr_placement *y_placements, tsr_dtensor **y)
{
    const tsr_layout *const layouts[] = {tsr_agreement_layout(x), tsr_agreement_layout(w), tsr_agreement_layout(b)};
    call c = {.x = x, .w = w, .b = b, .comm = tsr_agreement_comm(layouts, 3)};
    if (!c.comm)
        return check_pointers(x, w, y);
    if (!y_placements) {
        TSR_TRY(tsr_comm_check_open(c.comm, "tsr_linear"));
        return run_call(&c, NULL, y);
    }
    TSR_TRY(tsr_comm_hold(c.comm, "tsr_linear"));
    return tsr_comm_let_go(c.comm, run_call(&c, y_placements, y));
}
