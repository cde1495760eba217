/** Programs that run on devices in tests. */
#ifndef TESTS_OPS_PROGRAMS_DEVICE_CASES_H
#define TESTS_OPS_PROGRAMS_DEVICE_CASES_H

#include "device_running.h"

/** A parameter of f32, of 1 or 2 dims. */
tsr_value device_parameter(tsr_program *p, const char *name, const tsr_mesh *mesh, const char *placements, int ndim,
                           int64_t rows, int64_t columns);

/** An MLP forward and backward, a whole Llama with loss and gradients, redistributions and views,
 * states, and a cache of keys with the lengths "tokens" and "total", up to 9. */
extern const device_case device_mlp, device_llama, device_moves, device_states, device_lengths;

#endif
