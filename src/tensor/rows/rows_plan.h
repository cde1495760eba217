/** Plans of calls by id, for optimizers, whose calls begin as those of plans do. */
#ifndef TSR_TENSOR_ROWS_ROWS_PLAN_H
#define TSR_TENSOR_ROWS_ROWS_PLAN_H

#include "comm/groups/group.h"
#include "tensor/rows/row_step.h"

#include <tessera/rows.h>

/** Checks what a plan is made of; `tables` has a first table. `call` begins the sentence. */
tsr_status tsr_rows_plan_check(const char *call, size_t count, tsr_dtensor *const *tables, int64_t capacity,
                               const void *out);

/** Makes a plan of tables that are checked; `group` is that of their mesh's ranks, NULL outside of
 * it. Does not communicate. */
tsr_status tsr_rows_plan_make(size_t count, tsr_dtensor *const *tables, int64_t capacity, const tsr_group *group,
                              tsr_rows_plan **out);

/** Collective: tsr_rows_plan_update() with `op`, add or mean, in which owners take steps. `name` is
 * what sentences call it. */
tsr_status tsr_rows_plan_step(tsr_rows_plan *plan, const char *name, const tsr_row_step *step, tsr_rows_op op,
                              const tsr_tensor *ids, const tsr_tensor *rows);

/** The tables of a plan, borrowed. */
tsr_dtensor *const *tsr_rows_plan_tables(const tsr_rows_plan *plan);

#endif
