#include "ops/agreement.h"
#include "ops/forward.h"
#include "ops/layer.h"
#include "ops/layer_rule.h"

#include <tessera/linear.h>
#include <tessera/sys/comm.h>

tsr_status tsr_linear_propagate(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, tsr_layout **y)
{
    if (!x || !w || !y)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_linear_propagate: %s is NULL; only b may be",
                              !x   ? "x"
                              : !w ? "w"
                                   : "y");
    return tsr_layer_rule_y("tsr_linear_propagate", x, w, b, y);
}

/* One call of tsr_linear(). Its memory is one block: y in the rule's layout, if y moves, then what
 * the products need. */
typedef struct call {
    const tsr_dtensor *x, *w, *b;
    tsr_comm *comm;
    tsr_forward pass;
    tsr_layout *wanted; /* y's layout that the caller gets */
    bool moves;         /* it is not the rule's */
    void *memory;
    size_t bytes;
    tsr_dtensor *computed, *y;
} call;

/* The local tensors of the operands; that of x in place of b's if there is none. */
typedef struct operands {
    tsr_tensor x, w, b;
} operands;

static operands operands_of(const call *c)
{
    return (operands){tsr_dtensor_to_local(c->x), tsr_dtensor_to_local(c->w), tsr_dtensor_to_local(c->b ? c->b : c->x)};
}

static tsr_status plan_call(call *c, const tsr_placement *y_placements)
{
    const tsr_layout *const x = tsr_dtensor_layout(c->x), *const w = tsr_dtensor_layout(c->w),
                            *const b = c->b ? tsr_dtensor_layout(c->b) : NULL;
    const operands locals = operands_of(c);
    TSR_TRY(tsr_forward_begin("tsr_linear", x, w, b, &c->pass));
    if (y_placements)
        TSR_TRY(tsr_layout_with(c->pass.own.layout, y_placements, &c->wanted));
    else
        c->wanted = tsr_layout_retain(c->pass.own.layout);
    c->moves = !tsr_layout_equal(c->pass.own.layout, c->wanted);
    TSR_TRY(tsr_layer_check_devices("tsr_linear", (const tsr_tensor *[]){&locals.x, &locals.w, &locals.b},
                                    (const char *[]){"x", "w", "b"}, 3));
    return tsr_forward_place("tsr_linear", x, w, b, locals.x.device, &c->pass);
}

/* Allocates everything that this call needs. */
static tsr_status acquire_call(call *c, const operands *from)
{
    const size_t own_bytes = c->moves ? tsr_local_form_bytes(&c->pass.own) : 0;
    TSR_TRY(tsr_dtensor_create(c->wanted, c->pass.device, &c->y));
    TSR_TRY(tsr_forward_measure(&c->pass, &from->x, &from->w, &from->b, false));
    c->bytes = own_bytes + tsr_layer_needs_bytes(&c->pass.needs);
    TSR_TRY(
        tsr_layer_workspace_create(tsr_mesh_context(tsr_layout_mesh(c->wanted)), c->pass.device, c->bytes, &c->memory));
    if (c->moves)
        return tsr_local_form_borrow(&c->pass.own, c->pass.inside, c->memory, c->pass.device, &c->computed);
    c->computed = tsr_dtensor_retain(c->y);
    return TSR_OK;
}

/* Computes y in the rule's layout. */
static tsr_status compute(call *c)
{
    const operands from = operands_of(c);
    TSR_TRY(acquire_call(c, &from));
    if (!c->pass.inside)
        return TSR_OK;
    const tsr_tensor y = tsr_dtensor_to_local(c->computed);
    const size_t front = c->bytes - tsr_layer_needs_bytes(&c->pass.needs);
    tsr_choice_hold(&c->pass.choice);
    const tsr_status status = tsr_forward_compute(&c->pass, &from.x, &from.w, &from.b, &y,
                                                  c->memory ? (char *)c->memory + front : NULL, NULL);
    tsr_choice_release(&c->pass.choice);
    return status;
}

/* Redistributes y to the wanted placements, unless a rank failed (`local` is this rank's
 * status). */
static tsr_status finish_result(const call *c, tsr_status local)
{
    TSR_TRY(tsr_agree_on_moves(c->comm, local, c->moves));
    return c->moves ? tsr_redistribute_into(c->computed, c->y, NULL) : TSR_OK;
}

static void clean_up(call *c)
{
    tsr_dtensor_destroy(c->computed);
    if (c->memory)
        tsr_layer_workspace_destroy(tsr_mesh_context(tsr_layout_mesh(c->wanted)), c->pass.device, c->memory, c->bytes);
    tsr_dtensor_destroy(c->y);
    tsr_layout_destroy(c->wanted);
    tsr_forward_release(&c->pass);
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
        status = tsr_agree_on_provider(c->comm, status, &c->pass.choice);
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
