#include "files/checkpoint_runs.h"

#include <tessera/sys/status.h>
#include <tessera/values.h>

/* Writing a shorter run costs more than moving its bytes to the rank that writes their
 * neighbours. */
#define SHORT_BYTES ((int64_t)16 * 1024)

/* So few runs are written as they are, however short. */
#define FEW_RUNS ((int64_t)16)

/* A smaller Partial is reduced on all ranks, and one of them writes it. */
#define SMALL_BYTES ((int64_t)64 * 1024)

/* Bytes of a part that moves, for each rank. */
#define PART_BYTES ((int64_t)8 * 1024 * 1024)

/* The first dim with several indices; the number of dims if there is none. Where it alone is cut,
 * in chunks, each rank has one run. */
static int outermost(const tsr_layout *layout)
{
    int dim = 0;
    while (dim < tsr_layout_ndim(layout) && tsr_layout_shape(layout)[dim] == 1)
        dim++;
    return dim;
}

/* Bytes of one index of `dim` in the file, where all dims before have one index. */
static int64_t row_bytes(const tsr_layout *layout, int dim, tsr_dtype dtype)
{
    int64_t bytes = (int64_t)tsr_dtype_bytes(dtype);
    for (int i = dim + 1; i < tsr_layout_ndim(layout); i++)
        bytes *= tsr_layout_shape(layout)[i];
    return bytes;
}

/* Sets `*are` to whether the shard at the mesh's first coordinate has many short runs. */
static tsr_status has_short_runs(const tsr_layout *layout, tsr_dtype dtype, bool *are)
{
    const int64_t first[TSR_MAX_DIMS] = {0}, *const shape = tsr_layout_shape(layout);
    int64_t local[TSR_MAX_DIMS], runs = 1, bytes = (int64_t)tsr_dtype_bytes(dtype);
    tsr_interval one;
    size_t pieces = 1;
    int cut = tsr_layout_ndim(layout);
    TSR_TRY(tsr_layout_local(layout, first, local, NULL));
    for (int i = 0; i < cut; i++)
        bytes *= local[i];
    while (cut > 0 && local[cut - 1] == shape[cut - 1])
        cut--;
    if (cut > 0)
        TSR_TRY(tsr_layout_intervals(layout, first, cut - 1, &one, 1, &pieces));
    for (int i = 0; i < cut - 1; i++)
        runs *= local[i];
    runs *= (int64_t)pieces;
    *are = runs > FEW_RUNS && bytes / runs < SHORT_BYTES;
    return TSR_OK;
}

/* Sets `out` to placements that cut `dim` alone: those that do so before all others, as they are
 * if `keeps`, and chunks. */
static void cut_outermost(const tsr_layout *layout, int dim, bool keeps, tsr_placement *out)
{
    const int ndim = tsr_mesh_ndim(tsr_layout_mesh(layout));
    for (int i = 0; i < ndim; i++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[i];
        keeps = keeps && p->kind == TSR_SHARD && p->dim == dim && p->order == TSR_ORDER_DEFAULT;
        out[i] = keeps ? *p : tsr_shard(dim);
    }
}

/* Sets `out` to x's placements with Replicate in place of each Partial, and `*some` to whether
 * there is one. */
static void without_partial(const tsr_layout *layout, tsr_placement *out, bool *some)
{
    const int ndim = tsr_mesh_ndim(tsr_layout_mesh(layout));
    *some = false;
    for (int i = 0; i < ndim; i++) {
        const tsr_placement *const p = &tsr_layout_placements(layout)[i];
        out[i] = p->kind == TSR_PARTIAL ? tsr_replicate() : *p;
        *some = *some || p->kind == TSR_PARTIAL;
    }
}

/* Sets the placements to some that cut `dim` alone, and leave ranks where they are if that does. */
static tsr_status choose_cuts(const tsr_layout *layout, int dim, tsr_dtype dtype, tsr_placement *out)
{
    tsr_layout *kept;
    bool are_short;
    cut_outermost(layout, dim, true, out);
    TSR_TRY(tsr_layout_with(layout, out, &kept));
    const tsr_status status = has_short_runs(kept, dtype, &are_short);
    tsr_layout_destroy(kept);
    if (status == TSR_OK && are_short)
        cut_outermost(layout, dim, false, out);
    return status;
}

tsr_status tsr_checkpoint_choose_layout(const tsr_checkpoint_saving *s, tsr_checkpoint_item *item)
{
    const tsr_layout *const layout = tsr_dtensor_layout(item->tensor.x);
    const tsr_dtype dtype = item->tensor.dtype;
    const int dim = outermost(layout);
    bool partial, are_short = false;
    without_partial(layout, item->placements, &partial);
    item->moves = partial;
    if (s->dcp || dim == tsr_layout_ndim(layout))
        return TSR_OK;
    if (partial && row_bytes(layout, dim, dtype) * tsr_layout_shape(layout)[dim] < SMALL_BYTES)
        return TSR_OK;
    TSR_TRY(has_short_runs(layout, dtype, &are_short));
    if (!partial && !are_short)
        return TSR_OK;
    item->moves = true;
    return choose_cuts(layout, dim, dtype, item->placements);
}

tsr_status tsr_checkpoint_move(const tsr_checkpoint_item *item, const tsr_dtensor *part, tsr_dtensor **out)
{
    return tsr_redistribute(part ? part : item->tensor.x, item->placements, out);
}

/* Rows, indices of dim 0, of a part. 0: the item moves as a whole, since its ranks do not have all
 * rows, or since another dim is to be cut. */
static int64_t rows_at_once(const tsr_layout *layout)
{
    const int64_t ranks = tsr_mesh_count(tsr_layout_mesh(layout));
    const int ndim = tsr_mesh_ndim(tsr_layout_mesh(layout));
    for (int i = 0; i < ndim; i++)
        if (tsr_layout_placements(layout)[i].kind == TSR_SHARD && tsr_layout_placements(layout)[i].dim == 0)
            return 0;
    if (outermost(layout) != 0 || tsr_layout_ndim(layout) == 0)
        return 0;
    const int64_t bytes = row_bytes(layout, 0, tsr_layout_dtype(layout)), each = bytes > 0 ? PART_BYTES / bytes : 0;
    return each > 1 ? each * ranks : ranks;
}

int64_t tsr_checkpoint_parts(const tsr_checkpoint_item *item)
{
    const tsr_layout *const layout = tsr_dtensor_layout(item->tensor.x);
    const int64_t each = rows_at_once(layout);
    if (each == 0 || tsr_layout_shape(layout)[0] <= each)
        return 1;
    return (tsr_layout_shape(layout)[0] + each - 1) / each;
}

tsr_status tsr_checkpoint_view_part(const tsr_checkpoint_item *item, int64_t part, int64_t *place, tsr_dtensor **out)
{
    *place = 0;
    *out = NULL;
    if (tsr_checkpoint_parts(item) == 1)
        return TSR_OK;
    const tsr_layout *const layout = tsr_dtensor_layout(item->tensor.x);
    const int64_t rows = tsr_layout_shape(layout)[0], each = rows_at_once(layout), begin = part * each;
    *place = begin * row_bytes(layout, 0, item->tensor.dtype);
    return tsr_dtensor_rows(item->tensor.x, begin, begin + each < rows ? begin + each : rows, out);
}
