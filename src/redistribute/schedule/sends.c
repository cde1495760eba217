#include "redistribute/schedule/sends.h"

#include "base/checked.h"
#include "mesh/mesh.h"
#include "redistribute/match/turn.h"
#include "redistribute/schedule/nodes.h"
#include "redistribute/schedule/regions.h"

#include <tessera/sys/status.h>

typedef struct sender {
    tsr_item *item;
    const tsr_problem *problem;
    tsr_reach reach[TSR_MAX_DIMS]; /* of this rank's piece, by tensor dim */
    tsr_turns turns;               /* over the ranks that need some of the piece */
    tsr_regions region;
    tsr_homes homes;
} sender;

static tsr_status add_send(sender *s, int64_t peer, const tsr_part *part)
{
    return tsr_transfers_take(&s->item->sends, s->item, &s->region, peer, part, NULL);
}

static bool is_owner(const sender *s, int64_t peer)
{
    int64_t own[TSR_MAX_DIMS];
    return tsr_mesh_locate(s->item->src->mesh, peer, own) &&
           tsr_problem_holds(s->problem, own, s->item->src_coordinate);
}

/* Where nodes are known: the receiver takes its share from this rank, unless a rank in its own node
 * holds the piece. */
static tsr_status add_far_move(sender *s, int64_t peer)
{
    const tsr_item *item = s->item;
    TSR_TRY(tsr_nodes_take(item, peer));
    const tsr_supply supply = tsr_supply_of(item, peer, item->src_coordinate, s->turns.coordinate);
    if (supply.holder >= 0)
        return TSR_OK;
    tsr_regions_set(&s->region, s->reach, s->turns.coordinate);
    const tsr_part part = tsr_supply_part(item, s->region.shape, &supply, supply.place);
    return add_send(s, peer, &part);
}

/* True if the rank at destination coordinate `dst` takes values of this rank's piece. */
static bool meets(const sender *s, const int64_t *dst)
{
    tsr_range single;
    for (int m = 0; m < s->problem->dst.ndim; m++) {
        const int twin = s->problem->dst.twin[m];
        if (s->problem->dst.roles[m] == TSR_ROLE_KEPT && dst[m] != s->item->src_coordinate[twin])
            return false;
        single.begin[m] = dst[m];
        single.end[m] = dst[m] + 1;
    }
    for (int dim = 0; dim < s->item->src->ndim; dim++)
        if (tsr_reach_count(&s->reach[dim], &single, false) == 0)
            return false;
    return tsr_problem_has_value(s->problem, dst);
}

/* Sends to the ranks in this rank's own node that take all they need of its piece from this
 * rank. */
static tsr_status add_near_moves(sender *s)
{
    const tsr_item *item = s->item;
    int64_t peer, dst[TSR_MAX_DIMS];
    TSR_TRY(tsr_nodes_take(item, item->rank));
    for (tsr_neighbours n = tsr_neighbours_begin(item, item->rank, NULL, NULL); tsr_neighbours_next(&n, &peer);) {
        if (is_owner(s, peer) || !tsr_mesh_locate(item->dst->mesh, peer, dst) || !meets(s, dst))
            continue;
        TSR_TRY(tsr_nodes_take(item, peer));
        if (tsr_supply_of(item, peer, item->src_coordinate, dst).holder != item->rank)
            continue;
        tsr_regions_set(&s->region, s->reach, dst);
        TSR_TRY(add_send(s, peer, NULL));
    }
    return TSR_OK;
}

/* Sends to the receivers whose turn is this replica's: every k-th, if there are k replicas. Between
 * two meshes owners have a turn too, and let it pass. */
static tsr_status add_moves(sender *s)
{
    const int64_t replica = tsr_side_encode(&s->problem->src, TSR_ROLE_FREE, s->item->src_coordinate),
                  step = s->problem->replicas;
    if (replica < s->turns.count) {
        const int64_t most = tsr_ceil_div(s->turns.count - replica, step);
        TSR_TRY(tsr_meter_expect(s->item->meter, most));
        TSR_TRY(tsr_transfers_reserve(&s->item->sends, s->item, (size_t)most, (size_t)most));
    }
    for (int64_t turn = replica; turn < s->turns.count; turn += step) {
        tsr_turns_seek(&s->turns, turn);
        const int64_t peer = tsr_mesh_rank(s->item->dst->mesh, s->turns.coordinate);
        if (!s->problem->same_mesh && is_owner(s, peer)) {
            TSR_TRY(tsr_meter_take(s->item->meter, 1));
            continue;
        }
        if (s->item->nodes) {
            TSR_TRY(add_far_move(s, peer));
            continue;
        }
        tsr_regions_set(&s->region, s->reach, s->turns.coordinate);
        TSR_TRY(add_send(s, peer, NULL));
    }
    return TSR_OK;
}

/* Sends this rank's term to the homes of the current region that take it from this rank. */
static tsr_status add_terms(sender *s)
{
    const tsr_item *item = s->item;
    const int64_t term = tsr_side_encode(&s->problem->src, TSR_ROLE_REDUCED, item->src_coordinate);
    const tsr_sharing sharing = tsr_homes_share(&s->homes, s->problem, s->region.shape);
    int64_t home;
    for (int64_t i = 0; (home = tsr_homes_served(&s->homes, s->problem, item->src_coordinate, i)) < sharing.busy; i++) {
        const int64_t peer = tsr_homes_rank(&s->homes, s->problem, home);
        TSR_TRY(tsr_meter_take(item->meter, 1));
        int64_t contributor[TSR_MAX_DIMS];
        tsr_homes_contributor(&s->homes, s->problem, item->src_coordinate, home, term, contributor);
        if (peer == item->rank || tsr_mesh_rank(item->src->mesh, contributor) != item->rank)
            continue;
        const tsr_part part = tsr_sharing_part(&sharing, home);
        TSR_TRY(add_send(s, peer, &part));
    }
    return TSR_OK;
}

/* Upper bound of the homes of a region that have something to do: the number of owners, and where
 * they share the work, the longest dim's length. */
static int64_t most_busy(const sender *s)
{
    const tsr_item *item = s->item;
    const int64_t owners = tsr_side_count(&s->problem->dst, TSR_ROLE_FREE);
    int64_t longest = 1;
    if (s->problem->each)
        return owners;
    for (int dim = 0; dim < item->src->ndim; dim++)
        longest = tsr_max_i64(longest, tsr_min_i64(item->src_shape[dim], tsr_layout_largest_length(item->dst, dim)));
    return tsr_min_i64(owners, longest);
}

static tsr_status add_contributions(sender *s)
{
    if (tsr_homes_first_served(s->problem, s->item->src_coordinate) >= most_busy(s))
        return TSR_OK;
    TSR_TRY(tsr_meter_take(s->item->meter, s->turns.count));
    for (int64_t region = 0; region < s->turns.count; region++) {
        tsr_turns_seek(&s->turns, region);
        tsr_regions_set(&s->region, s->reach, s->turns.coordinate);
        TSR_TRY(tsr_homes_find(&s->homes, s->problem, s->item->src_coordinate, s->turns.coordinate));
        TSR_TRY(add_terms(s));
    }
    return TSR_OK;
}

/* Narrows the range to one coordinate for each destination piece with a home that may take from
 * this rank: on one mesh, pieces where the home's coordinates on the source's free dims are this
 * rank's. Empty if there is no such piece. */
static void range_of_pieces(const sender *s, tsr_range *range)
{
    const tsr_problem *problem = s->problem;
    for (int m = 0; m < problem->dst.ndim; m++) {
        const int twin = problem->dst.twin[m];
        const bool given = twin >= 0 && problem->src.roles[twin] == TSR_ROLE_FREE;
        const int64_t own = twin >= 0 ? s->item->src_coordinate[twin] : 0;
        if (problem->dst.roles[m] == TSR_ROLE_CUT && given)
            range->begin[m] = own;
        if (problem->dst.roles[m] != TSR_ROLE_CUT && problem->dst.roles[m] != TSR_ROLE_KEPT)
            range->end[m] = problem->dst.roles[m] == TSR_ROLE_ZERO && given && own != 0 ? 0 : 1;
        else if (given)
            range->end[m] = own + 1;
    }
}

static tsr_status count_receivers(sender *s)
{
    tsr_item *item = s->item;
    s->turns.problem = s->problem;
    s->turns.reach = s->reach;
    s->turns.leaves_out = s->problem->same_mesh && !s->problem->reduces;
    tsr_turn_ranges(s->problem, item->src_coordinate, &s->turns.all, &s->turns.owned);
    if (s->problem->reduces)
        range_of_pieces(s, &s->turns.all);
    for (int dim = 0; dim < item->src->ndim; dim++) {
        tsr_reach_init(&s->reach[dim], item->meter, item->src, item->dst, dim);
        TSR_TRY(tsr_reach_build(&s->reach[dim], item->src, item->src_coordinate, &s->turns.all));
        if (s->turns.leaves_out)
            TSR_TRY(tsr_reach_mark(&s->reach[dim], &s->turns.owned));
    }
    tsr_turns_begin(&s->turns);
    return TSR_OK;
}

tsr_status tsr_build_sends(tsr_item *item)
{
    if (!item->in_src || item->problem.local || tsr_shape_is_empty(item->src_ndim, item->src_shape))
        return TSR_OK;
    sender s = {.item = item,
                .problem = &item->problem,
                .region = {.far = item->dst, .near_is_source = true},
                .homes = {.meter = item->meter}};
    tsr_status status = count_receivers(&s);
    if (status == TSR_OK)
        status = s.problem->reduces ? add_contributions(&s) : add_moves(&s);
    if (status == TSR_OK && item->nodes && !item->problem.reduces)
        status = add_near_moves(&s);
    tsr_homes_free(&s.homes, item->context);
    for (int dim = 0; dim < item->src->ndim; dim++)
        tsr_reach_free(&s.reach[dim], item->context);
    return status;
}
