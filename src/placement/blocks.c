#include "placement/blocks.h"

int64_t tsr_layout_blocks(const tsr_layout *layout, int dim)
{
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    int64_t blocks = 1;
    for (int i = 0; i < cuts->count; i++) {
        const tsr_cut *cut = &layout->cuts[cuts->mesh_dim[i]];
        const bool last = cut->interleave > 1;
        if (blocks > layout->shape[dim] / (last ? cut->interleave : cut->parts))
            return 1;
        blocks *= last ? cut->interleave : cut->parts;
        if (last)
            return blocks;
    }
    return 1;
}

static bool divides_evenly(const tsr_cut *cut, int64_t length)
{
    return length % cut->parts == 0 && tsr_cut_size(cut, length, 0) == length / cut->parts &&
           tsr_cut_size(cut, length, cut->parts - 1) == length / cut->parts;
}

/* Applies one cut to `share`: the cut deals out whole blocks, or (`*inside`) the same part of each
 * block. False if it does neither. */
static bool cut_share(tsr_block_share *share, const tsr_cut *cut, bool *inside)
{
    if (cut->size_starts || cut->block_starts)
        return false;
    *inside = share->blocks == cut->interleave;
    if (*inside) {
        tsr_cut one = *cut;
        one.interleave = 1;
        if (!divides_evenly(&one, share->inside))
            return false;
        share->inside /= cut->parts;
        return true;
    }
    if (cut->interleave > 1 || share->blocks % cut->parts != 0 || !divides_evenly(cut, share->blocks * share->inside))
        return false;
    share->blocks /= cut->parts;
    return true;
}

bool tsr_layout_goes_by_blocks(const tsr_layout *layout, int dim, int64_t blocks, bool *inside, tsr_block_share *share)
{
    const tsr_dim_cuts *cuts = &layout->dims[dim];
    const int64_t length = layout->shape[dim];
    if (length == 0 || length % blocks != 0)
        return false;
    *share = (tsr_block_share){blocks, length / blocks};
    for (int i = 0; i < cuts->count; i++)
        if (!cut_share(share, &layout->cuts[cuts->mesh_dim[i]], &inside[cuts->mesh_dim[i]]))
            return false;
    return true;
}
