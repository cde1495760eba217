/** The meetings of an op inside, in memory that the caller gives. */
#ifndef TSR_OPS_EAGER_EXCHANGE_H
#define TSR_OPS_EAGER_EXCHANGE_H

#include "ops/rows/row.h"

/** A call that meets inside. */
typedef struct tsr_exchange {
    const tsr_op_case *c;
    const tsr_mesh *mesh;      /**< over a communicator; this rank is in it */
    unsigned exchanged;        /**< mesh dims, by bits, along which ranks meet; not 0 */
    const int64_t *coordinate; /**< this rank's */
    uint64_t number;           /**< tsr_exchange_number() */
    tsr_kernel_call *call;     /**< its tensors are set where `local` is TSR_OK */
} tsr_exchange;

/** A number of a call that ranks in different ones hardly share. */
uint64_t tsr_exchange_number(const tsr_op_case *c);

/** Bytes of memory that a call wants beside its tensors, for its kernel's workspace and for
 * records: `call` has tensors with shapes. */
size_t tsr_exchange_scratch(const tsr_op_case *c, unsigned exchanged, tsr_kernel_call *call);

/** Bytes of records that this rank receives from others in a call; `call` is as above. */
int64_t tsr_exchange_received(const tsr_op_case *c, unsigned exchanged, tsr_kernel_call *call);

/** Makes the meetings of a rank outside the mesh, which only the first call of a mesh has.
 * `local` is its status, which it gets back. */
tsr_status tsr_exchange_attend(const tsr_op_case *c, const tsr_mesh *mesh, unsigned exchanged, tsr_status local);

/** Collective over the mesh's communicator: makes the groups of ranks that meet after a stage. */
tsr_status tsr_exchange_meet(const tsr_op_case *c, const tsr_mesh *mesh, unsigned exchanged, int stage);

/**
 * Collective along the dims: runs all stages. `scratch` has tsr_exchange_scratch() bytes; NULL
 * where `local` failed, and nothing is computed. A failure, that of `local` too, is told to all
 * ranks that meet, which get TSR_ERROR_PEER.
 */
tsr_status tsr_exchange_run(const tsr_exchange *x, void *scratch, tsr_status local);

#endif
