/** One execution of a plan: what is checked, what is local, and the two ways in which bytes cross ranks. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_EXECUTION_H
#define TSR_REDISTRIBUTE_EXECUTE_EXECUTION_H

#include "comm/core/comm.h"
#include "comm/groups/group.h"
#include "device/device.h"
#include "redistribute/execute/fragments.h"
#include "redistribute/execute/holding.h"
#include "redistribute/execute/scratch.h"
#include "redistribute/schedule/plan.h"
#include "redistribute/schedule/sizes.h"

/** A place in which boxes lie: where position 0 is, and the strides in elements, which are its owner's: of a tensor that the caller brought
 * (started executions copy those), of the item, or of a peer's view. */
typedef struct tsr_place {
    char *base;
    const int64_t *strides;
} tsr_place;

/** An item with this rank's tensors; dtype, ndim and shape are as the item has them. */
typedef struct tsr_bound {
    const tsr_item *item;
    tsr_place src, dst;
    int64_t divided[2][TSR_MAX_DIMS]; /**< strides of src and dst, where the item's layouts are divided ones */
    tsr_place given;                  /**< where the group has a shelf: the caller's destination, for dst may be there */
    tsr_place result; /**< where reductions of direct mode go: dst, or the workspace while src and dst are one memory that peers read */
} tsr_bound;

struct tsr_execution {
    const tsr_plan *plan;
    const tsr_group *group;  /**< NULL for a plan that is local */
    const tsr_group *native; /**< message mode: over which the engine's own collective makes the move; NULL: it goes by mail */
    tsr_device device;       /**< of all tensors; the host's where `placeless` */
    bool placeless;          /**< this rank has no tensor */
    tsr_device_ops ops;
    tsr_bound *bound; /**< one an item */
    tsr_span *spans;  /**< two an item, where there are several */
    bool eager;       /**< the plan is, and the tensors are on the host */
    bool checked;     /**< by messages: see agreement.h */
    char *workspace;
    tsr_stream stream;
    tsr_call call; /**< direct mode: what this rank brought */
    /** Message mode: */
    tsr_scratch scratch;
    int64_t rounds;
    tsr_status local; /**< the first failure of this rank alone, which is told when all have gone through their rounds */
};

/**
 * tsr_plan_execute() for callers that found the group themselves, or NULL for a local plan. `local` is a failure with which this rank takes
 * part; tensors may then be NULL.
 */
tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst, void *workspace,
                        size_t bytes, tsr_stream stream, tsr_status local);

#endif
