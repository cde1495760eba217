#include "redistribute/schedule/item.h"

#include "base/memory/memory.h"
#include "base/sort.h"
#include "comm/core/call.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "redistribute/schedule/collective.h"
#include "redistribute/schedule/receives.h"
#include "redistribute/schedule/regions.h"
#include "redistribute/schedule/sends.h"
#include "redistribute/schedule/variant.h"

#include <tessera/sys/status.h>

/* Strides in elements, row by row without gaps. */
static void find_strides(int ndim, const int64_t *shape, int64_t *strides)
{
    int64_t elements = 1;
    for (int dim = ndim - 1; dim >= 0; dim--) {
        strides[dim] = elements;
        elements *= shape[dim];
    }
}

static void locate_given(tsr_given_shard *shard, const tsr_layout *layout, const int64_t *coordinate)
{
    shard->ndim = tsr_layout_local_shape(layout, coordinate, shard->shape);
    find_strides(shard->ndim, shard->shape, shard->strides);
}

static void locate_rank(tsr_item *item)
{
    int64_t largest[TSR_MAX_DIMS];
    if (item->rank < 0)
        return;
    item->in_src = tsr_mesh_locate(item->src->mesh, item->rank, item->src_coordinate);
    item->in_dst = tsr_mesh_locate(item->dst->mesh, item->rank, item->dst_coordinate);
    item->src_ndim = tsr_layout_local_shape(item->src, item->in_src ? item->src_coordinate : NULL, item->src_shape);
    item->dst_ndim = tsr_layout_local_shape(item->dst, item->in_dst ? item->dst_coordinate : NULL, item->dst_shape);
    find_strides(item->src_ndim, item->src_shape, item->src_strides);
    find_strides(item->dst_ndim, item->dst_shape, item->dst_strides);
    for (int dim = 0; dim < item->src->ndim; dim++)
        largest[dim] = tsr_layout_largest_length(item->src, dim);
    find_strides(item->src->ndim, largest, item->shown_strides);
    if (!item->division)
        return;
    locate_given(&item->division->from, item->given_src, item->in_src ? item->src_coordinate : NULL);
    locate_given(&item->division->to, item->given_dst, item->in_dst ? item->dst_coordinate : NULL);
}

/* Transfers of one peer stay in the order in which both sides found them. */
static int by_peer(const void *a, const void *b, const void *rank)
{
    const tsr_transfer *x = a, *y = b;
    const int order = tsr_peer_order(x->peer, y->peer, *(const int64_t *)rank);
    return order != 0 ? order : x->first_box < y->first_box ? -1 : x->first_box > y->first_box;
}

static void rotate_transfers(tsr_transfers *transfers, int64_t rank)
{
    tsr_sort_array(transfers->at, transfers->count, sizeof *transfers->at, by_peer, &rank);
}

/* Index of the first move. Moves are in tsr_peer_order(). On a host, if there are replicas, all
 * begin with their lowest peer: they read the same piece at once, and a shared cache fetches it
 * once. */
static size_t first_on_host(const tsr_item *item)
{
    const tsr_transfers *moves = &item->moves;
    if (tsr_side_count(&item->problem.dst, TSR_ROLE_FREE) == 1)
        return 0;
    for (size_t i = 1; i < moves->count; i++)
        if (moves->at[i].peer < moves->at[i - 1].peer)
            return i;
    return 0;
}

/* True if results are given to other owners: there are several, and not each reduces the whole. */
static bool has_results(const tsr_problem *problem)
{
    return problem->reduces && !problem->each && tsr_side_count(&problem->dst, TSR_ROLE_FREE) > 1;
}

bool tsr_item_is_small(const tsr_item *item)
{
    int64_t bytes = (int64_t)item->src->element_bytes;
    for (int dim = 0; dim < item->src->ndim; dim++)
        bytes *= item->src->shape[dim];
    return bytes <= TSR_CALL_BUFFER_BYTES;
}

bool tsr_item_is_eager(const tsr_item *item, tsr_mode mode)
{
    return mode == TSR_MODE_DIRECT && !item->problem.local && !item->results && !item->shares &&
           tsr_item_is_small(item);
}

static tsr_status take_layouts(tsr_item *item, const tsr_layout *src, const tsr_layout *dst)
{
    item->given_src = src;
    item->given_dst = dst;
    TSR_TRY(tsr_division_find(src, dst, &item->src, &item->dst, &item->division));
    if (!item->division) {
        item->src = tsr_layout_retain((tsr_layout *)src);
        item->dst = tsr_layout_retain((tsr_layout *)dst);
    }
    tsr_problem_init(&item->problem, item->src, item->dst);
    if (item->division) {
        tsr_problem given;
        tsr_problem_init(&given, src, dst);
        tsr_problem_restrict(&item->problem, &given);
    }
    return TSR_OK;
}

tsr_status tsr_item_build(tsr_item *item, const tsr_plan *plan, const tsr_layout *src, const tsr_layout *dst)
{
    TSR_TRY(take_layouts(item, src, dst));
    item->rank = plan->options.rank;
    tsr_variant_choose(item, plan);
    item->results = has_results(&item->problem);
    locate_rank(item);
    if (plan->options.rank < 0)
        return TSR_OK;
    TSR_TRY(tsr_build_receives(item));
    TSR_TRY(tsr_build_sends(item));
    TSR_TRY(tsr_native_build(item, plan));
    rotate_transfers(&item->moves, item->rank);
    rotate_transfers(&item->sends, item->rank);
    rotate_transfers(&item->given, item->rank);
    rotate_transfers(&item->gives, item->rank);
    rotate_transfers(&item->relayed, item->rank);
    rotate_transfers(&item->relays, item->rank);
    item->first_on_host = first_on_host(item);
    return TSR_OK;
}

void tsr_item_free(tsr_item *item)
{
    tsr_release(item->context, item->boxes);
    tsr_release(item->context, item->moves.at);
    tsr_release(item->context, item->sends.at);
    tsr_release(item->context, item->given.at);
    tsr_release(item->context, item->gives.at);
    tsr_release(item->context, item->relayed.at);
    tsr_release(item->context, item->relays.at);
    tsr_release(item->context, item->reductions);
    tsr_release(item->context, item->contributors);
    tsr_release(item->context, item->term_parcels);
    tsr_release(item->context, item->owners);
    tsr_release(item->context, item->native.pieces.at);
    tsr_layout_destroy(item->src);
    tsr_layout_destroy(item->dst);
    tsr_division_free(item->division);
}
