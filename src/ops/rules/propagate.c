#include "ops/rules/propagate.h"

#include "ops/rules/cheapest.h"
#include "ops/rules/refuse.h"

#include <tessera/sys/status.h>

bool tsr_op_are_on_one_mesh(const tsr_mesh *a, const tsr_mesh *b)
{
    if (a == b)
        return true;
    bool same = tsr_mesh_congruent(a, b) && tsr_mesh_ndim(a) == tsr_mesh_ndim(b);
    for (int k = 0; same && k < tsr_mesh_ndim(a); k++)
        same = tsr_mesh_size(a, k) == tsr_mesh_size(b, k);
    return same && (tsr_mesh_comm(a) == tsr_mesh_comm(b) || !tsr_mesh_comm(a) || !tsr_mesh_comm(b));
}

bool tsr_op_are_layouts_equal(const tsr_layout *a, const tsr_layout *b)
{
    return tsr_layout_equal(a, b) && tsr_op_are_on_one_mesh(tsr_layout_mesh(a), tsr_layout_mesh(b));
}

/* Checks that all operands are there, on equal meshes with the same dims, over one communicator. */
static tsr_status check_meshes(const tsr_op_rule *rule, const tsr_op_names *names, unsigned optional,
                               const tsr_layout *const *operands, int *first)
{
    *first = -1;
    for (int i = 0; i < rule->operand_count; i++) {
        if (!operands[i] && !(optional >> i & 1))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", names->caller, names->operands[i]);
        if (!operands[i])
            continue;
        *first = *first < 0 ? i : *first;
        const tsr_mesh *const a = tsr_layout_mesh(operands[*first]), *const b = tsr_layout_mesh(operands[i]);
        if (tsr_op_are_on_one_mesh(a, b))
            continue;
        char ours[128], theirs[128];
        tsr_mesh_print(a, ours, sizeof ours);
        tsr_mesh_print(b, theirs, sizeof theirs);
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %s is on mesh %s but %s on mesh %s; both must be on one mesh, over one communicator",
                              names->caller, names->operands[*first], ours, names->operands[i], theirs);
    }
    return TSR_OK;
}

/* The shapes of all results. */
static tsr_status find_shapes(const tsr_op_form *form, const tsr_op_shaping *shaping,
                              int64_t shapes[TSR_OP_RESULTS][TSR_MAX_DIMS])
{
    for (int i = 0; i < form->rule->result_count; i++) {
        tsr_op_form_shape(form, i, shapes[i]);
        if (shaping->shape_of)
            TSR_TRY(shaping->shape_of(shaping->arg, i, shapes[i]));
    }
    return TSR_OK;
}

static tsr_status create_results(const tsr_op_form *form, const tsr_mesh *mesh,
                                 tsr_placement placements[TSR_OP_RESULTS][TSR_MAX_DIMS], const tsr_op_shaping *shaping,
                                 tsr_op_inferred *out)
{
    int64_t shapes[TSR_OP_RESULTS][TSR_MAX_DIMS];
    TSR_TRY(find_shapes(form, shaping, shapes));
    for (int i = 0; i < form->rule->result_count; i++)
        TSR_TRY(tsr_layout_create(mesh, placements[i], form->results[i].ndim, shapes[i], shaping->dtypes[i],
                                  &out->results[i]));
    return TSR_OK;
}

void tsr_op_inferred_clear(tsr_op_inferred *inferred)
{
    for (int i = 0; i < TSR_OP_RESULTS; i++) {
        tsr_layout_destroy(inferred->results[i]);
        inferred->results[i] = NULL;
    }
}

tsr_status tsr_op_propagate_rule(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_op_shaping *shaping,
                                 const tsr_layout *const *operands, tsr_op_inferred *out)
{
    int first;
    tsr_op_form form;
    tsr_op_fitted fitted;
    tsr_op_placements placements = {0};
    tsr_op_inferred made = {{NULL}, 0};
    TSR_TRY(check_meshes(rule, names, shaping->optional, operands, &first));
    TSR_TRY(tsr_op_form_bind(rule, names, operands, shaping, &form));
    for (int i = 0; i < rule->operand_count; i++)
        placements[i] = operands[i] ? tsr_layout_placements(operands[i]) : NULL;
    const tsr_mesh *const mesh = tsr_layout_mesh(operands[first]);
    tsr_status status = tsr_op_place(&form, mesh, placements, shaping->placing, &fitted);
    if (status == TSR_OK && fitted.misfit.kind != TSR_OP_FITS)
        status = tsr_op_refuse(&form, names, operands, shaping->placing, &fitted.misfit);
    if (status == TSR_OK)
        status = create_results(&form, mesh, fitted.results, shaping, &made);
    tsr_op_fitted_clear(&fitted);
    made.exchanged = fitted.exchanged;
    if (status == TSR_OK)
        *out = made;
    else
        tsr_op_inferred_clear(&made);
    return status;
}

tsr_status tsr_op_settle_rule(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_op_shaping *shaping,
                              const tsr_layout *const *operands, const tsr_op_wish *wish,
                              tsr_layout *out[TSR_OP_OPERANDS], bool *found)
{
    int first;
    tsr_op_form form;
    int64_t shapes[TSR_OP_RESULTS][TSR_MAX_DIMS];
    TSR_TRY(check_meshes(rule, names, shaping->optional, operands, &first));
    TSR_TRY(tsr_op_form_bind(rule, names, operands, shaping, &form));
    TSR_TRY(find_shapes(&form, shaping, shapes));
    const tsr_op_question question = {
        &form,         shaping->placing, operands,   shaping->dtypes, (const int64_t(*)[TSR_MAX_DIMS])shapes,
        wish->results, wish->policy,     wish->bytes};
    return tsr_op_find_cheapest(&question, out, found);
}
