/** What a sparse optimizer keeps of its tables: dtensors that are cut as they are. */
#ifndef TSR_TENSOR_SPARSE_SPARSE_STATE_H
#define TSR_TENSOR_SPARSE_SPARSE_STATE_H

#include "tensor/dtensor.h"

#include <tessera/sparse.h>

#include <stdint.h>

/** The most states of a table. */
enum { TSR_SPARSE_STATES = 3 };

/** How a state is made of a table. */
typedef enum tsr_sparse_form {
    TSR_SPARSE_ELEMENTS,    /**< a number for each element, in the accumulator's dtype */
    TSR_SPARSE_ROWS,        /**< a number for each row, in the accumulator's dtype */
    TSR_SPARSE_ROW_STEPS,   /**< an i64 for each row */
    TSR_SPARSE_TABLE_STEPS, /**< one i64 */
} tsr_sparse_form;

/** A state that a kind of optimizer has. */
typedef struct tsr_sparse_state_row {
    const char *name; /**< "sum"; NULL behind the last */
    tsr_sparse_form form;
} tsr_sparse_state_row;

/** The states by these options: TSR_SPARSE_STATES rows, or up to one without a name. Formulas take
 * those of numbers in this order; steps stand last. Static. */
const tsr_sparse_state_row *tsr_sparse_states_of(const tsr_sparse_options *options);

/** What is kept of one table. */
typedef struct tsr_sparse_table {
    tsr_dtensor *states[TSR_SPARSE_STATES]; /**< one reference to each; NULL behind the last */
    uint8_t *stepped; /**< for each local row: 1 within a call if it has been named; NULL: the optimizer does not change
                         other rows */
} tsr_sparse_table;

/** Makes the states of `table`, which tsr_sparse_table_close() frees also after an error. */
tsr_status tsr_sparse_table_open(const tsr_sparse_options *options, const tsr_dtensor *table, tsr_sparse_table *out);
void tsr_sparse_table_close(tsr_context *context, tsr_sparse_table *kept);

/** The dtype in which steps of a table are taken. */
tsr_dtype tsr_sparse_dtype(tsr_dtype table);

/** True if a step changes all rows: of SGD by global steps, which decay. */
bool tsr_sparse_changes_all(const tsr_sparse_options *options);

#endif
