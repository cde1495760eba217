/** What calls of optimizers are given. */
#ifndef TSR_OPS_OPTIMIZERS_CHECK_H
#define TSR_OPS_OPTIMIZERS_CHECK_H

#include "ops/programs/program.h"

#include <tessera/optimizer.h>

/** Reads options, and checks parameters and gradients against them; `call` words errors. False: the
 * program failed. */
bool tsr_optimizer_check(tsr_program *program, const char *call, size_t count, const tsr_value *parameters,
                         const tsr_value *gradients, const tsr_optimizer_options *given, tsr_optimizer_options *out);

/** Checks what runs give. False: the program failed. */
bool tsr_optimizer_check_inputs(tsr_program *program, const char *call, const tsr_optimizer_options *options,
                                tsr_value rate, tsr_value step, tsr_value finite);

#endif
