/** One execution of a plan: this rank's tensors, and what an execution keeps while bytes cross
 * ranks. */
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

/** Memory in which boxes lie: `base` is position 0; strides are in elements, and borrowed from a
 * tensor that the caller brought (started executions copy the caller's), from the item, or from a
 * peer's view. */
typedef struct tsr_place {
    char *base;
    const int64_t *strides;
} tsr_place;

/** An item with this rank's tensors, whose dtype, ndim and shape are the item's. */
typedef struct tsr_bound {
    const tsr_item *item;
    tsr_place src, dst;
    int64_t divided[2][TSR_MAX_DIMS]; /**< where the item's layouts are divided: the strides of src and dst */
    tsr_place given;  /**< where the group has a shelf: the caller's destination, since dst may be on the shelf */
    tsr_place result; /**< where reductions of direct mode go: dst, or the workspace while src and dst are one memory
                         that peers read */
} tsr_bound;

struct tsr_execution {
    const tsr_plan *plan;
    const tsr_group *group;  /**< NULL for a plan that is local */
    const tsr_group *native; /**< message mode: the group in which the engine's own collective makes the move; NULL: it
                                goes by mail */
    tsr_device device;       /**< of all tensors; the host where `placeless` */
    bool placeless;          /**< this rank has no tensor */
    tsr_device_ops ops;
    tsr_bound *bound; /**< one for each item */
    tsr_span *spans;  /**< two for each item, where there are several items */
    bool eager;       /**< the plan is eager, and the tensors are on the host */
    bool checked;     /**< ranks tell each other whether all can go on; in message mode see agreement.h */
    char *workspace;
    tsr_stream stream;
    tsr_call call; /**< direct mode: what this rank brings to the call */
    /** This and the fields below are of message mode. */
    tsr_scratch scratch;
    int64_t rounds;
    /** The `self` of the device's table for results of a round; on the host with MANY_ROUNDS or
     * more, the one for parts of a large move. */
    void *parts;
    tsr_status local; /**< the first failure of this rank alone; peers are told after the last round */
};

/**
 * tsr_plan_execute() for a caller that has the group. `group` may be NULL for a local plan of one
 * item, which need not be prepared. `local`: TSR_OK, or a failure with which this rank takes part;
 * tensors may then be NULL.
 */
tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst,
                        void *workspace, size_t bytes, tsr_stream stream, tsr_status local);

#endif
