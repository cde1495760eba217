/** Finds rows by name. Pure. */
#ifndef TSR_OPS_ROWS_LOOKUP_H
#define TSR_OPS_ROWS_LOOKUP_H

#include "ops/rows/row.h"

/** The row with that name, of `length` characters, among the library's and the context's; NULL:
 * there is none. `context` NULL: the library's alone. Takes no longer with more rows. */
const tsr_op *tsr_op_lookup(tsr_context *context, const char *name, size_t length);

#endif
