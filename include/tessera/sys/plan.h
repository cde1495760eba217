/**
 * @file
 * How a library on top of this one takes part in the execution of a plan on a rank that has failed
 * before.
 */
#ifndef TESSERA_SYS_PLAN_H
#define TESSERA_SYS_PLAN_H

#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective with peers that call tsr_plan_execute(): takes part as failed, without tensors, so
 * that they get TSR_ERROR_PEER with this thread's sentence. Nothing moves. `failed` is the status
 * of this rank, not TSR_OK; returns it, with its sentence. By messages that are not compared
 * (plan.h), peers are told as by tsr_plan_execute().
 */
TSR_API tsr_status tsr_plan_execute_failed(const tsr_plan *plan, tsr_comm *comm, tsr_stream stream,
                                           tsr_status failed);

/** tsr_plan_execute_failed() with peers whose tensors are on devices: `device` is that of this
 * rank's, on which it depends by messages whether ranks compare their calls. */
TSR_API tsr_status tsr_plan_execute_failed_on(const tsr_plan *plan, tsr_comm *comm,
                                              tsr_device device, tsr_stream stream,
                                              tsr_status failed);

#ifdef __cplusplus
}
#endif

#endif
