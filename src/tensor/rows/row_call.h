/** A call by id, of one or several tables. */
#ifndef TSR_TENSOR_ROWS_ROW_CALL_H
#define TSR_TENSOR_ROWS_ROW_CALL_H

#include "tensor/rows/row_apply.h"
#include "tensor/rows/row_request.h"

/** One rank's call. */
typedef struct tsr_row_call {
    const char *name;         /**< "tsr_rows_gather" */
    bool gathers;             /**< else it updates */
    tsr_rows_op op;           /**< of an update */
    const tsr_row_step *step; /**< of an update: what owners do with sums; NULL: they add them */
    tsr_device_ops ops;
    const tsr_group *group; /**< the ranks that meet */
    const tsr_group *mates; /**< those of this rank's node, if other ranks are not (groups/mates.h) */
    size_t count;
    tsr_row_request *requests; /**< one a table */
    tsr_row_apply *applies;    /**< one a table; scratch of updates */
    tsr_row_rooms *rooms;      /**< for what concerns all tables */
    tsr_row_batch *batch;      /**< of tables on a device; NULL: they are on the host */
    uint64_t fingerprint;
    const tsr_layout *first; /**< the layout of the first table, for descriptions */
} tsr_row_call;

/** A tsr_call_describe whose argument is a tsr_row_call. */
void tsr_row_call_describe(const void *arg, char *text, size_t capacity);

/** Sets up the work of an update on table `i`. The caller writes its sources, one a rank, at the
 * index that tsr_row_table.turns has. */
tsr_status tsr_row_call_begin_apply(const tsr_row_call *call, size_t i);

/** Copies the segments of a row: `part` has the elements of one column part, `whole` all. */
void tsr_row_scatter(const tsr_row_table *table, const tsr_row_columns *columns, char *whole, const char *part);
void tsr_row_collect(const tsr_row_table *table, const tsr_row_columns *columns, char *part, const char *whole);

#endif
