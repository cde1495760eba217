/** Addresses of a run's memory in the steps of an executable. */
#ifndef TSR_OPS_PROGRAMS_LINK_H
#define TSR_OPS_PROGRAMS_LINK_H

#include "ops/programs/executable.h"

/** Finds how the executable's device computes a kernel's step, `step->way`, and the bytes of
 * workspace. TSR_ERROR_UNSUPPORTED: the device has no kernel, or ranks meet inside the op; the
 * sentence names both. */
tsr_status tsr_executable_find_way(const tsr_executable *x, tsr_step *step, size_t *bytes);

/** Bytes of scratch that a kernel's step wants, on the host or on the device; 0 where the device
 * has no kernel, unless steps are linked to a run's memory. */
tsr_status tsr_executable_find_scratch(const tsr_executable *x, tsr_step *step, size_t *bytes);

/** Finds from which lengths, keys, inputs and outputs each value and step follows, so that a link
 * writes no others. After the last step was made. */
void tsr_executable_find_sources(tsr_executable *x);

/** Writes the addresses of a run's memory, and sizes, into steps where they changed since the last
 * link; views find their strides. `x->has_grown` becomes true if a kernel wants more scratch, with
 * these sizes and strides, than its room has. */
tsr_status tsr_executable_link(tsr_executable *x, const tsr_tensor *inputs, const tsr_tensor *outputs, void *workspace);

#endif
