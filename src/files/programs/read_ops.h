/** Reads the ops of a program. */
#ifndef TSR_FILES_PROGRAMS_READ_OPS_H
#define TSR_FILES_PROGRAMS_READ_OPS_H

#include "files/programs/reader.h"

/** Records the ops of a list, in order; NULL: none. */
tsr_status tsr_program_read_ops(const tsr_program_reader *r, const json_t *list);

#endif
