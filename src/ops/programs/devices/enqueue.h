/** Steps on a device: how it computes them, and their calls on a stream. */
#ifndef TSR_OPS_PROGRAMS_DEVICES_ENQUEUE_H
#define TSR_OPS_PROGRAMS_DEVICES_ENQUEUE_H

#include "ops/programs/executable.h"

/** Finds how the executable's device computes a kernel's step, `step->way`, and the bytes of
 * workspace. Memory that is not the run's is not compared. TSR_ERROR_UNSUPPORTED: the device has no
 * kernel, or ranks meet inside the op; the sentence names both. */
tsr_status tsr_executable_find_way(const tsr_executable *x, tsr_step *step, size_t *bytes);

/** Bytes of scratch that a kernel's step wants, on the host or on the device; 0 where the device
 * has no kernel, which tsr_executable_check_place() refuses. */
tsr_status tsr_executable_find_scratch(const tsr_executable *x, tsr_step *step, size_t *bytes);

/** Computes a kernel's step, or a copy's, which need not exchange: on a device it is enqueued on
 * `stream`. */
tsr_status tsr_executable_call(const tsr_executable *x, const tsr_step *step, const tsr_kernel_call *call,
                               tsr_stream stream);

#endif
