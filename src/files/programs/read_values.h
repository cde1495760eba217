/** Reads the values of a program: inputs, parameters and constants. */
#ifndef TSR_FILES_PROGRAMS_READ_VALUES_H
#define TSR_FILES_PROGRAMS_READ_VALUES_H

#include "files/programs/reader.h"

/** Records the values of a list; NULL: none. */
tsr_status tsr_program_read_values(const tsr_program_reader *r, const json_t *list);

#endif
