/**
 * The plans that a mesh keeps: bounded, found again by the layouts that they move between.
 *
 * It hangs on a slot of the mesh. Its layouts lie on a copy of the mesh without communicator, so that the mesh does not keep itself alive.
 * Not locked: it belongs to the mesh's communicator handle. Every rank looks up and evicts in the same order, because every rank makes the
 * same calls.
 */
#ifndef TSR_TENSOR_PLAN_CACHE_H
#define TSR_TENSOR_PLAN_CACHE_H

#include <stdbool.h>
#include <tessera/dtensor.h>

#include "comm/core/comm.h"
#include "comm/groups/group.h"

/** Tensors that are moved together: one pair of layouts each, asked for one after the other. */
typedef struct tsr_layout_pairs {
    size_t count;
    void (*get)(const void *arg, size_t i, const tsr_layout **src, const tsr_layout **dst);
    const void *arg; /**< of get */
} tsr_layout_pairs;

typedef struct tsr_cached_plan {
    tsr_plan *plan;
    const tsr_group *group; /**< NULL where this rank is outside the mesh */
    tsr_tensor *tensors;    /**< of a plan that moves several: room for its sources, then its destinations, while it is executed */
    void *workspace;
    size_t workspace_bytes;
    tsr_comm *sharing; /**< whose memory the workspace is, which ranks of a node share; NULL: it is the device's */
    tsr_device device; /**< its driver is retained */
    void *event;       /**< where work on the workspace ends, on a device with streams; NULL: it needs none */
    bool recorded;
    uint64_t used;                      /**< when last: the smallest goes first */
    uint64_t source_id, destination_id; /**< of the layouts for which it was remembered last; 0: none */
} tsr_cached_plan;

/**
 * The plan for so many pairs of layouts, all of meshes equal to that of the first source and over its communicator, and for tensors on
 * `device`. The first time for the same pairs in the same order it is collective: planned, prepared, its workspace allocated. Layouts may
 * live on the stack: they are copied. `*out` is borrowed until the next call.
 */
tsr_status tsr_cache_find_batch(const tsr_layout_pairs *pairs, tsr_device device, tsr_cached_plan **out);

/** Where the plan has an event, before it is executed on a stream: makes that follow what was last done in the workspace, perhaps on
 * another one. TSR_ERROR_UNSUPPORTED: the stream is captured. */
tsr_status tsr_cached_begin(const tsr_cached_plan *entry, tsr_stream stream);

/** After that, if it succeeded, and the execution: `status` is how that went, and a failure keeps its sentence. */
tsr_status tsr_cached_end(tsr_cached_plan *entry, tsr_stream stream, tsr_status status);

/** The same for one tensor. */
tsr_status tsr_cache_find(const tsr_layout *src, const tsr_layout *dst, tsr_device device, tsr_cached_plan **out);

/**
 * For a rank that cannot say to which layout it moves tensors from `src`, the first of them, as its arguments are wrong: tells the peers,
 * which move theirs, that it failed with `local`, and returns that with its sentence. What they do depends on the layout that they move to.
 * If the mesh keeps a plan from `src` that does not begin with a meeting of all ranks of the communicator, they may not be there:
 * then nobody is told, and nothing is communicated.
 */
tsr_status tsr_cache_tell(const tsr_layout *src, tsr_device device, tsr_status local);

/** Lets tsr_cache_recall() find again what tsr_cache_find() found for these layouts, which are no probes. */
void tsr_cache_remember(tsr_cached_plan *entry, tsr_layout *src, tsr_layout *dst);

/**
 * What tsr_cache_remember() was told the last time for these very layouts, which then were found fit for one another: nothing about them is
 * to be checked again. NULL, and nothing happened: it is to be asked. Any two layouts may be given.
 */
tsr_cached_plan *tsr_cache_recall(const tsr_layout *src, const tsr_layout *dst, tsr_device device);

#endif
