/** Programs from bytes. */
#ifndef TSR_OPS_PROGRAMS_SAVED_LOAD_H
#define TSR_OPS_PROGRAMS_SAVED_LOAD_H

#include "ops/programs/program.h"

/** The program of `size` bytes; the caller owns `*out`. `caller` begins sentences. */
tsr_status tsr_program_from_bytes(const char *caller, tsr_context *context, const void *bytes, size_t size,
                                  tsr_program **out);

#endif
