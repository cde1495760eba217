/** The rows of ops, by group; each list ends with a row without a name. A row's place among all
 * rows is that of its group in table.c, then its own. */
#ifndef TSR_OPS_ROWS_ROWS_H
#define TSR_OPS_ROWS_ROWS_H

#include "ops/rows/row.h"

extern const tsr_op tsr_rows_pointwise[];
extern const tsr_op tsr_rows_reductions[];
extern const tsr_op tsr_rows_norms[];
extern const tsr_op tsr_rows_random[];
extern const tsr_op tsr_rows_layouts[];
extern const tsr_op tsr_rows_products[];

#endif
