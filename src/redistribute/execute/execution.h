/** One execution of a plan: what is checked, what is local, and the two ways in which bytes cross ranks. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_EXECUTION_H
#define TSR_REDISTRIBUTE_EXECUTE_EXECUTION_H

#include "comm/core/group.h"
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
    bool checked;     /**< by messages: see unchecked.h */
    char *workspace;
    tsr_stream stream;
    tsr_call call; /**< direct mode: what this rank brought */
    /** Message mode: */
    tsr_scratch scratch;
    int64_t rounds;
    tsr_status local; /**< the first failure of this rank alone, which is told when all have gone through their rounds */
};

/** Copies that the device is given together, as it launches them. */
#define TSR_COPIES 8

typedef struct tsr_copies {
    const tsr_execution *e;
    tsr_box_copy at[TSR_COPIES];
    size_t count;
} tsr_copies;

/** Boxes between two places, of which none waits for another one. `from_source`: out of a source shard, else out of the same piece's
 * destination. What was added is copied when it is ended. */
void tsr_copies_begin(tsr_copies *copies, const tsr_execution *e);
tsr_status tsr_copies_add(tsr_copies *copies, const tsr_item *item, const tsr_transfer *transfer, tsr_place dst, tsr_place src,
                          bool from_source);
tsr_status tsr_copies_end(tsr_copies *copies);

/** Copies a range of a parcel between memory in which it lies packed and its place. `at_source`: its boxes' positions in the source shard
 * count, else those in the destination's. */
tsr_status tsr_execution_pack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, void *packed, tsr_place place,
                              bool at_source);
tsr_status tsr_execution_unpack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place, void *packed);

/** Copies this rank's whole source shard (`source`), or its destination's, between two places. */
tsr_status tsr_execution_copy_whole(const tsr_execution *e, const tsr_item *item, bool source, tsr_place dst, tsr_place src);

/** The bytes of a range of a single box that lies without gaps, else NULL: then there is no need to pack. */
void *tsr_execution_contiguous(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place, bool at_source);

/** Where a fragment lies in a place; `strides` become the place's. */
char *tsr_execution_find(const tsr_item *item, const tsr_fragment *f, tsr_place place, bool at_source, int64_t *strides);

/** A reduction as the device takes it, but for shape and pointers. */
tsr_box_reduce tsr_execution_reduce(const tsr_item *item, const tsr_reduce_arrays *arrays, int dst_count);

/** The ways, in two halves each. */
tsr_status tsr_direct_start(tsr_execution *e, tsr_status local);
tsr_status tsr_direct_finish(tsr_execution *e);
tsr_status tsr_message_start(tsr_execution *e, tsr_status local);
tsr_status tsr_message_finish(tsr_execution *e);
tsr_status tsr_native_start(tsr_execution *e, tsr_status local);
tsr_status tsr_native_finish(tsr_execution *e);

/**
 * tsr_plan_execute() for callers that found the group themselves, or NULL for a local plan. `local` is a failure with which this rank takes
 * part; tensors may then be NULL.
 */
tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst, void *workspace,
                        size_t bytes, tsr_stream stream, tsr_status local);

/** TSR_ERROR_STATE: the plan is another rank's, or over another communicator, of one descent with `comm`, in which ranks of its meshes are
 * called otherwise. */
tsr_status tsr_plan_check_comm(const tsr_plan *plan, const tsr_comm *comm);

/** Binds the execution to its tensors, after checks; e->bound and e->spans are set, and have room. */
tsr_status tsr_execution_take(tsr_execution *e, const tsr_tensor *src, const tsr_tensor *dst, size_t bytes);

/** Passes a status on, with its sentence said of one of several tensors. */
tsr_status tsr_name_tensor(size_t i, size_t count, tsr_status status);

/** Collective over the mesh's communicator: compares a fingerprint among the ranks of the mesh. Errors as tsr_group_prepare(). */
tsr_status tsr_mesh_agree(const tsr_mesh *mesh, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe, const void *arg);

/** tsr_plan_prepare() with a failure with which this rank takes part; `plan` may then be NULL. */
tsr_status tsr_plan_prepare_with(const tsr_plan *plan, tsr_comm *comm, tsr_status local, const tsr_group **group);

#endif
