/** What a program's inputs, outputs and parameters are to replicas. */
#ifndef TSR_OPS_REPLICAS_DESCRIBE_H
#define TSR_OPS_REPLICAS_DESCRIBE_H

#include "ops/replicas/replicas.h"

/** Finds which inputs and outputs have rows, which outputs are gradients, and where those without
 * rows lie in a rank's memory; of the program that `executable`, which stays, was compiled of. */
tsr_status tsr_replicas_describe(tsr_replicas *replicas, const tsr_program *program, const tsr_executable *executable);

/** True if tensors of a dtype can be added. */
bool tsr_replicas_add_dtype(tsr_dtype dtype);

#endif
