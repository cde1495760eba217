/**
 * Who shares a node, and what that does to a move: nodes of any sizes, with ranks in any order.
 *
 * Where nodes are known, a rank takes what it needs from a copy in its own node if there is one. What no rank of a node holds crosses into
 * it once: the ranks there that need it, and own the same destination piece (mates), share it out, and give each other their shares in the
 * third phase. All of it is a function of the two layouts and the two coordinates, so that both ends of a transfer find the same; the cost
 * is that of looking at the ranks of one node.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_NODES_H
#define TSR_REDISTRIBUTE_SCHEDULE_NODES_H

#include "redistribute/match/homes.h"
#include "redistribute/schedule/plan.h"

/** A walk over some ranks of one node, ascending. */
typedef struct tsr_neighbours {
    const tsr_item *item;
    const int64_t *src, *dst; /**< coordinates of the source piece and the destination piece in question */
    bool sparse;              /**< the node has numbers for more ranks than the meshes have: only theirs are looked at */
    tsr_node_range left;
} tsr_neighbours;

/** Of the node of `rank`. `src` and `dst` must stay as they are during the walk. */
tsr_neighbours tsr_neighbours_begin(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst);

/** The next rank, which may be in neither mesh; false when there is none. */
bool tsr_neighbours_next(tsr_neighbours *n, int64_t *rank);

/** The next rank that holds the source piece. */
bool tsr_neighbours_holder(tsr_neighbours *n, int64_t *rank);

/** The next rank whose destination piece it is, the value and not a fill, and which does not hold the source piece. */
bool tsr_neighbours_mate(tsr_neighbours *n, int64_t *rank);

/** The next rank that owns the destination piece and holds the value; `src` does not count. */
bool tsr_neighbours_owner(tsr_neighbours *n, int64_t *rank);

/** Which owner of the destination piece at `dst` takes what rank `home` gives to the node of `rank`, which is another: it hands it round
 * there. */
int64_t tsr_nodes_relay(const tsr_item *item, int64_t home, int64_t rank, const int64_t *dst);

/** How a rank that needs a region, and does not hold its source piece, comes by it. */
typedef struct tsr_supply {
    int64_t holder; /**< in its node: whom it takes all from; -1: nobody there has it */
    int64_t mates;  /**< that share the region, itself among them */
    int64_t place;  /**< its number among them */
    int64_t number; /**< the source piece's, by which whole regions are dealt out */
} tsr_supply;

/** Takes of the item's meter what looking at all ranks in the node of `rank` a few times is worth, as the calls here do that find a rank's
 * supply or relay. TSR_ERROR_ARGUMENT: that is too much. */
tsr_status tsr_nodes_take(const tsr_item *item, int64_t rank);

tsr_supply tsr_supply_of(const tsr_item *item, int64_t rank, const int64_t *src, const int64_t *dst);

/** What of a region mate number `place` takes in the first phase; the others' shares it is given in the third phase. Where there are many
 * source pieces, whole regions are dealt out in turn. `shape`: the region's; `supply`: that of any of the mates. */
tsr_part tsr_supply_part(const tsr_item *item, const int64_t *shape, const tsr_supply *supply, int64_t place);

/** True if some rank of the two meshes is in another node than the rest, so that nodes matter. False for NULL. */
bool tsr_nodes_matter(const tsr_item *item, const tsr_node_map *nodes);

static inline bool tsr_nodes_same(const tsr_item *item, int64_t a, int64_t b)
{
    return tsr_node_map_find(item->nodes, a) == tsr_node_map_find(item->nodes, b);
}

/** True if two ranks of a node own the same destination piece. Looks at some places of the destination's mesh and of the largest of listed
 * nodes, at all where there are few. */
bool tsr_nodes_have_mates(const tsr_item *item);

#endif
