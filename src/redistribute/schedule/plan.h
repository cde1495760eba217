/** What a plan holds: one rank's part of the moves of one tensor or several, as boxes in local positions of its own and its peers' shards.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_PLAN_H
#define TSR_REDISTRIBUTE_SCHEDULE_PLAN_H

#include <tessera/plan.h>

#include "base/references.h"
#include "comm/collectives/native.h"
#include "device/device.h"
#include "mesh/node_map.h"
#include "placement/meter.h"
#include "redistribute/match/division.h"
#include "redistribute/match/problem.h"

/** A run of boxes that travels between this rank and `peer` (a rank of the communicator; this rank itself for a local copy). */
typedef struct tsr_transfer {
    int64_t peer;
    size_t first_box, box_count;
    int64_t elements;
} tsr_transfer;

typedef struct tsr_transfers {
    tsr_transfer *at;
    size_t count, capacity;
    int64_t elements; /**< to or from other ranks */
} tsr_transfers;

/** A part of the destination that this rank reduces: `terms` contributors from `first_term` on in the plan's `contributors`, in the order
 * of the reduction. */
typedef struct tsr_reduction {
    size_t first_box, box_count;
    int64_t elements;
    size_t first_term;
} tsr_reduction;

/** Of an execution: sources travel, results, and what ranks of a node hand round. */
#define TSR_PHASES 3

/** In tsr_parcel.term: the parcel is moved, not reduced. */
#define TSR_NO_TERM SIZE_MAX

/** What an item sends to a peer, or receives from it, as messages. */
typedef struct tsr_parcel {
    int64_t peer;
    size_t item;
    size_t first_box, box_count;
    int64_t elements;
    size_t term; /**< received to be reduced: which of the item's contributors sends it */
} tsr_parcel;

/** All that goes one way in one phase, a peer's parcels together. */
typedef struct tsr_mail {
    tsr_parcel *at;
    size_t count, capacity;
    size_t messages; /**< peers */
} tsr_mail;

/**
 * A move that is one collective, over each group of ranks that differ in some mesh dims alone. It takes the place of the mail where the
 * engine has that collective of its own. What it is follows from layouts and options, so that all ranks find the same.
 */
typedef struct tsr_native_move {
    tsr_native kind;
    bool varies[TSR_MAX_DIMS]; /**< the source's mesh dims in which ranks of a group differ */
    int64_t ranks;             /**< of a group */
    int64_t root;              /**< of a broadcast: the rank of this rank's group that has all */
    tsr_reduce_op op;
    /** What is gathered or scattered, one piece a rank of the group, as `peer`, ascending; of the others the whole shard, in one box. None
     * where this group's shards are empty. */
    tsr_transfers pieces;
    size_t workspace_bytes; /**< that this rank packs into and unpacks from; 0: pieces of contiguous tensors lie as the engine takes them */
    bool is_too_large;      /**< the workspace, for options.max_workspace: this rank is not able */
} tsr_native_move;

/** One tensor's move, as far as one rank has to do with it. */
typedef struct tsr_item {
    tsr_context *context;                    /**< the plan's */
    tsr_meter *meter;                        /**< the plan's */
    tsr_layout *src, *dst;                   /**< what is planned and executed: those given, or divided ones */
    const tsr_layout *given_src, *given_dst; /**< what users gave, and are told; borrowed */
    tsr_division *division;                  /**< how src and dst come from those; NULL: they are the same */
    tsr_problem problem;
    int64_t rank;
    bool in_src, in_dst;
    int64_t src_coordinate[TSR_MAX_DIMS], dst_coordinate[TSR_MAX_DIMS];
    int src_ndim, dst_ndim; /**< of the local tensors */
    int64_t src_shape[TSR_MAX_DIMS], dst_shape[TSR_MAX_DIMS];
    int64_t src_strides[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS]; /**< of these shapes, row by row without gaps */
    int64_t shown_strides[TSR_MAX_DIMS]; /**< of sources in tsr_call_buffers: on all ranks those of the largest shard */
    bool fills;                          /**< the whole local destination is filled with the identity of problem.fill */
    bool results;                        /**< there is a second phase; like what follows the same on every rank */
    const tsr_node_map *nodes;           /**< the plan's; NULL: nodes do not matter */
    bool shares;                         /**< what a node lacks crosses into it once, and mates hand it round in a third phase */
    bool staged;                         /**< reductions of direct mode go to the workspace where source and destination are one memory */

    /** Boxes: 3 * ndim numbers each: shape, position in the source shard, position in the destination shard. */
    int64_t *boxes;
    size_t box_count, box_capacity;

    /** The first phase: what is copied into this rank's destination; what of its source goes to other ranks, to be moved or reduced there.
     * Peers in rotated order. */
    tsr_transfers moves, sends;
    size_t first_on_host; /**< of the moves: where these begin if all memory is the host's */
    /** The second: results of reductions that other ranks give to this rank's destination, and that it gives to theirs. */
    tsr_transfers given, gives;
    /** The third: what crossed into this rank's node for all its mates, from them and to them. In the last two all hold the same piece, so
     * that positions are those of the destination on both sides. */
    tsr_transfers relayed, relays;

    tsr_reduction *reductions;
    size_t reduction_count, reduction_capacity;
    int64_t *contributors; /**< ranks: problem.terms for each reduction */
    size_t contributor_count, contributor_capacity;
    size_t *term_parcels;  /**< by messages: where in the plan's incoming mail of the first phase each contributor's parcel is; TSR_NO_TERM:
                              its own */
    int64_t term_elements; /**< that other ranks contribute to the reductions */
    int64_t *owners;       /**< ranks whose destination holds what this rank reduces, this one among them; NULL if it reduces nothing */
    size_t owner_count;

    tsr_native_move native;
} tsr_item;

/** What prepares have found out, for executions; each is 0 until the first prepare. All are atomic, for a plan is used by several threads.
 */
typedef struct tsr_plan_findings {
    int64_t agreed_rounds; /**< the most that any rank's mail needs */
    size_t scratch_bytes;  /**< of the group, for one execution */
    size_t shelf_bytes;    /**< of the group, where ranks are processes (shelf.h) */
    uint64_t kin;          /**< the number of the other communicator over which the plan was found to be right last; 0: none */
    uint64_t group_key;    /**< that of the plan's rank set */
    uint64_t native_key; /**< that of the set of ranks, within the plan's group, of the engine's own collective; 0: the engine does not have
                            the move, or some rank is not able */
} tsr_plan_findings;

struct tsr_plan {
    tsr_references references;
    tsr_context *context;
    tsr_plan_options options; /**< with rank, mode and nodes as they were picked; profile NULL */
    tsr_comm *comm;           /**< over which the layouts' meshes are, which keep it; NULL: all are abstract */
    tsr_node_map *nodes;      /**< a reference of its own; NULL: not known */
    tsr_cost_profile profile;
    tsr_device_ops host; /**< with the kernels that the context chose */
    bool inside;         /**< this rank is in one of the meshes */
    bool results;        /**< some item has a second phase; the same on every rank */
    bool shares;         /**< some item has a third */
    bool local;          /**< nothing crosses ranks, on any of them */
    bool fills;          /**< this rank fills the destination of some item */
    bool eager; /**< one item, small, all ranks have tensors, and peers write nothing here: on the host, sources are copied to where peers
                   read them, and one meeting is enough */
    uint64_t hash;
    tsr_meter meter; /**< of what making it takes */
    size_t count;
    tsr_item *items;

    tsr_mail out[TSR_PHASES], in[TSR_PHASES]; /**< by phase; message mode only */
    int64_t rounds;                           /**< that this rank's mail needs */
    bool streams;                             /**< the mesh's engine leaves work to streams, so that rounds are large */

    size_t workspace_bytes;   /**< of tsr_plan_execute() */
    tsr_plan_findings *found; /**< in the plan's own memory; changes while the plan does not */
};

/** The order in which a rank serves its peers, below, at or above 0: itself first, then the ranks after it and round, so that no peer is
 * everybody's first. */
static inline int tsr_peer_order(int64_t a, int64_t b, int64_t rank)
{
    const uint64_t x = (uint64_t)a - (uint64_t)rank, y = (uint64_t)b - (uint64_t)rank;
    return x < y ? -1 : x > y;
}

static inline const int64_t *tsr_item_box(const tsr_item *item, size_t box)
{
    return item->boxes + box * 3 * (size_t)item->src->ndim;
}

/** True if this rank executes: it is in one of the meshes, or nobody may stay away. */
static inline bool tsr_plan_takes_part(const tsr_plan *plan)
{
    return plan->inside || plan->options.no_split;
}

/** tsr_plan_create_batch(), of one tensor at least and arguments that are not NULL, for the public function `call`, which its refusals
 * name. */
tsr_status tsr_plan_create_for(const char *call, size_t count, const tsr_layout *const *src, const tsr_layout *const *dst,
                               const tsr_plan_options *options, tsr_plan **out);

/** Another rank's part of `plan`, whose layouts the two arrays list, for the public function `call`. The caller destroys it. */
tsr_status tsr_plan_create_like(const char *call, const tsr_plan *plan, const tsr_layout *const *src, const tsr_layout *const *dst,
                                int64_t rank, tsr_plan **out);

#endif
