#include "ops/eager/settle.h"

#include <tessera/sys/log.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Tells the log of a move that nobody wrote. */
static void warn(const tsr_op_case *c, int operand, const tsr_layout *to)
{
    char ours[256], theirs[256];
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(c->operands[operand]));
    if (tsr_context_policy(context, NULL) != TSR_POLICY_WARN)
        return;
    tsr_layout_print(c->operands[operand], ours, sizeof ours);
    tsr_layout_print(to, theirs, sizeof theirs);
    tsr_log(context, TSR_LOG_WARN, "%s: %s is redistributed from \"%s\" to \"%s\"", c->caller, c->op->operands[operand],
            ours, theirs);
}

/* Tensors that move together. */
typedef struct moves {
    size_t count;
    const tsr_dtensor *from[TSR_OP_MOST_OPERANDS];
    tsr_dtensor *to[TSR_OP_MOST_OPERANDS];
} moves;

/* Moves all, if no rank has failed so far. */
static tsr_status run_moves(const tsr_op_case *c, tsr_comm *comm, const moves *m, tsr_status local)
{
    TSR_TRY(tsr_comm_share_status(comm, c->caller, local));
    if (m->count == 1)
        return tsr_redistribute_into(m->from[0], m->to[0], NULL);
    return tsr_redistribute_batch(m->count, m->from, m->to, NULL);
}

/* Makes room for a tensor in a layout. */
static tsr_status make_room(moves *m, const tsr_dtensor *from, tsr_layout *layout, tsr_dtensor **to)
{
    TSR_TRY(tsr_dtensor_create(layout, tsr_dtensor_to_local(from).device, to));
    m->from[m->count] = from;
    m->to[m->count++] = *to;
    return TSR_OK;
}

static tsr_comm *comm_of(const tsr_dtensor *x)
{
    return tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x)));
}

static tsr_status settle_operand(const tsr_op_case *c, int i, const tsr_layout *fitted, const tsr_dtensor *operand,
                                 moves *m, tsr_dtensor **out)
{
    tsr_layout *layout;
    warn(c, i, fitted);
    TSR_TRY(tsr_layout_with(tsr_dtensor_layout(operand), tsr_layout_placements(fitted), &layout));
    const tsr_status status = make_room(m, operand, layout, out);
    tsr_layout_destroy(layout);
    return status;
}

tsr_status tsr_eager_settle(const tsr_op_case *c, const tsr_eager_answer *answer, const tsr_dtensor *const *operands,
                            tsr_eager_settled *out)
{
    moves m = {0};
    tsr_comm *comm = NULL;
    tsr_status status = TSR_OK;
    memset(out, 0, sizeof *out);
    for (int i = 0; c->op->operands[i]; i++) {
        if (!operands[i])
            continue;
        comm = comm_of(operands[i]);
        if (!answer->fitted[i])
            out->operands[i] = tsr_dtensor_retain((tsr_dtensor *)operands[i]);
        else if (status == TSR_OK)
            status = settle_operand(c, i, answer->fitted[i], operands[i], &m, &out->operands[i]);
    }
    status = run_moves(c, comm, &m, status);
    if (status != TSR_OK)
        tsr_eager_settled_clear(out);
    return status;
}

void tsr_eager_settled_clear(tsr_eager_settled *settled)
{
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        tsr_dtensor_destroy(settled->operands[i]);
        settled->operands[i] = NULL;
    }
}

static tsr_status unsettle_gradient(const tsr_dtensor *operand, const tsr_dtensor *gradient, moves *m, tsr_dtensor **to)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(operand), &layout));
    const tsr_status status = make_room(m, gradient, layout, to);
    tsr_layout_destroy(layout);
    return status;
}

tsr_status tsr_eager_unsettle(const tsr_op_case *c, const tsr_dtensor *const *operands,
                              const tsr_eager_settled *settled, tsr_dtensor **const *gradients, tsr_status local)
{
    moves m = {0};
    tsr_comm *comm = NULL;
    tsr_dtensor *moved[TSR_OP_MOST_OPERANDS] = {NULL};
    for (int i = 0; c->op->operands[i]; i++) {
        if (!gradients[i] || operands[i] == settled->operands[i])
            continue;
        comm = comm_of(operands[i]);
        if (local == TSR_OK)
            local = unsettle_gradient(operands[i], *gradients[i], &m, &moved[i]);
    }
    const tsr_status status = comm ? run_moves(c, comm, &m, local) : local;
    for (int i = 0; c->op->operands[i]; i++) {
        if (moved[i] && status == TSR_OK) {
            tsr_dtensor_destroy(*gradients[i]);
            *gradients[i] = moved[i];
        } else
            tsr_dtensor_destroy(moved[i]);
    }
    return status;
}
