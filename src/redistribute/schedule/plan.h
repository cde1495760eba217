/** What a plan holds: one rank's part of the moves of one tensor or several, as boxes in local
 * positions of its own and its peers' shards.
 */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_PLAN_H
#define TSR_REDISTRIBUTE_SCHEDULE_PLAN_H

#include "base/references.h"
#include "comm/collectives/native.h"
#include "device/device.h"
#include "mesh/node_map.h"
#include "placement/meter.h"
#include "redistribute/match/division.h"
#include "redistribute/match/problem.h"
#include "redistribute/schedule/small.h"

#include <tessera/plan.h>

/** Consecutive boxes of an item that travel between this rank and `peer`, a rank of the
 * communicator (this rank itself for a local copy). */
typedef struct tsr_transfer {
    int64_t peer;
    size_t first_box, box_count;
    int64_t elements;
} tsr_transfer;

typedef struct tsr_transfers {
    tsr_transfer *at;
    size_t count, capacity;
    int64_t elements; /**< that travel to or from other ranks */
} tsr_transfers;

/** A part of the destination that this rank reduces. Its problem.terms contributors are in
 * tsr_item.contributors from `first_term` on, in the order of the reduction. */
typedef struct tsr_reduction {
    size_t first_box, box_count;
    int64_t elements;
    size_t first_term;
} tsr_reduction;

/** Phases of an execution: sources travel, then results of reductions, then what ranks of a node
 * hand round. */
#define TSR_PHASES 3

/** In tsr_parcel.term: the parcel is moved, not reduced. */
#define TSR_NO_TERM SIZE_MAX

/** What an item sends to one peer, or receives from one, within a message. */
typedef struct tsr_parcel {
    int64_t peer;
    size_t item;
    size_t first_box, box_count;
    int64_t elements;
    size_t term; /**< of a parcel that is received and reduced: its sender's place in tsr_item.contributors; else
                    TSR_NO_TERM */
} tsr_parcel;

/** All parcels that a rank sends in a phase, or all that it receives; a peer's are consecutive. */
typedef struct tsr_mail {
    tsr_parcel *at;
    size_t count, capacity;
    size_t messages; /**< one for each peer */
} tsr_mail;

/**
 * A move that is one collective, over each group of ranks that differ in some mesh dims alone. It
 * takes the place of the mail where the engine has the collective of its own. Which collective it
 * is follows from layouts and options, so that all ranks find the same.
 */
typedef struct tsr_native_move {
    tsr_native kind;
    bool varies[TSR_MAX_DIMS]; /**< the source's mesh dims in which ranks of a group differ */
    int64_t ranks;             /**< in a group */
    int64_t root;              /**< of a broadcast: the rank in this rank's group that holds everything */
    tsr_reduce_op op;
    /** Of a gather or a scatter, one piece for each rank of the group (its `peer`), ascending. Of
     * other collectives, the whole shard as one piece of one box. No pieces if the group's shards
     * are empty. */
    tsr_transfers pieces;
    size_t workspace_bytes; /**< to pack into and unpack from; 0: contiguous tensors need none, or is_too_large */
    bool is_too_large;      /**< the workspace would exceed options.max_workspace: this rank is not able */
} tsr_native_move;

/** One tensor's move, as far as one rank has to do with it. */
typedef struct tsr_item {
    tsr_context *context;  /**< the plan's */
    tsr_meter *meter;      /**< the plan's */
    tsr_layout *src, *dst; /**< the layouts that are planned and executed: the given ones, or divided ones */
    const tsr_layout *given_src, *given_dst; /**< the layouts that users gave and are told of; borrowed */
    tsr_division *division; /**< how src and dst come from the given layouts; NULL: they are the given layouts */
    tsr_problem problem;
    int64_t rank;
    bool in_src, in_dst;
    int64_t src_coordinate[TSR_MAX_DIMS], dst_coordinate[TSR_MAX_DIMS];
    int src_ndim, dst_ndim; /**< of the local tensors */
    int64_t src_shape[TSR_MAX_DIMS], dst_shape[TSR_MAX_DIMS];
    /** in elements: of src_shape and dst_shape, row by row without gaps */
    int64_t src_strides[TSR_MAX_DIMS], dst_strides[TSR_MAX_DIMS];
    int64_t shown_strides[TSR_MAX_DIMS]; /**< in elements: of any rank's source in its tsr_call_buffer(); those of the
                                            largest shard */
    bool fills;                          /**< the whole local destination is filled with the identity of problem.fill */
    bool results;                        /**< there is a second phase; like `shares` and `staged` equal on all ranks */
    const tsr_node_map *nodes;           /**< the plan's; NULL: nodes do not matter, on any rank */
    bool shares; /**< what a node lacks crosses into it once, and mates hand it round in a third phase */
    bool staged; /**< direct mode reduces into the workspace where source and destination are one memory */

    /** 3 * ndim numbers for each box: shape, position in the source shard, position in the
     * destination shard. */
    int64_t *boxes;
    size_t box_count, box_capacity;

    /** The first phase. moves: what is copied into this rank's destination; sends: what of this
     * rank's source goes to other ranks, to be moved or reduced there. Both in tsr_peer_order(). */
    tsr_transfers moves, sends;
    size_t first_on_host; /**< the move that comes first if all memory is the host's */
    /** The second phase: results of reductions. given: those that other ranks give to this rank's
     * destination; gives: those that it gives to theirs. */
    tsr_transfers given, gives;
    /** The third phase: what crossed into this rank's node for all its mates. relayed: from mates;
     * relays: to mates. In the second and third phase both ends hold the same destination piece,
     * so that both use positions in the destination. */
    tsr_transfers relayed, relays;

    tsr_reduction *reductions;
    size_t reduction_count, reduction_capacity;
    int64_t *contributors; /**< ranks: problem.terms for each reduction */
    size_t contributor_count, contributor_capacity;
    size_t *term_parcels; /**< message mode: each contributor's parcel in the plan's in[0]; TSR_NO_TERM: the contributor
                             is this rank */
    int64_t term_elements; /**< elements that other ranks contribute to the reductions */
    int64_t *owners; /**< ranks to which this rank's results go, this one among them; NULL if it reduces nothing */
    size_t owner_count;

    tsr_native_move native;
} tsr_item;

/** What prepares and checks have found out, for executions. Each is 0 until then, and atomic, for
 * several threads may use a plan. */
typedef struct tsr_plan_findings {
    int64_t agreed_rounds; /**< the most rounds that any rank's mail needs */
    size_t scratch_bytes;  /**< scratch that the group needs for one execution */
    size_t shelf_bytes;    /**< shelf that the group needs for one execution, where ranks are processes (shelf.h) */
    uint64_t kin;          /**< the number of the last other communicator that was found to fit the plan; 0: none */
    uint64_t group_key;    /**< the key of the plan's rank set */
    /** The key of the ranks, within the plan's group, that make the engine's own collective; 0: the
     * engine does not have it, or some rank is not able. */
    uint64_t native_key;
} tsr_plan_findings;

struct tsr_plan {
    tsr_references references;
    tsr_context *context;
    tsr_plan_options options; /**< with rank, mode and nodes as they were picked; profile and measured NULL */
    tsr_comm *comm;      /**< the communicator of the layouts' meshes, which keep it; NULL: all meshes are abstract */
    tsr_node_map *nodes; /**< an owned reference; NULL: not known */
    tsr_cost_profile profile; /**< of the links */
    tsr_profile *measured;    /**< an owned reference, with tables; NULL: plans are timed by the links alone */
    /** with the kernels that the context chose; executions in a group take the group's choices */
    tsr_device_ops host;
    bool inside;  /**< this rank is in one of the meshes */
    bool results; /**< some item has a second phase; the same on every rank */
    bool shares;  /**< some item has a third phase; the same on every rank */
    bool local;   /**< nothing crosses ranks, on any rank */
    bool fills;   /**< this rank fills the destination of some item */
    /** One small item, all ranks have tensors, and peers write nothing here: on the host, sources
     * are copied to where peers read them, and one meeting is enough. */
    bool eager;
    tsr_small small; /**< how a small move is made where tensors have no gaps */
    uint64_t hash;
    tsr_meter meter; /**< what making the plan takes */
    size_t count;
    tsr_item *items;

    tsr_mail out[TSR_PHASES], in[TSR_PHASES]; /**< by phase; message mode only */
    int64_t rounds;                           /**< rounds that this rank's mail needs */
    bool streams;                             /**< the mesh's engine leaves work to streams, so that rounds are large */

    size_t workspace_bytes;   /**< workspace that tsr_plan_execute() needs on this rank */
    tsr_plan_findings *found; /**< in the plan's own memory; changes although the plan is const */
};

/** Compares peers in the order in which `rank` serves them; the result is below, at or above 0. The
 * rank itself comes first, then the ranks after it, then those from 0 on, so that no peer is
 * served first by all ranks. */
static inline int tsr_peer_order(int64_t a, int64_t b, int64_t rank)
{
    const uint64_t x = (uint64_t)a - (uint64_t)rank, y = (uint64_t)b - (uint64_t)rank;
    return x < y ? -1 : x > y;
}

static inline const int64_t *tsr_item_box(const tsr_item *item, size_t box)
{
    return item->boxes + box * 3 * (size_t)item->src->ndim;
}

/** True if this rank executes: it is in one of the meshes, or all ranks of the communicator must
 * take part. */
static inline bool tsr_plan_takes_part(const tsr_plan *plan)
{
    return plan->inside || plan->options.no_split;
}

/** tsr_plan_create_batch() for the public function `call`, which error sentences name. `count` is 1
 * or more, and no array nor `out` is NULL. */
tsr_status tsr_plan_create_for(const char *call, size_t count, const tsr_layout *const *src,
                               const tsr_layout *const *dst, const tsr_plan_options *options, tsr_plan **out);

/** Makes the plan that rank `rank` has of the move of `plan`, whose given layouts `src` and `dst`
 * list, for the public function `call`. The caller destroys `*out`. */
tsr_status tsr_plan_create_like(const char *call, const tsr_plan *plan, const tsr_layout *const *src,
                                const tsr_layout *const *dst, int64_t rank, tsr_plan **out);

#endif
