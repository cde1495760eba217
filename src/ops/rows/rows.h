/** The rows of ops, by group; each list ends with a row without a name. A row's place among all
 * rows is that of its group in table.c, then its own. */
#ifndef TSR_OPS_ROWS_ROWS_H
#define TSR_OPS_ROWS_ROWS_H

#include "ops/rows/row.h"

/** The groups, in the order of the table. */
#define TSR_ROW_GROUPS(X)                                                                                              \
    X(pointwise)                                                                                                       \
    X(reductions)                                                                                                      \
    X(norms)                                                                                                           \
    X(layouts)                                                                                                         \
    X(products)                                                                                                        \
    X(losses)                                                                                                          \
    X(indexing)                                                                                                        \
    X(attention)                                                                                                       \
    X(views)                                                                                                           \
    X(random)                                                                                                          \
    X(order)                                                                                                           \
    X(mixture)                                                                                                         \
    X(updates)                                                                                                         \
    /* one on each line */

#define TSR_DECLARE_ROWS(group) extern const tsr_op tsr_rows_##group[];
TSR_ROW_GROUPS(TSR_DECLARE_ROWS)
#undef TSR_DECLARE_ROWS

#endif
