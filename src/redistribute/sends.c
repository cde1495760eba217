#include <tessera/sys/status.h>

#include "mesh/geometry.h"
#include "redistribute/build.h"
#include "redistribute/turn.h"

typedef struct sender {
    tsr_item *item;
    const tsr_problem *problem;
    tsr_regions regions;
    tsr_homes homes;
    int64_t replica;           /* which copy of its piece this rank is */
    int64_t dst[TSR_MAX_DIMS]; /* the destination coordinate of the current region's piece */
} sender;

static tsr_status add_send(sender *s, int64_t peer, const tsr_part *part)
{
    tsr_transfer send = {.peer = peer};
    TSR_TRY(tsr_regions_append(&s->regions, s->item, part, &send.first_box, &send.box_count, &send.elements));
    return tsr_transfers_append(&s->item->sends, s->item, &send);
}

/* True if the receiver takes the region from this rank. */
static bool serves(const sender *s, int64_t peer)
{
    const tsr_item *item = s->item;
    int64_t own[TSR_MAX_DIMS];
    if (peer == item->rank || (tsr_mesh_locate(item->src->mesh, peer, own) && tsr_problem_holds(s->problem, own, item->src_coordinate)))
        return false;
    if (s->problem->replicas == 1)
        return true;
    const tsr_overlap *dims[TSR_MAX_DIMS];
    for (int dim = 0; dim < item->src->ndim; dim++)
        dims[dim] = &s->regions.dims[dim];
    const tsr_piece piece = {item->src_coordinate, dims};
    return tsr_turn(s->problem, &piece, s->dst) % s->problem->replicas == s->replica;
}

static tsr_status add_moves(sender *s)
{
    const int64_t receivers = tsr_side_count(&s->problem->dst, TSR_ROLE_FREE);
    for (int64_t i = 0; i < receivers; i++) {
        tsr_side_decode(&s->problem->dst, TSR_ROLE_FREE, i, s->dst);
        const int64_t peer = tsr_mesh_rank(s->item->dst->mesh, s->dst);
        if (serves(s, peer))
            TSR_TRY(add_send(s, peer, NULL));
    }
    return TSR_OK;
}

static tsr_status add_contributions(sender *s)
{
    tsr_item *item = s->item;
    TSR_TRY(tsr_homes_find(&s->homes, s->problem, item->src_coordinate, s->dst));
    const int64_t term = tsr_side_encode(&s->problem->src, TSR_ROLE_REDUCED, item->src_coordinate);
    for (int64_t home = 0; home < s->homes.count; home++) {
        const int64_t peer = tsr_homes_rank(&s->homes, s->problem, home);
        int64_t contributor[TSR_MAX_DIMS];
        tsr_homes_contributor(&s->homes, s->problem, item->src_coordinate, home, term, contributor);
        if (peer == item->rank || tsr_mesh_rank(item->src->mesh, contributor) != item->rank)
            continue;
        const tsr_part part = tsr_regions_part(&s->regions, s->problem, home, s->homes.count);
        TSR_TRY(add_send(s, peer, &part));
    }
    return TSR_OK;
}

static tsr_status walk(sender *s)
{
    tsr_item *item = s->item;
    TSR_TRY(tsr_regions_begin(&s->regions, item->src, item->src_coordinate, item->dst, true));
    for (int dim = 0; s->problem->replicas > 1 && dim < item->src->ndim; dim++)
        tsr_turn_prepare(s->problem, item->src_coordinate, dim, &s->regions.dims[dim]);
    s->replica = tsr_side_encode(&s->problem->src, TSR_ROLE_FREE, item->src_coordinate);
    for (int i = 0; i < s->problem->dst.ndim; i++)
        if (s->problem->dst.roles[i] == TSR_ROLE_KEPT)
            s->dst[i] = item->src_coordinate[s->problem->dst.twin[i]];
    for (; !s->regions.done; tsr_regions_next(&s->regions)) {
        tsr_regions_far(&s->regions, s->dst);
        TSR_TRY(s->problem->reduces ? add_contributions(s) : add_moves(s));
    }
    return TSR_OK;
}

tsr_status tsr_build_sends(tsr_item *item)
{
    if (!item->in_src || item->problem.local)
        return TSR_OK;
    sender s = {.item = item, .problem = &item->problem};
    s.regions.far = item->dst;
    const tsr_status status = walk(&s);
    tsr_homes_free(&s.homes, item->context);
    tsr_regions_free(&s.regions);
    return status;
}
