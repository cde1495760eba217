/** Runs the kernel of a call on this rank, with the meetings that its rule wants. */
#ifndef TSR_OPS_EAGER_COMPUTE_H
#define TSR_OPS_EAGER_COMPUTE_H

#include "ops/rows/row.h"

/** A call whose layouts are known. */
typedef struct tsr_computation {
    const tsr_op_case *c;
    unsigned exchanged; /**< mesh dims, by bits, along which ranks meet */
    const tsr_mesh *mesh;
    const int64_t *coordinate;          /**< this rank's */
    bool inside;                        /**< false: this rank is outside the mesh */
    tsr_device device;                  /**< on which all local tensors lie */
    const tsr_dtensor *const *operands; /**< NULL: left out */
    tsr_dtensor *const *results;        /**< in the layouts of the rule; not read where `local` failed */
} tsr_computation;

/**
 * Computes the results. Where mesh dims cut exchanged factors it is collective along them, and the
 * first such call over the mesh's communicator. A failure there, that of `local` too, is told to
 * all ranks that meet: they get TSR_ERROR_PEER. On a device the kernel is only enqueued, on the
 * default stream; a call that must exchange is refused there.
 */
tsr_status tsr_eager_compute(const tsr_computation *computation, tsr_status local);

#endif
