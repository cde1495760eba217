/**
 * @file
 * For a library on top of this one that executes plans among other work: how a rank that has failed
 * before takes part, and whether work hides what a plan moves.
 */
#ifndef TESSERA_SYS_PLAN_H
#define TESSERA_SYS_PLAN_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective with peers that call tsr_plan_execute(), or start and finish: takes part as failed,
 * without tensors, so that they get TSR_ERROR_PEER with this thread's sentence. Nothing moves.
 * `failed` is the status of this rank, not TSR_OK; returns it, with its sentence. By messages that
 * are not compared (plan.h), peers are told as by tsr_plan_execute().
 */
TSR_API tsr_status tsr_plan_execute_failed(const tsr_plan *plan, tsr_comm *comm, tsr_stream stream,
                                           tsr_status failed);

/** tsr_plan_execute_failed() with peers whose tensors are on devices. `device` is where this rank's
 * tensors are: by messages it decides whether ranks compare their calls. */
TSR_API tsr_status tsr_plan_execute_failed_on(const tsr_plan *plan, tsr_comm *comm,
                                              tsr_device device, tsr_stream stream,
                                              tsr_status failed);

/**
 * 1 if bytes of `plan`, which is prepared on `comm`, travel between tsr_plan_start() and
 * tsr_plan_finish(), so that other work of this rank is worth doing there; 0 if one of the halves
 * moves them while the rank waits, or the rank takes no part. With `plan` NULL: 1 if plans of
 * `comm` may be so, which is the same on all ranks. Does not communicate; no error.
 */
TSR_API int tsr_plan_overlaps(const tsr_plan *plan, tsr_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
