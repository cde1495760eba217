/** One call by id, from its arguments to its end. */
#ifndef TSR_TENSOR_ROWS_ROWS_CALLS_H
#define TSR_TENSOR_ROWS_ROWS_CALLS_H

#include "tensor/dtensor.h"
#include "tensor/rows/row_call.h"

/** What a rank gives a call. */
typedef struct tsr_row_arguments {
    size_t count;
    tsr_dtensor *const *tables; /**< of one mesh; none of them NULL */
    int64_t capacity;           /**< at most so many ids of a table */
    const tsr_tensor *ids;      /**< one a table; NULL: a mistake of this rank */
    const tsr_tensor *data;     /**< their rows, likewise */
} tsr_row_arguments;

/** Finds the group of the mesh's ranks, as tsr_mesh_find_group() does; NULL outside the mesh. */
tsr_status tsr_rows_find_group(const char *name, const tsr_dtensor *table, const tsr_group **out);

/** The tsr_row_table that the dtensor keeps, which is made if it keeps none of its layout. */
tsr_status tsr_rows_open_table(tsr_dtensor *table, const tsr_group *group, tsr_row_table **out);

/** A fingerprint of the call, which ranks compare. */
uint64_t tsr_rows_fingerprint(const tsr_row_call *call, const tsr_row_arguments *arguments);

/** Collective over the mesh's ranks, within a call that has entered the communicator's handle:
 * makes the call. `call` has its name, kind, rooms, requests with their rooms, and applies. */
tsr_status tsr_row_run_call(tsr_row_call *call, const tsr_row_arguments *arguments);

#endif
