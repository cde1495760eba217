/** Checks what a rank brings to a call by id. Nothing here communicates. */
#ifndef TSR_TENSOR_ROWS_ROW_CHECKS_H
#define TSR_TENSOR_ROWS_ROW_CHECKS_H

#include "tensor/dtensor.h"
#include "tensor/rows/row_request.h"

/** TSR_ERROR_ARGUMENT: the table is a scalar, or (`written`) its rows share memory.
 * TSR_ERROR_UNSUPPORTED: it is Partial, or its rows have gaps. `call` begins the sentence, in
 * which the table is called `name`. */
tsr_status tsr_row_check_table(const char *call, const char *name, const tsr_dtensor *table, bool written);

/** TSR_ERROR_ARGUMENT: the tables are on different devices. */
tsr_status tsr_row_check_devices(const char *call, size_t count, tsr_dtensor *const *tables);

/**
 * Checks ids and their rows, and fills in the request: all but its table and rooms, which must be
 * set. Ids on a device are copied to the host, which waits for its default stream. The table is
 * checked. `written`: the rows are, else the table is. `capacity`: at most so many ids.
 */
tsr_status tsr_row_check_operands(const char *call, const tsr_dtensor *table, bool written, int64_t capacity,
                                  const tsr_tensor *ids, const tsr_tensor *data, tsr_row_request *out);

/**
 * TSR_ERROR_ARGUMENT: rows of a call's tables, which are checked, lie in a table, or (`gathers`) in
 * ids: results are written before all ids are read.
 */
tsr_status tsr_row_check_apart(const char *call, bool gathers, size_t count, tsr_dtensor *const *tables,
                               const tsr_tensor *ids, const tsr_tensor *data);

#endif
