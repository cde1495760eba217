#include "redistribute/schedule/receives.h"

#include "base/memory/memory.h"
#include "mesh/mesh.h"
#include "redistribute/match/turn.h"
#include "redistribute/schedule/nodes.h"
#include "redistribute/schedule/regions.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Which ranks need the source piece of the current region, by tensor dim. Where they must be
 * listed, the lists are kept for all groups of the walk. */
typedef struct needs {
    tsr_range all, owned;
    tsr_reach reach[TSR_MAX_DIMS];
    size_t group[TSR_MAX_DIMS]; /* the group of the walk that the reach belongs to, counted from 1; 0: none yet */
    tsr_overlap *lists[TSR_MAX_DIMS];
    bool *listed[TSR_MAX_DIMS];
} needs;

typedef struct receiver {
    tsr_item *item;
    const tsr_problem *problem;
    tsr_regions regions;
    tsr_homes homes;
    needs needs;
    int64_t src[TSR_MAX_DIMS]; /* the source coordinate of the current region's piece */
} receiver;

static tsr_status prepare_needs(receiver *r)
{
    for (int dim = 0; dim < r->item->dst->ndim; dim++) {
        tsr_reach_init(&r->needs.reach[dim], r->item->meter, r->item->src, r->item->dst, dim);
        if (!r->needs.reach[dim].listed)
            continue;
        const size_t count = r->regions.dims[dim].group_count;
        void *memory;
        TSR_TRY(tsr_allocate_array(r->item->context, count, sizeof(tsr_overlap), &memory));
        r->needs.lists[dim] = memory;
        TSR_TRY(tsr_allocate_array(r->item->context, count, sizeof(bool), &memory));
        r->needs.listed[dim] = memory;
    }
    return TSR_OK;
}

static void free_needs(receiver *r)
{
    for (int dim = 0; dim < TSR_MAX_DIMS; dim++) {
        for (size_t g = 0; r->needs.listed[dim] && g < r->regions.dims[dim].group_count; g++)
            tsr_overlap_free(&r->needs.lists[dim][g], r->item->context);
        tsr_release(r->item->context, r->needs.lists[dim]);
        tsr_release(r->item->context, r->needs.listed[dim]);
    }
}

/* Makes the reach along `dim` that of the walk's current group; a list that was kept is put
 * back. */
static tsr_status enter_group(receiver *r, int dim)
{
    needs *n = &r->needs;
    const size_t g = r->regions.group[dim];
    if (n->group[dim] == g + 1)
        return TSR_OK;
    n->group[dim] = g + 1;
    const bool found = n->reach[dim].listed && n->listed[dim][g];
    n->reach[dim].overlap = found ? n->lists[dim][g] : (tsr_overlap){0};
    if (found)
        return TSR_OK;
    const tsr_status status = tsr_reach_build(&n->reach[dim], r->item->src, r->src, &n->all);
    if (n->reach[dim].listed) {
        n->lists[dim][g] = n->reach[dim].overlap;
        n->listed[dim][g] = true;
    }
    return status;
}

static tsr_status find_turn(receiver *r, int64_t *turn)
{
    needs *n = &r->needs;
    tsr_turns turns = {.problem = r->problem, .reach = n->reach, .leaves_out = r->problem->same_mesh};
    tsr_turn_ranges(r->problem, r->src, &turns.all, &turns.owned);
    n->all = turns.all;
    for (int dim = 0; dim < r->item->dst->ndim; dim++) {
        TSR_TRY(enter_group(r, dim));
        if (turns.leaves_out)
            TSR_TRY(tsr_reach_mark(&n->reach[dim], &turns.owned));
    }
    tsr_turns_begin(&turns);
    *turn = tsr_turns_of(&turns, r->item->dst_coordinate);
    return TSR_OK;
}

static bool has_own(const receiver *r)
{
    return r->item->in_src && tsr_problem_holds(r->problem, r->item->src_coordinate, r->src);
}

/* Finds the replica whose turn it is to serve this rank. */
static tsr_status pick_replica(receiver *r, int64_t *peer)
{
    const tsr_item *item = r->item;
    int64_t turn = 0;
    if (r->problem->replicas > 1)
        TSR_TRY(find_turn(r, &turn));
    tsr_side_decode(&r->problem->src, TSR_ROLE_FREE, turn % r->problem->replicas, r->src);
    *peer = tsr_mesh_rank(item->src->mesh, r->src);
    return TSR_OK;
}

/* Adds what mates exchange: their shares of a region that no rank of their node holds. */
static tsr_status share_region(receiver *r, const tsr_supply *supply, const tsr_transfer *own)
{
    tsr_item *item = r->item;
    tsr_neighbours mates = tsr_neighbours_begin(item, item->rank, r->src, item->dst_coordinate);
    int64_t mate;
    for (int64_t place = 0; tsr_neighbours_mate(&mates, &mate); place++) {
        if (mate == item->rank)
            continue;
        const tsr_part part = tsr_supply_part(item, r->regions.shape, supply, place);
        const tsr_transfer relay = {mate, own->first_box, own->box_count, own->elements};
        TSR_TRY(tsr_transfers_take(&item->relayed, item, &r->regions, mate, &part, NULL));
        TSR_TRY(tsr_transfers_append(&item->relays, item, &relay));
    }
    return TSR_OK;
}

/* Where nodes are known: takes the region from a copy in this rank's node, or else a share of it
 * from the replica whose turn it is. */
static tsr_status add_move_by_node(receiver *r)
{
    tsr_item *item = r->item;
    TSR_TRY(tsr_nodes_take(item, item->rank));
    const tsr_supply supply = tsr_supply_of(item, item->rank, r->src, item->dst_coordinate);
    tsr_transfer move;
    int64_t peer;
    if (supply.holder >= 0)
        return tsr_transfers_take(&item->moves, item, &r->regions, supply.holder, NULL, NULL);
    const tsr_part part = tsr_supply_part(item, r->regions.shape, &supply, supply.place);
    TSR_TRY(pick_replica(r, &peer));
    TSR_TRY(tsr_transfers_take(&item->moves, item, &r->regions, peer, &part, &move));
    return item->shares ? share_region(r, &supply, &move) : TSR_OK;
}

static tsr_status add_move(receiver *r)
{
    int64_t peer = r->item->rank;
    if (!has_own(r)) {
        if (r->item->nodes)
            return add_move_by_node(r);
        TSR_TRY(pick_replica(r, &peer));
    }
    return tsr_transfers_take(&r->item->moves, r->item, &r->regions, peer, NULL, NULL);
}

/* The shortcut to Partial: this rank's destination takes all of its own source. */
static tsr_status keep_own(receiver *r)
{
    tsr_item *item = r->item;
    TSR_TRY(
        tsr_regions_begin(&r->regions, item->meter, item->src, item->src_coordinate, item->src_shape, item->dst, true));
    return r->regions.done ? TSR_OK : tsr_transfers_take(&item->moves, item, &r->regions, item->rank, NULL, NULL);
}

/* Lists the contributors to what home number `home` reduces, and adds to `*remote` how many of them
 * are other ranks. */
static tsr_status add_contributors(receiver *r, int64_t home, int64_t *remote)
{
    tsr_item *item = r->item;
    TSR_TRY(tsr_meter_take(item->meter, r->problem->terms));
    void *memory = item->contributors;
    const tsr_status status = tsr_reserve(item->context, &memory, &item->contributor_capacity,
                                          item->contributor_count + (size_t)r->problem->terms, sizeof(int64_t));
    item->contributors = memory;
    TSR_TRY(status);
    for (int64_t term = 0; term < r->problem->terms; term++) {
        int64_t contributor[TSR_MAX_DIMS];
        tsr_homes_contributor(&r->homes, r->problem, r->src, home, term, contributor);
        const int64_t rank = tsr_mesh_rank(item->src->mesh, contributor);
        item->contributors[item->contributor_count++] = rank;
        *remote += rank != item->rank;
    }
    return TSR_OK;
}

/* `*given`: true if `owner` gets results from this rank itself. Where nodes share, one owner in
 * each other node takes results for all owners there. */
static tsr_status is_given(const receiver *r, int64_t owner, bool *given)
{
    const tsr_item *item = r->item;
    *given = owner == item->rank || !item->shares || tsr_nodes_same(item, owner, item->rank);
    if (*given)
        return TSR_OK;
    TSR_TRY(tsr_nodes_take(item, owner));
    *given = tsr_nodes_relay(item, item->rank, owner, item->dst_coordinate) == owner;
    return TSR_OK;
}

/* Lists the ranks to which results go. All owners hold the same destination piece, so they are the
 * same for every region. */
static tsr_status note_owners(receiver *r)
{
    tsr_item *item = r->item;
    const int64_t count = r->problem->each ? 1 : tsr_side_count(&r->problem->dst, TSR_ROLE_FREE);
    void *memory;
    TSR_TRY(tsr_meter_take(item->meter, count));
    TSR_TRY(tsr_allocate_array(item->context, (size_t)count, sizeof(int64_t), &memory));
    item->owners = memory;
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, item->dst_coordinate, sizeof coordinate);
    for (int64_t i = 0; i < count; i++) {
        if (!r->problem->each)
            tsr_side_decode(&r->problem->dst, TSR_ROLE_FREE, i, coordinate);
        const int64_t owner = tsr_mesh_rank(item->dst->mesh, coordinate);
        bool given;
        TSR_TRY(is_given(r, owner, &given));
        if (given)
            item->owners[item->owner_count++] = owner;
    }
    return TSR_OK;
}

/* Adds a transfer to each other rank to which the result goes in the second phase. */
static tsr_status give_result(tsr_item *item, const tsr_reduction *reduction)
{
    TSR_TRY(tsr_meter_take(item->meter, (int64_t)item->owner_count));
    TSR_TRY(tsr_transfers_reserve(&item->gives, item, 0, item->owner_count - 1));
    for (size_t i = 0; i < item->owner_count; i++) {
        const tsr_transfer gift = {item->owners[i], reduction->first_box, reduction->box_count, reduction->elements};
        if (gift.peer != item->rank)
            TSR_TRY(tsr_transfers_append(&item->gives, item, &gift));
    }
    return TSR_OK;
}

static tsr_status add_reduction(receiver *r, int64_t home, const tsr_part *part)
{
    tsr_item *item = r->item;
    tsr_reduction reduction = {.first_term = item->contributor_count};
    TSR_TRY(
        tsr_regions_append(&r->regions, item, part, &reduction.first_box, &reduction.box_count, &reduction.elements));
    if (reduction.elements == 0)
        return TSR_OK;
    if (!item->owners)
        TSR_TRY(note_owners(r));
    void *memory = item->reductions;
    const tsr_status status =
        tsr_reserve(item->context, &memory, &item->reduction_capacity, item->reduction_count + 1, sizeof reduction);
    item->reductions = memory;
    TSR_TRY(status);
    int64_t remote = 0;
    TSR_TRY(add_contributors(r, home, &remote));
    item->reductions[item->reduction_count++] = reduction;
    TSR_TRY(tsr_item_add(item, &item->term_elements, reduction.elements, remote));
    return give_result(item, &reduction);
}

/* Adds what this rank gives to the other owners in its node, having taken it from a home in another
 * node. */
static tsr_status hand_round(receiver *r, const tsr_transfer *gift)
{
    tsr_item *item = r->item;
    tsr_neighbours mates = tsr_neighbours_begin(item, item->rank, NULL, item->dst_coordinate);
    tsr_transfer relay = *gift;
    TSR_TRY(tsr_nodes_take(item, item->rank));
    while (tsr_neighbours_owner(&mates, &relay.peer))
        if (relay.peer != item->rank)
            TSR_TRY(tsr_transfers_append(&item->relays, item, &relay));
    return TSR_OK;
}

/* Adds another home's part, once it is reduced: from that home, or from the owner that takes it for
 * this node. */
static tsr_status add_result(receiver *r, int64_t home, const tsr_part *part)
{
    tsr_item *item = r->item;
    if (!item->shares || tsr_nodes_same(item, home, item->rank))
        return tsr_transfers_take(&item->given, item, &r->regions, home, part, NULL);
    TSR_TRY(tsr_nodes_take(item, item->rank));
    const int64_t relay = tsr_nodes_relay(item, home, item->rank, item->dst_coordinate);
    if (relay != item->rank)
        return tsr_transfers_take(&item->relayed, item, &r->regions, relay, part, NULL);
    tsr_transfer gift;
    TSR_TRY(tsr_transfers_take(&item->given, item, &r->regions, home, part, &gift));
    return hand_round(r, &gift);
}

static tsr_status add_shared(receiver *r)
{
    const tsr_item *item = r->item;
    TSR_TRY(tsr_homes_find(&r->homes, r->problem, r->src, item->dst_coordinate));
    const int64_t own = tsr_homes_number(&r->homes, r->problem, item->dst_coordinate);
    const tsr_sharing sharing = tsr_homes_share(&r->homes, r->problem, r->regions.shape);
    const bool each = r->problem->each;
    TSR_TRY(tsr_meter_take(item->meter, each ? 1 : sharing.busy));
    if (!each)
        TSR_TRY(tsr_transfers_reserve(&r->item->given, r->item, (size_t)sharing.busy, (size_t)sharing.busy));
    for (int64_t home = each ? own : 0; home >= 0 && home < (each ? own + 1 : sharing.busy); home++) {
        const tsr_part part = tsr_sharing_part(&sharing, home);
        if (home == own)
            TSR_TRY(add_reduction(r, home, &part));
        else
            TSR_TRY(add_result(r, tsr_homes_rank(&r->homes, r->problem, home), &part));
    }
    return TSR_OK;
}

/* Makes room for the boxes and moves of all regions. */
static tsr_status reserve_moves(receiver *r)
{
    size_t boxes = 1, regions = 1;
    bool fits = true;
    for (int dim = 0; dim < r->item->dst->ndim; dim++) {
        fits = fits && !__builtin_mul_overflow(boxes, r->regions.dims[dim].segment_count, &boxes);
        regions *= r->regions.dims[dim].group_count;
    }
    TSR_TRY(tsr_meter_expect(r->item->meter, fits && boxes <= INT64_MAX ? (int64_t)boxes : INT64_MAX));
    return tsr_transfers_reserve(&r->item->moves, r->item, boxes, regions);
}

static tsr_status walk(receiver *r)
{
    tsr_item *item = r->item;
    TSR_TRY(tsr_regions_begin(&r->regions, item->meter, item->dst, item->dst_coordinate, item->dst_shape, item->src,
                              false));
    if (!r->problem->reduces)
        TSR_TRY(reserve_moves(r));
    if (r->problem->replicas > 1 && !r->problem->reduces)
        TSR_TRY(prepare_needs(r));
    for (int i = 0; i < r->problem->src.ndim; i++)
        if (r->problem->src.roles[i] == TSR_ROLE_KEPT)
            r->src[i] = item->dst_coordinate[r->problem->src.twin[i]];
    for (; !r->regions.done; tsr_regions_next(&r->regions)) {
        tsr_regions_far(&r->regions, r->src);
        TSR_TRY(r->problem->reduces ? add_shared(r) : add_move(r));
    }
    return TSR_OK;
}

tsr_status tsr_build_receives(tsr_item *item)
{
    if (!item->in_dst)
        return TSR_OK;
    item->fills = item->problem.shortcut || !tsr_problem_has_value(&item->problem, item->dst_coordinate);
    if (item->fills && !item->problem.shortcut)
        return TSR_OK;
    receiver r = {.item = item, .problem = &item->problem, .homes = {.meter = item->meter}};
    r.regions.far = item->src;
    const tsr_status status = item->problem.shortcut ? keep_own(&r) : walk(&r);
    free_needs(&r);
    tsr_homes_free(&r.homes, item->context);
    tsr_regions_free(&r.regions);
    return status;
}
