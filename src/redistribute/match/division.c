#include "redistribute/match/division.h"

#include "base/memory/memory.h"
#include "mesh/mesh.h"
#include "placement/blocks.h"
#include "placement/placement.h"

#include <tessera/sys/status.h>

/* One of the two layouts, and what becomes of it. */
typedef struct side {
    const tsr_layout *given;
    bool inside[TSR_MAX_DIMS];           /* by mesh dim: it cuts inside blocks */
    tsr_block_share share[TSR_MAX_DIMS]; /* by given dim: what each shard has of the blocks */
} side;

static bool goes_by_blocks(side *s, int dim, int64_t blocks)
{
    return tsr_layout_goes_by_blocks(s->given, dim, blocks, s->inside, &s->share[dim]);
}

/* The block length by which both layouts can be divided along `dim`; 0: there is none. */
static int64_t find_block(side *sides, int dim)
{
    for (int i = 0; i < 2; i++) {
        const int64_t blocks = tsr_layout_blocks(sides[i].given, dim);
        if (blocks > 1 && goes_by_blocks(&sides[0], dim, blocks) && goes_by_blocks(&sides[1], dim, blocks))
            return sides[i].given->shape[dim] / blocks;
    }
    return 0;
}

static tsr_placement divide_placement(const tsr_division *d, const side *s, int mesh_dim)
{
    tsr_placement p = s->given->placements[mesh_dim];
    if (p.kind != TSR_SHARD)
        return p;
    const int dim = p.dim, order = tsr_placement_order(s->given->placements, mesh_dim);
    if (tsr_mesh_shape(s->given->mesh)[mesh_dim] == 1)
        return tsr_replicate();
    if (d->block[dim] > 0)
        p = tsr_shard(0);
    p.dim = d->first[dim] + (d->block[dim] > 0 && s->inside[mesh_dim]);
    p.order = order;
    return p;
}

static tsr_status divide_layout(const tsr_division *d, const side *s, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];
    int ndim = 0;
    for (int dim = 0; dim < s->given->ndim; dim++) {
        if (d->block[dim] > 0)
            shape[ndim++] = s->given->shape[dim] / d->block[dim];
        shape[ndim++] = d->block[dim] > 0 ? d->block[dim] : s->given->shape[dim];
    }
    for (int m = 0; m < s->given->mesh_ndim; m++)
        placements[m] = divide_placement(d, s, m);
    return tsr_layout_create(s->given->mesh, placements, ndim, shape, s->given->dtype, out);
}

/* Divides dims from the first one on, while the tensor has fewer than TSR_MAX_DIMS. */
static bool divide_dims(tsr_division *d, side *sides)
{
    int added = 0;
    const int ndim = sides[0].given->ndim;
    for (int dim = 0; dim < ndim; dim++) {
        d->first[dim] = dim + added;
        d->block[dim] = ndim + added < TSR_MAX_DIMS ? find_block(sides, dim) : 0;
        added += d->block[dim] > 0;
    }
    return added > 0;
}

static bool interleaves(const tsr_layout *layout)
{
    bool any = false;
    for (int m = 0; m < layout->mesh_ndim; m++)
        any |= tsr_cut_interleaves(&layout->cuts[m]);
    return any;
}

static tsr_status make_division(const tsr_division *found, const side *sides, tsr_layout **src, tsr_layout **dst,
                                tsr_division **out)
{
    void *memory;
    TSR_TRY(tsr_allocate(sides[0].given->context, sizeof *found, &memory));
    tsr_layout *divided[2] = {NULL, NULL};
    tsr_status status = divide_layout(found, &sides[0], &divided[0]);
    if (status == TSR_OK)
        status = divide_layout(found, &sides[1], &divided[1]);
    if (status != TSR_OK) {
        tsr_layout_destroy(divided[0]);
        tsr_release(sides[0].given->context, memory);
        return status;
    }
    *out = memory;
    **out = *found;
    for (int dim = 0; dim < sides[0].given->ndim; dim++) {
        (*out)->from.inside[dim] = sides[0].share[dim].inside;
        (*out)->to.inside[dim] = sides[1].share[dim].inside;
    }
    (*out)->src = tsr_layout_retain((tsr_layout *)sides[0].given);
    (*out)->dst = tsr_layout_retain((tsr_layout *)sides[1].given);
    *src = divided[0];
    *dst = divided[1];
    return TSR_OK;
}

tsr_status tsr_division_find(const tsr_layout *given_src, const tsr_layout *given_dst, tsr_layout **src,
                             tsr_layout **dst, tsr_division **out)
{
    *out = NULL;
    if (!interleaves(given_src) && !interleaves(given_dst))
        return TSR_OK;
    tsr_division found = {0};
    side sides[2] = {{.given = given_src}, {.given = given_dst}};
    return divide_dims(&found, sides) ? make_division(&found, sides, src, dst, out) : TSR_OK;
}

void tsr_division_free(tsr_division *division)
{
    if (!division)
        return;
    tsr_layout *src = division->src, *dst = division->dst;
    tsr_release(src->context, division);
    tsr_layout_destroy(src);
    tsr_layout_destroy(dst);
}

void tsr_division_strides(const tsr_division *division, const tsr_given_shard *shard, const int64_t *strides,
                          int64_t *divided)
{
    const int ndim = division->src->ndim;
    int next = 0;
    for (int dim = 0; dim < ndim; dim++) {
        if (division->block[dim] > 0)
            divided[next++] = shard->inside[dim] * strides[dim];
        divided[next++] = strides[dim];
    }
}
