/** What owners of tables do in a step of a sparse optimizer. */
#ifndef TSR_TENSOR_SPARSE_SPARSE_STEP_H
#define TSR_TENSOR_SPARSE_SPARSE_STEP_H

#include "device/device.h"
#include "tensor/rows/row_step.h"
#include "tensor/sparse/sparse_math.h"
#include "tensor/sparse/sparse_state.h"

/** Bytes of `words`. */
enum { TSR_SPARSE_WORDS = 96 };

/** An optimizer's step of all its tables. */
typedef struct tsr_sparse_step {
    tsr_row_step row_step;      /**< the first member; its words are `words` */
    tsr_sparse_options options; /**< epsilon is not -1 */
    const char *kernels;        /**< see tsr_sparse_math_of() */
    tsr_device_ops ops;         /**< the host's */
    tsr_sparse_table *tables;
    tsr_dtensor *const *dtensors; /**< the tables; borrowed */
    char words[TSR_SPARSE_WORDS];

    /* Of one row, in the accumulator's dtype: */
    void *widened; /**< the table's row, where its dtype is narrow */
    void *decayed; /**< the gradient with weight decay */
    void *zeros;   /**< the gradient of a row that is not named; NULL: no such row changes */

    /* Of the table whose turn it is: */
    tsr_sparse_numbers numbers;
    const tsr_sparse_math *math;
    tsr_sparse_change *formula;
    int64_t width; /**< elements that this rank has of a row */
} tsr_sparse_step;

/** Sets row_step; all that is not of a row or a table is set. */
void tsr_sparse_step_open(tsr_sparse_step *step);

/** Sets the learning rate, and what follows from it: words and fingerprint. */
void tsr_sparse_step_set_rate(tsr_sparse_step *step, double rate);

/** The elements that this rank has of a row of a table. */
int64_t tsr_sparse_width(const tsr_dtensor *table);

#endif
