/** Reads the gradients and outputs of a program. */
#ifndef TSR_FILES_PROGRAMS_READ_OUTPUTS_H
#define TSR_FILES_PROGRAMS_READ_OUTPUTS_H

#include "files/programs/reader.h"

/** Records the gradients of an object; NULL or null: none. Each is a value "d.NAME". */
tsr_status tsr_program_read_gradients(const tsr_program_reader *r, json_t *object);

/** Records the outputs of a list, NULL: none, then the gradients that are not among them. */
tsr_status tsr_program_read_outputs(const tsr_program_reader *r, const json_t *list, const json_t *gradients);

#endif
