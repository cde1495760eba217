/**
 * The plans that a mesh keeps: bounded, found again by the two layouts.
 *
 * It hangs on a slot of the mesh. Its layouts lie on a copy of the mesh without communicator, so that the mesh does not keep itself alive.
 * Not locked: it belongs to the mesh's communicator handle. Every rank looks up and evicts in the same order, because every rank makes the
 * same calls.
 */
#ifndef TSR_REDISTRIBUTE_CACHE_H
#define TSR_REDISTRIBUTE_CACHE_H

#include <tessera/dtensor.h>

#include "redistribute/execute.h"

typedef struct tsr_cached_plan {
    tsr_plan *plan;
    const tsr_group *group; /**< NULL where this rank is outside the mesh */
    void *workspace;
    size_t workspace_bytes;
    tsr_device device;
    uint64_t used; /**< when last: the smallest goes first */
} tsr_cached_plan;

/**
 * The plan from `src` to `dst` (layouts of equal meshes over one communicator) for tensors on `device`. The first time for a pair it is
 * collective: planned, prepared, its workspace allocated. Both layouts may live on the stack: they are copied. `*out` is borrowed until the
 * next call.
 */
tsr_status tsr_cache_find(const tsr_layout *src, const tsr_layout *dst, tsr_device device, tsr_cached_plan **out);

#endif
