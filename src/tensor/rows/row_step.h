/** Steps of an optimizer, which owners take in place of adding rows to their own. */
#ifndef TSR_TENSOR_ROWS_ROW_STEP_H
#define TSR_TENSOR_ROWS_ROW_STEP_H

#include <tessera/status.h>

#include <stdbool.h>
#include <stdint.h>

/** This rank's part of a table, in a call. */
typedef struct tsr_row_shard {
    size_t table; /**< its index in the call */
    char *rows;
    size_t stride; /**< bytes from row to row */
} tsr_row_shard;

/** A row that the call names, and the sum, or mean, of what ranks bring for it: elements of the
 * accumulator's dtype (row_sums.h), NULL or not where there are none. */
typedef struct tsr_row_gradient {
    int64_t local;     /**< the row's number in the shard */
    const void *part;  /**< the elements that this rank has of the row */
    const void *whole; /**< all elements of the row if the step needs them, else NULL */
} tsr_row_gradient;

/**
 * The first member of its owner. For each table, in order, an owner calls `begin`, then `change`
 * once for each row that is named, then `finish`: also if no row is named, and if the rank has no
 * column of the table. No rank waits for another meanwhile. They fail only if the device does.
 */
typedef struct tsr_row_step {
    tsr_status (*begin)(const struct tsr_row_step *step, const tsr_row_shard *shard);
    tsr_status (*change)(const struct tsr_row_step *step, const tsr_row_shard *shard, const tsr_row_gradient *row);
    tsr_status (*finish)(const struct tsr_row_step *step, const tsr_row_shard *shard);
    bool needs_whole;     /**< `change` reads all elements of a row */
    uint64_t fingerprint; /**< equal on all ranks if their steps are */
    const char *words;    /**< what descriptions of a call say of the step */
} tsr_row_step;

#endif
