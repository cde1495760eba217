/**
 * @file
 * How a library on top of this one takes part in a redistribution on a rank that has failed before.
 */
#ifndef TESSERA_SYS_DTENSOR_H
#define TESSERA_SYS_DTENSOR_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective with peers that redistribute a tensor of x's layout to `placements`
 * (tsr_redistribute() or tsr_redistribute_into()): takes part as failed, so that they get
 * TSR_ERROR_PEER with this thread's sentence. `placements` NULL: this rank cannot say them, and
 * peers hear it with the exception that dtensor.h names. Nothing moves. `failed` is the status of
 * this rank, not TSR_OK; returns it, with its sentence. `x` is not NULL.
 */
TSR_API tsr_status tsr_redistribute_failed(const tsr_dtensor *x, const tsr_placement *placements,
                                           tsr_status failed);

#ifdef __cplusplus
}
#endif

#endif
