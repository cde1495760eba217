#include "ops/rows/gradient_check.h"

#include "ops/rows/gradient_layouts.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Bytes for a layout, or a shape. */
#define TEXT 256

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

/* Prints dtype and shape, "f32 4x6 "; "f32 () " for a scalar. */
static const char *print_tensor(const tsr_layout *layout, char text[TEXT])
{
    const int ndim = tsr_layout_ndim(layout);
    size_t length = (size_t)snprintf(text, TEXT, "%s %s", tsr_dtype_name(tsr_layout_dtype(layout)), ndim ? "" : "()");
    for (int dim = 0; dim < ndim && length < TEXT; dim++)
        length += (size_t)snprintf(text + length, TEXT - length, "%s%lld", dim ? "x" : "",
                                   (long long)tsr_layout_shape(layout)[dim]);
    if (length < TEXT)
        snprintf(text + length, TEXT - length, " ");
    return text;
}

static bool are_one_tensor(const tsr_layout *a, const tsr_layout *b)
{
    const int ndim = tsr_layout_ndim(a);
    return ndim == tsr_layout_ndim(b) && tsr_layout_dtype(a) == tsr_layout_dtype(b) &&
           (ndim == 0 || memcmp(tsr_layout_shape(a), tsr_layout_shape(b), (size_t)ndim * sizeof(int64_t)) == 0);
}

static tsr_status refuse_gradient(const tsr_op_case *c, const tsr_layout *own, const tsr_layout *invariant,
                                  const tsr_layout *varying)
{
    char ours[TEXT], theirs[TEXT], terms[TEXT], given[TEXT] = "", wanted[TEXT] = "";
    tsr_layout_print(own, ours, sizeof ours);
    tsr_layout_print(invariant, theirs, sizeof theirs);
    tsr_layout_print(varying, terms, sizeof terms);
    const bool both = strcmp(theirs, terms) != 0;
    if (!are_one_tensor(own, invariant)) {
        print_tensor(own, given);
        print_tensor(invariant, wanted);
    }
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dout is %s\"%s\", but must be %sin the result's gradient layout, \"%s\"%s%s%s",
                          c->caller, given, ours, wanted, theirs, both ? ", or, if each rank has a term of it, \"" : "",
                          both ? terms : "", both ? "\"" : "");
}

tsr_status tsr_op_check_gradient(const tsr_op_case *c, const tsr_layout *result, const tsr_layout *own)
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
