/** What is told of a training that does not begin. */
#ifndef TRAIN_TOLD_H
#define TRAIN_TOLD_H

#include "memory.h"

/**
 * Finds what memory a training would take on the rank that needs the most, without making its
 * tensors: so the mesh may be larger than the machine. Of more than 64 ranks the first is told,
 * whose parts are the largest. TSR_ERROR_ARGUMENT: the mesh or the model does not fit.
 */
tsr_status train_tell(const train_plan *plan, tsr_context *context, bool validates, train_memory *most);

/** Prints that to standard output, as a table or as JSON. */
tsr_status train_tell_memory(const train_plan *plan, bool validates, bool json);

#endif
