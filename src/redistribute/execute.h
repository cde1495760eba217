/** One execution of a plan: what is checked, what is local, and the two ways in which bytes cross ranks. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_H
#define TSR_REDISTRIBUTE_EXECUTE_H

#include "comm/group.h"
#include "device/device.h"
#include "redistribute/plan.h"

typedef struct tsr_execution {
    const tsr_plan *plan;
    const tsr_group *group; /**< NULL for a plan that is local */
    tsr_device device;
    tsr_device_ops ops;
    tsr_tensor src, dst; /**< this rank's; ndim and shape as the plan has them */
    bool eager;          /**< the plan is, and the tensors are on the host */
    tsr_tensor result;   /**< where reductions of direct mode go: dst, or the workspace while src and dst are one memory that peers read */
    void *workspace;
    tsr_stream stream;
} tsr_execution;

/** A place in which boxes lie: where position 0 is, and the strides in elements. */
typedef struct tsr_place {
    char *base;
    const int64_t *strides;
} tsr_place;

/** Copies boxes between two places. */
tsr_status tsr_execution_copy(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, tsr_place src);

/**
 * Copies boxes out of a place into contiguous memory, one after the other, and from there into the destination. `at_source`: the boxes'
 * positions in the source shard count, else those in the destination's.
 */
tsr_status tsr_execution_pack(const tsr_execution *e, size_t first_box, size_t box_count, void *packed, tsr_place place, bool at_source);
tsr_status tsr_execution_unpack(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place dst, void *packed);

/** The bytes of a single box that lies without gaps, else NULL: then there is no need to pack. */
void *tsr_execution_contiguous(const tsr_execution *e, size_t first_box, size_t box_count, tsr_place place, bool at_source);

/** Pointers and strides of one reduction, in the group's scratch; `messages` is what follows them. */
typedef struct tsr_reduce_arrays {
    const void **src;
    int64_t (*src_strides)[TSR_MAX_DIMS];
    void **dst;
    int64_t (*dst_strides)[TSR_MAX_DIMS];
    tsr_message *messages;
} tsr_reduce_arrays;

tsr_reduce_arrays tsr_execution_arrays(const tsr_execution *e);

/** A reduction as the device takes it, but for shape and pointers. */
tsr_box_reduce tsr_execution_reduce(const tsr_execution *e, const tsr_reduce_arrays *arrays, int dst_count);

/** Row-major strides of a box's own shape, as it lies packed; returns its elements. */
int64_t tsr_execution_packed(const tsr_execution *e, size_t box, int64_t *strides);

/** Sets the shape of `reduce` to that of a box. */
void tsr_execution_shape(const tsr_execution *e, tsr_box_reduce *reduce, size_t box);

/** Bytes from a place's base to a box's position in the source (destination) shard. */
int64_t tsr_execution_offset(const tsr_execution *e, size_t box, const int64_t *strides, bool at_source);

/** The two ways. `local` is a failure with which this rank takes part. */
tsr_status tsr_execute_direct(const tsr_execution *e, tsr_status local);
tsr_status tsr_execute_message(const tsr_execution *e, tsr_status local);

/**
 * tsr_plan_execute() for callers that found the group themselves, or NULL for a local plan (then `comm` is not used). `local`: as above;
 * tensors may then be NULL.
 */
tsr_status tsr_plan_run(const tsr_plan *plan, const tsr_group *group, const tsr_tensor *src, const tsr_tensor *dst, void *workspace,
                        size_t bytes, tsr_stream stream, tsr_status local);

/** Collective over the mesh's communicator: compares a fingerprint among the ranks of the mesh. Errors as tsr_group_prepare(). */
tsr_status tsr_mesh_agree(const tsr_mesh *mesh, uint64_t fingerprint, tsr_status local, tsr_call_describe *describe, const void *arg);

/** tsr_plan_prepare() with a failure with which this rank takes part; `plan` may then be NULL. */
tsr_status tsr_plan_prepare_with(const tsr_plan *plan, tsr_comm *comm, tsr_status local, const tsr_group **group);

#endif
