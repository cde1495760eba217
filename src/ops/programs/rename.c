#include "ops/programs/rename.h"

#include "ops/rules/alike.h"

#include <tessera/sys/status.h>

/* Placements of `own` with the cuts of `like`. True if these cut the same mesh dims, and are called
 * otherwise. */
static bool take_cuts(const tsr_layout *own, const tsr_layout *like, tsr_placement *placements)
{
    bool differ = false;
    const tsr_mesh *const mesh = tsr_layout_mesh(own);
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const a = &tsr_layout_placements(own)[k], *const b = &tsr_layout_placements(like)[k];
        const bool is_cut = a->kind == TSR_SHARD;
        placements[k] = *a;
        if (tsr_mesh_size(mesh, k) == 1)
            continue;
        if (is_cut != (b->kind == TSR_SHARD) || (is_cut && a->dim != b->dim))
            return false;
        differ |= is_cut && !tsr_placement_same(a, b);
        placements[k] = is_cut ? *b : *a;
    }
    return differ;
}

/* The cuts of one tensor dim, as cuts of dim 0. */
static void list_cuts(const tsr_layout *layout, int dim, tsr_placement *cuts)
{
    for (int k = 0; k < tsr_mesh_ndim(tsr_layout_mesh(layout)); k++) {
        cuts[k] = tsr_layout_placements(layout)[k];
        if (cuts[k].kind != TSR_SHARD || cuts[k].dim != dim)
            cuts[k] = tsr_replicate();
        cuts[k].dim = 0;
    }
}

tsr_status tsr_layout_renamed(const tsr_layout *own, const tsr_layout *like, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS], a[TSR_MAX_DIMS], b[TSR_MAX_DIMS];
    bool alike = take_cuts(own, like, placements);
    for (int dim = 0; dim < tsr_layout_ndim(own) && alike; dim++) {
        list_cuts(own, dim, a);
        list_cuts(like, dim, b);
        TSR_TRY(tsr_cuts_alike(tsr_layout_mesh(own), tsr_layout_shape(own)[dim], a, b, &alike));
    }
    if (alike)
        return tsr_layout_with(own, placements, out);
    *out = NULL;
    return TSR_OK;
}
