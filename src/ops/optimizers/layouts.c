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

/* The product of the dims from `first` to before `last`. */
static int64_t multiply(const tsr_optimizer_view *view, int first, int last)
{
    int64_t count = 1;
    for (int dim = first; dim < last; dim++)
        count *= view->shape[dim];
    return count;
}

/* The dim of the tensor that cuts of its view divide: the one whose blocks a cut interleaves, or
 * the first, but for dims of size 1, which no cut divides; -1: there are no two elements. All cuts
 * divide one dim, so that parts are alike in the view and in the tensor. */
static int find_cut_dim(const tsr_optimizer_view *view, const tsr_placement *placements, int mesh_ndim)
{
    int first = -1;
    for (int dim = 0; dim < view->ndim; dim++)
        if (view->shape[dim] == 0)
            return -1;
    for (int dim = view->ndim - 1; dim >= 0; dim--) {
        if (view->shape[dim] == 1)
            continue;
        for (int k = 0; k < mesh_ndim; k++)
            if (placements[k].kind == TSR_SHARD && placements[k].interleave > 1 &&
                placements[k].interleave == multiply(view, 0, dim))
                return dim;
        first = dim;
    }
    return first;
}

/* Changes a cut of a view to the nearest one that leaves the indices of `dim` whole, and sets
 * `*out` to the same cut of the tensor. */
static void cut_whole(const tsr_optimizer_view *view, int dim, tsr_placement *flat, tsr_placement *out)
{
    const int64_t blocks = multiply(view, 0, dim), inner = multiply(view, dim + 1, view->ndim);
    const int64_t interleave = flat->interleave > 1 ? flat->interleave : 1;
    const bool is_whole =
        !flat->sizes && !flat->blocks && interleave == blocks && inner > 0 && flat->unit > 0 && flat->unit % inner == 0;
    tsr_placement made = tsr_shard(0);
    made.order = flat->order;
    made.balanced = flat->sizes || flat->blocks ? 1 : flat->balanced;
    made.interleave = blocks > 1 ? blocks : 0;
    made.unit = is_whole ? flat->unit : inner > 1 ? inner : 0;
    *flat = *out = made;
    out->dim = dim;
    out->interleave = 0;
    out->unit = made.unit > inner ? made.unit / inner : 0;
}

/* The nearest layout of a view in which it can become the tensor, and that of the tensor. */
static tsr_status place_tensor(const tsr_optimizer_view *view, const tsr_layout *own, tsr_layout **out,
                               tsr_layout **flat)
{
    tsr_placement of_view[TSR_MAX_DIMS], of_tensor[TSR_MAX_DIMS];
    const tsr_mesh *const mesh = tsr_layout_mesh(own);
    const int mesh_ndim = tsr_mesh_ndim(mesh);
    memcpy(of_view, tsr_layout_placements(own), (size_t)mesh_ndim * sizeof *of_view);
    const int dim = find_cut_dim(view, of_view, mesh_ndim);
    for (int k = 0; k < mesh_ndim; k++) {
        if (of_view[k].kind == TSR_SHARD && dim < 0)
            of_view[k] = tsr_replicate();
        of_tensor[k] = of_view[k];
        if (of_view[k].kind == TSR_SHARD)
            cut_whole(view, dim, &of_view[k], &of_tensor[k]);
    }
    TSR_TRY(tsr_layout_with(own, of_view, flat));
    const tsr_status status = tsr_layout_create(mesh, of_tensor, view->ndim, view->shape, tsr_layout_dtype(own), out);
    if (status != TSR_OK)
        tsr_layout_destroy(*flat);
    return status;
}

/* The layout of the states, of the parameter's shape. */
static tsr_status place_states(const tsr_optimizer_options *options, size_t index, const tsr_layout *own,
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

tsr_status tsr_optimizer_place(const tsr_optimizer_options *options, size_t index, const tsr_layout *own,
                               tsr_layout **out, tsr_layout **flat)
{
    tsr_layout *placed;
    const tsr_optimizer_view *const view = options->views ? &options->views[index] : NULL;
    TSR_TRY(place_states(options, index, own, &placed));
    *flat = NULL;
    if (options->kind != TSR_ADAFACTOR || !view || view->ndim < 2) {
        *out = placed;
        return TSR_OK;
    }
    const tsr_status status = place_tensor(view, placed, out, flat);
    tsr_layout_destroy(placed);
    return status;
}
