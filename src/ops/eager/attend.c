#include "ops/eager/attend.h"

#include "ops/eager/compute.h"
#include "ops/rows/formula.h"
#include "ops/rows/gradient_check.h"
#include "ops/rows/gradient_layouts.h"
#include "ops/rows/shadow.h"
#include "ops/rows/table.h"

#include <tessera/sys/dtensor.h>
#include <tessera/sys/status.h>

/* Goes to the exchanges of a kernel, or to a move. */
static tsr_status attend_computation(const tsr_op_case *c, unsigned exchanged, const tsr_dtensor *x, tsr_status failed)
{
    int inside;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_kept_sentence kept;
    const tsr_dtensor *const operands[TSR_OP_MOST_OPERANDS] = {x};
    const tsr_mesh *const mesh = tsr_layout_mesh(tsr_dtensor_layout(x));
    tsr_status_keep_returned(&kept, failed);
    const tsr_status found = tsr_mesh_coordinate(mesh, coordinate, &inside);
    tsr_status_restore(&kept, failed);
    if (found != TSR_OK)
        return failed;
    const tsr_computation computation = {.c = c,
                                         .exchanged = c->op->exchanges ? exchanged : 0,
                                         .mesh = mesh,
                                         .coordinate = coordinate,
                                         .inside = inside,
                                         .device = tsr_dtensor_to_local(x).device,
                                         .operands = operands};
    return tsr_eager_compute(&computation, failed);
}

/* Goes as failed to the meetings of a call whose outlook is known. `x` is any tensor of the call;
 * `is_first`: it is operand 0. `*all`: all ranks of the mesh have heard of the failure, so that no
 * later meeting of them follows. Returns `failed`, with its sentence. */
static tsr_status attend_case(const tsr_op_case *c, const tsr_op_outlook *outlook, const tsr_dtensor *x, bool is_first,
                              tsr_status failed, bool *all)
{
    *all = outlook->settles || c->op->moves_to;
    if (outlook->settles)
        return tsr_comm_share_status(tsr_mesh_comm(tsr_layout_mesh(tsr_dtensor_layout(x))), c->caller, failed);
    if (c->op->moves_to && !is_first)
        return tsr_redistribute_failed(x, NULL, failed);
    return attend_computation(c, outlook->inferred.exchanged, x, failed);
}

tsr_status tsr_eager_attend(const tsr_op_case *c, const tsr_dtensor *const *operands, tsr_status failed)
{
    int some = 0;
    bool all;
    tsr_kept_sentence kept;
    tsr_op_shadow shadow;
    tsr_op_outlook outlook = {.settles = false};
    tsr_status_keep_returned(&kept, failed);
    while (!operands[some])
        some++;
    tsr_status status = tsr_op_shadow_make(c, NULL, &shadow);
    if (status == TSR_OK)
        status = tsr_op_foresee(&shadow.c, &outlook);
    tsr_status_restore(&kept, failed);
    if (status == TSR_OK)
        attend_case(&shadow.c, &outlook, operands[some], some == 0, failed, &all);
    tsr_op_inferred_clear(&outlook.inferred);
    tsr_op_shadow_clear(&shadow);
    return tsr_status_restore(&kept, failed);
}

/* The formulas once more, on layouts. */
typedef struct replay {
    const tsr_op_shadow *shadow;
    const tsr_dtensor *gradient;
    int begun, row; /* rows that the failed rank had begun; rows so far */
    tsr_status failed;
    tsr_kept_sentence kept;
} replay;

static const tsr_layout *layout_of(const void *value)
{
    return value;
}

static void *retain(void *value)
{
    return value ? tsr_layout_retain(value) : NULL;
}

static void release(void *value)
{
    tsr_layout_destroy(value);
}

static tsr_status make_like(void *operand, void **out)
{
    tsr_layout *made;
    tsr_placement placements[TSR_MAX_DIMS];
    tsr_op_reduced(operand, placements);
    TSR_TRY(tsr_layout_with(operand, placements, &made));
    *out = made;
    return TSR_OK;
}

/* Goes to the meetings of a row. A status other than TSR_OK ends the replay. */
static tsr_status attend_row(replay *r, const tsr_op_case *c, const tsr_op_outlook *outlook)
{
    bool all;
    if (r->row++ < r->begun)
        return TSR_OK;
    tsr_status_restore(&r->kept, r->failed);
    attend_case(c, outlook, r->gradient, c->operands[0] == r->shadow->gradient, r->failed, &all);
    return all ? r->failed : TSR_OK;
}

static tsr_status apply(void *user, const char *caller, const tsr_op *op, size_t count, const tsr_attribute *attributes,
                        void *const *operands, void **results)
{
    tsr_op_case c;
    tsr_op_outlook outlook;
    const tsr_layout *layouts[TSR_OP_MOST_OPERANDS];
    for (int i = 0; op->operands[i]; i++)
        layouts[i] = operands[i];
    TSR_TRY(tsr_op_begin(caller, op, count, attributes, layouts, &c));
    TSR_TRY(tsr_op_foresee(&c, &outlook));
    const tsr_status status = attend_row(user, &c, &outlook);
    if (status != TSR_OK) {
        tsr_op_inferred_clear(&outlook.inferred);
        return status;
    }
    for (int i = 0; op->results[i]; i++)
        results[i] = outlook.inferred.results[i];
    return TSR_OK;
}

/* Goes on as failed where peers go on, which they do if they take the gradient. */
static void run_replay(replay *r, const tsr_op_outlook *outlook, const bool *wanted)
{
    void *operands[TSR_OP_MOST_OPERANDS], *made[TSR_OP_MOST_OPERANDS] = {NULL};
    const tsr_formula_values layouts = {layout_of, retain, release, make_like, apply, r};
    const tsr_op_shadow *const s = r->shadow;
    if (tsr_op_check_gradient(&s->c, outlook->inferred.results[0], s->gradient) != TSR_OK)
        return;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        operands[i] = s->copies[i];
    if (tsr_formula_gradients(&layouts, &s->c, operands, s->gradient, wanted, made) != TSR_OK)
        return;
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        tsr_layout_destroy(made[i]);
}

tsr_status tsr_eager_attend_gradients(const tsr_op_case *c, const tsr_dtensor *gradient, const bool *wanted, int begun,
                                      tsr_status failed)
{
    bool all;
    tsr_op_shadow shadow;
    tsr_op_outlook outlook = {.settles = false};
    replay r = {.shadow = &shadow, .gradient = gradient, .begun = begun, .failed = failed};
    tsr_status_keep_returned(&r.kept, failed);
    tsr_status status = tsr_op_shadow_make(c, tsr_dtensor_layout(gradient), &shadow);
    if (status == TSR_OK)
        status = tsr_op_foresee(&shadow.c, &outlook);
    tsr_status_restore(&r.kept, failed);
    if (status == TSR_OK && outlook.settles)
        attend_case(&shadow.c, &outlook, gradient, false, failed, &all);
    else if (status == TSR_OK)
        run_replay(&r, &outlook, wanted);
    tsr_op_inferred_clear(&outlook.inferred);
    tsr_op_shadow_clear(&shadow);
    return tsr_status_restore(&r.kept, failed);
}
