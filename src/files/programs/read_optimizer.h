/** Reads how a program changes its weights. */
#ifndef TSR_FILES_PROGRAMS_READ_OPTIMIZER_H
#define TSR_FILES_PROGRAMS_READ_OPTIMIZER_H

#include "files/programs/reader.h"

/** Records the update, by an optimizer of an object, of the states whose gradients `gradients`
 * lists; `object` NULL or null: none. */
tsr_status tsr_program_read_optimizer(const tsr_program_reader *r, json_t *object, const json_t *gradients);

#endif
