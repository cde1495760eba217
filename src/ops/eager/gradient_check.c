#include "ops/eager/gradient_check.h"

#include "ops/rows/gradient_layouts.h"

#include <tessera/sys/status.h>

#include <string.h>

/* The gradient layout of a result, varying: Partial(sum) on the mesh dims of `dims` on which the
 * result itself is Replicate. */
static tsr_status vary_layout(const tsr_layout *result, const tsr_layout *invariant, unsigned dims, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(result)); k++) {
        const bool varies = dims >> k & 1 && tsr_layout_placements(result)[k].kind == TSR_REPLICATE;
        placements[k] = varies ? tsr_partial(TSR_SUM) : tsr_layout_placements(invariant)[k];
    }
    return tsr_layout_with(invariant, placements, out);
}

static tsr_status refuse_gradient(const tsr_op_case *c, const tsr_layout *own, const tsr_layout *invariant,
                                  const tsr_layout *varying)
{
    char ours[256], theirs[256], terms[256];
    tsr_layout_print(own, ours, sizeof ours);
    tsr_layout_print(invariant, theirs, sizeof theirs);
    tsr_layout_print(varying, terms, sizeof terms);
    const bool both = strcmp(theirs, terms) != 0;
    return tsr_status_set(
        TSR_ERROR_ARGUMENT,
        "%s: dout is \"%s\", but must have the result's shape and dtype %s in its gradient layout, \"%s\"%s%s%s",
        c->caller, ours, tsr_dtype_name(tsr_layout_dtype(invariant)), theirs,
        both ? ", or, if each rank has a term of it, \"" : "", both ? terms : "", both ? "\"" : "");
}

tsr_status tsr_eager_check_gradient(const tsr_op_case *c, const tsr_layout *result, const tsr_layout *own)
{
    unsigned terms = 0;
    tsr_layout *invariant = NULL, *varying = NULL, *most = NULL;
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(own)); k++)
        terms |= tsr_layout_placements(own)[k].kind == TSR_PARTIAL ? 1u << k : 0;
    tsr_status status = tsr_op_result_gradient(c, result, &invariant);
    if (status == TSR_OK && terms)
        status = vary_layout(result, invariant, terms, &varying);
    if (status == TSR_OK && !terms)
        varying = tsr_layout_retain(invariant);
    if (status == TSR_OK && !tsr_layout_equal(varying, own)) {
        status = vary_layout(result, invariant, ~0u, &most);
        if (status == TSR_OK)
            status = refuse_gradient(c, own, invariant, most);
    }
    tsr_layout_destroy(most);
    tsr_layout_destroy(varying);
    tsr_layout_destroy(invariant);
    return status;
}
