/**
 * Which ranks share a node, and how that changes a move. Nodes have any sizes, with ranks in any
 * order.
 *
 * Where nodes are known, a rank takes what it needs from a copy in its own node if there is one.
 * What no rank of a node holds crosses into it once, if the item shares: the ranks there that need
 * it and own the same destination piece (mates) each take a share, and give each other their shares
 * in the third phase. All of it is a function of the two layouts and the two coordinates, so that
 * both ends of a transfer find the same; the cost is that of looking at the ranks of one node.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_NODES_H
#define TSR_REDISTRIBUTE_SCHEDULE_NODES_H

#include "redistribute/match/homes.h"
#include "redistribute/schedule/plan.h"

/** A walk over some ranks of one node, ascending. */
typedef struct tsr_neighbours {
    const tsr_item *item;
    const int64_t *src, *dst; /**< coordinates of the source piece and the destination piece in question */
    /** the node has more rank numbers than the meshes ranks: only these ranks are looked at */
    bool sparse;
    tsr_node_range left;
} tsr_neighbours;

/** Starts a walk over the node of `rank`. `src` and `dst` are borrowed, and must not change during
 * the walk. */
tsr_neighbours tsr_neighbours_begin(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst);

/** The next rank, which may be in neither mesh; false when there is none. */
bool tsr_neighbours_next(tsr_neighbours *n, int64_t *rank);

/** The next rank that holds the source piece. */
bool tsr_neighbours_holder(tsr_neighbours *n, int64_t *rank);

/** The next rank that owns the destination piece, with the value and not a fill, and does not hold
 * the source piece. */
bool tsr_neighbours_mate(tsr_neighbours *n, int64_t *rank);

/** The next rank that owns the destination piece, with the value and not a fill; `src` is
 * ignored. */
bool tsr_neighbours_owner(tsr_neighbours *n, int64_t *rank);

/** The owner of the destination piece at `dst` that takes what rank `home`, of another node, gives
 * to the node of `rank`, and hands it round there. */
int64_t tsr_nodes_relay(const tsr_item *item, int64_t home, int64_t rank, const int64_t *dst);

/** How a rank gets a region that it needs, if it does not hold the region's source piece. */
typedef struct tsr_supply {
    int64_t holder; /**< the rank of its node from which it takes all; -1: no rank there holds the piece */
    int64_t mates;  /**< how many mates share the region, the rank itself among them */
    int64_t place;  /**< the rank's number among the mates */
    int64_t number; /**< the source piece's number, by which whole regions are dealt out */
} tsr_supply;

/** Takes of the item's meter what it costs to look at all ranks in the node of `rank` a few times,
 * as tsr_supply_of() and tsr_nodes_relay() do. TSR_ERROR_ARGUMENT: the meter does not allow it. */
tsr_status tsr_nodes_take(const tsr_item *item, int64_t rank);

tsr_supply tsr_supply_of(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst);

/** The part of a region that mate number `place` takes in the first phase; the third phase gives it
 * the other mates' parts. Where there are many source pieces, whole regions are dealt out in turn.
 * `shape`: the region's; `supply`: that of any of the mates. */
tsr_part tsr_supply_part(const tsr_item *item, const int64_t *shape, const tsr_supply *supply, int64_t place);

/** True if the ranks of the two meshes are in more than one node. False for NULL. */
bool tsr_nodes_matter(const tsr_item *item, const tsr_node_map *nodes);

static inline bool tsr_nodes_same(const tsr_item *item, int64_t a, int64_t b)
{
    return tsr_node_map_find(item->nodes, a) == tsr_node_map_find(item->nodes, b);
}

/** True if two ranks of a node are found to own the same destination piece. Checks a sample of the
 * destination's places (all if few; with listed nodes, the largest node's too). */
bool tsr_nodes_have_mates(const tsr_item *item);

#endif
