/**
 * The plans that a mesh keeps: bounded in number, and looked up by their source and destination
 * layouts.
 *
 * The cache is held by the mesh's slot; moves between meshes have one that the meshes' nearest
 * common communicator keeps. Its layouts are on copies of meshes without communicator, so that no
 * mesh keeps itself alive. Not locked: it is used by one thread at a time, like the communicator's
 * handle. All ranks make the same calls, so all look up and evict in the same order.
 */
#ifndef TSR_TENSOR_PLAN_CACHE_H
#define TSR_TENSOR_PLAN_CACHE_H

#include "comm/core/comm.h"
#include "comm/groups/group.h"

#include <tessera/dtensor.h>

#include <stdbool.h>

/** The layouts of tensors that are moved together: `get` returns the i-th tensor's source and
 * destination layout, borrowed. */
typedef struct tsr_layout_pairs {
    size_t count;
    void (*get)(const void *arg, size_t i, const tsr_layout **src, const tsr_layout **dst);
    const void *arg; /**< passed to `get` */
} tsr_layout_pairs;

typedef struct tsr_cached_plan {
    tsr_plan *plan;
    const tsr_group *group; /**< NULL: this rank is outside the mesh */
    /** sources, then destinations, of an execution; NULL if the plan moves one tensor */
    tsr_tensor *tensors;
    void *workspace;
    size_t workspace_bytes;
    /** the workspace lies in this communicator's shared memory; NULL: in the device's memory */
    tsr_comm *sharing;
    tsr_device device; /**< its driver is retained */
    void *event;       /**< recorded behind the last use of the workspace; NULL: no streams, or no workspace */
    bool recorded;     /**< `event` was recorded at least once */
    uint64_t used;     /**< the cache's clock at the last use: the entry with the least is evicted first */
    /** numbers of the layouts of the last tsr_cache_remember(); 0: not called yet */
    uint64_t source_id, destination_id;
} tsr_cached_plan;

/**
 * The plan for these pairs of layouts and for tensors on `device`. All layouts are on meshes equal
 * to that of the first source, and over its communicator. The first call for the same pairs in the
 * same order is collective: it plans, prepares and allocates the workspace. Layouts are copied, so
 * they may be probes. `*out` is borrowed until the next call.
 */
tsr_status tsr_cache_find_batch(const tsr_layout_pairs *pairs, tsr_device device, tsr_cached_plan **out);

/** For a plan with an event, before it is executed on `stream`: makes the stream wait for the last
 * use of the workspace, perhaps on another stream. TSR_ERROR_UNSUPPORTED: the stream is
 * captured. */
tsr_status tsr_cached_begin(const tsr_cached_plan *entry, tsr_stream stream);

/** After tsr_cached_begin() succeeded and the plan was executed: records the event. Returns
 * `status`, the execution's, with its sentence if it is a failure; else the status of recording. */
tsr_status tsr_cached_end(tsr_cached_plan *entry, tsr_stream stream, tsr_status status);

/** tsr_cache_find_batch() for one tensor. */
tsr_status tsr_cache_find(const tsr_layout *src, const tsr_layout *dst, tsr_device device, tsr_cached_plan **out);

/**
 * tsr_cache_find() for layouts on different meshes, over one communicator or over several that
 * descend from one. The plan is kept by `comm`, their nearest common communicator, over which the
 * first call for a pair is collective; ranks that are in none of the meshes make the same calls.
 * Pairs are told apart by that communicator's ranks, so that all ranks find and evict the same
 * entries, whichever communicator each describes a mesh over. `call` begins errors' sentences.
 * TSR_ERROR_ARGUMENT: there is no common communicator; nobody was told.
 */
tsr_status tsr_cache_find_across(const char *call, tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst,
                                 tsr_device device, tsr_cached_plan **out);

/**
 * For a rank whose arguments are wrong, so that it does not know the destination layout, only
 * `src`, the first source: tells its peers, who move their tensors, that it failed with `local`.
 * Returns `local` with its sentence. Whether peers meet depends on their destination layout: if the
 * mesh keeps a plan from `src` that does not begin with a meeting of all ranks of the communicator,
 * they may not meet, so nobody is told and nothing is communicated.
 */
tsr_status tsr_cache_tell(const tsr_layout *src, tsr_device device, tsr_status local);

/** tsr_cache_tell() for a move between meshes whose nearest common communicator is `comm`. If
 * `comm` keeps a plan that does not begin with a meeting of all its ranks, nobody is told. */
tsr_status tsr_cache_tell_across(tsr_comm *comm, tsr_status local);

/** Lets tsr_cache_recall() or tsr_cache_recall_across() find `entry`, which was found for these
 * layouts. They must not be probes. */
void tsr_cache_remember(tsr_cached_plan *entry, tsr_layout *src, tsr_layout *dst);

/**
 * The entry for which tsr_cache_remember() was last called with exactly these two layouts; they
 * were checked against each other then and need no check now. NULL: there is none, and the caller
 * uses tsr_cache_find(). Any two layouts may be given.
 */
tsr_cached_plan *tsr_cache_recall(const tsr_layout *src, const tsr_layout *dst, tsr_device device);

/** tsr_cache_recall() among the plans that tsr_cache_find_across() keeps with `comm`. */
tsr_cached_plan *tsr_cache_recall_across(const tsr_comm *comm, const tsr_layout *src, const tsr_layout *dst,
                                         tsr_device device);

#endif
