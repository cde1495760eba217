#include "ops/optimizers/layouts.h"

#include "ops/optimizers/values.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

/* The number of cuts of a tensor dim. */
static int count_cuts(const tsr_placement *placements, int mesh_ndim, int dim)
{
    int cuts = 0;
    for (int k = 0; k < mesh_ndim; k++)
        cuts += placements[k].kind == TSR_SHARD && placements[k].dim == dim;
    return cuts;
}

/* The longest of the tensor dims that have the fewest cuts. */
static int choose_dim(const tsr_placement *placements, int mesh_ndim, const tsr_layout *layout)
{
    int best = 0;
    for (int dim = 1; dim < tsr_layout_ndim(layout); dim++) {
        const int cuts = count_cuts(placements, mesh_ndim, dim), least = count_cuts(placements, mesh_ndim, best);
        if (cuts < least || (cuts == least && tsr_layout_shape(layout)[dim] > tsr_layout_shape(layout)[best]))
            best = dim;
    }
    return best;
}

/* Cuts what is Replicate on a mesh dim, after all other cuts of the tensor dim: a rank's part is
 * then a part of what it had. */
static void cut(tsr_placement *placements, int mesh_ndim, int at, const tsr_layout *layout)
{
    const int dim = choose_dim(placements, mesh_ndim, layout);
    int last = at;
    for (int k = 0; k < mesh_ndim; k++) {
        const tsr_placement *const other = &placements[k];
        if (other->kind != TSR_SHARD || other->dim != dim)
            continue;
        const int order = other->order == TSR_ORDER_DEFAULT ? k : other->order;
        last = order >= last ? order + 1 : last;
    }
    placements[at] = tsr_shard(dim);
    placements[at].balanced = 1;
    placements[at].order = last == at ? TSR_ORDER_DEFAULT : last;
}

tsr_status tsr_optimizer_place(const tsr_optimizer_options *options, size_t index, const tsr_layout *own,
                               tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    const tsr_mesh *const mesh = tsr_layout_mesh(own);
    const int ndim = tsr_layout_ndim(own), mesh_ndim = tsr_mesh_ndim(mesh);
    const tsr_dtype dtype = tsr_update_dtype(tsr_layout_dtype(own));
    const char *const text = options->placements ? options->placements[index] : NULL;
    if (text)
        return tsr_layout_parse(mesh, text, ndim, tsr_layout_shape(own), dtype, out);
    memcpy(placements, tsr_layout_placements(own), (size_t)mesh_ndim * sizeof *placements);
    for (int k = 0; k < mesh_ndim; k++)
        if (ndim > 0 && options->shard_over >> k & 1 && placements[k].kind == TSR_REPLICATE)
            cut(placements, mesh_ndim, k, own);
    return tsr_layout_create(mesh, placements, ndim, tsr_layout_shape(own), dtype, out);
}
