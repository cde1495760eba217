/** How an owner changes its rows by those of all ranks. */
#ifndef TSR_TENSOR_ROWS_ROW_APPLY_H
#define TSR_TENSOR_ROWS_ROW_APPLY_H

#include "device/device.h"
#include "tensor/rows/batch/row_batch.h"
#include "tensor/rows/row_request.h"
#include "tensor/rows/row_step.h"
#include "tensor/rows/row_sums.h"

#include <tessera/rows.h>

/** Rows that one rank brings for this rank's part of a table. */
typedef struct tsr_row_source {
    int64_t count;
    const int64_t *locals;    /**< the local row that each is for */
    const int64_t *positions; /**< where each lies among `data`; NULL: one after the other */
    const char *data;
    size_t stride; /**< bytes from row to row */
} tsr_row_source;

/** A call's work on one table. The caller sets the first part, and zeroes the second. */
typedef struct tsr_row_apply {
    char *local; /**< this rank's shard, or other rows that are changed */
    size_t local_stride;
    tsr_dtype dtype;
    size_t element_bytes;
    const tsr_row_arithmetic *arithmetic; /**< of the dtype */
    tsr_rows_op op;
    const tsr_row_step *step;        /**< takes the sums or means; NULL: they are added to the table's rows */
    size_t table;                    /**< the table's index in the call */
    int64_t width, own_width;        /**< elements of a row, and those that this rank has */
    const tsr_row_segment *segments; /**< from rows of the sources to rows of the shard */
    size_t segment_count;
    tsr_device_ops ops;      /**< the host's */
    tsr_row_source *sources; /**< in the order in which their rows act */
    int source_count;
    tsr_row_rooms *rooms;
    tsr_row_batch *batch; /**< for rows on a device; NULL: they are on the host */
    bool is_new;          /**< on a device: rows have no content yet, and become what their sources come to */

    /* Of sums, and of all ops on a device: all rows, and those of equal ids as chains. */
    uint32_t count, chains;
    int64_t *locals;
    const char **rows;
    uint32_t *next, *first; /**< row behind each in its chain, or itself; the first row of each chain */
    char *sum, *term;       /**< accumulators of a segment; for a step, of a row */
    char *part;             /**< for a step: accumulators of the elements that this rank has of a row */
} tsr_row_apply;

/** TSR_ERROR_UNSUPPORTED: the dtype does not have the op. `call` begins the sentence. */
tsr_status tsr_row_op_check(const char *call, tsr_rows_op op, tsr_dtype dtype);

/** Takes all memory that the two calls below need; of the sources only their counts are read. */
tsr_status tsr_row_apply_reserve(tsr_row_apply *apply);

/** Finds rows of equal ids. Writes nothing to the table. After tsr_row_apply_reserve() it does not
 * fail. */
tsr_status tsr_row_apply_prepare(tsr_row_apply *apply);

/** Changes the rows. Fails only if the device does. */
tsr_status tsr_row_apply_run(const tsr_row_apply *apply);

/** True if rows of one id give the same bits in whatever groups they are combined, so that a rank
 * may combine its own: maxima, and sums of integers, which wrap. */
bool tsr_row_op_groups(tsr_rows_op op, tsr_dtype dtype);

/** On the host, for such an op: changes a row of the table, or another one, by one row. Only dtype,
 * arithmetic, op, segments and ops are read. */
tsr_status tsr_row_apply_one(const tsr_row_apply *apply, char *to, const char *row);

#endif
