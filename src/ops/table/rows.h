/** The table of ops. */
#ifndef TSR_OPS_TABLE_ROWS_H
#define TSR_OPS_TABLE_ROWS_H

#include "ops/table/row.h"

extern const tsr_op tsr_op_rows[];
extern const size_t tsr_op_row_count;

#endif
