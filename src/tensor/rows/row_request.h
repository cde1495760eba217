/** What one rank brings to a call for one table. */
#ifndef TSR_TENSOR_ROWS_ROW_REQUEST_H
#define TSR_TENSOR_ROWS_ROW_REQUEST_H

#include "tensor/rows/row_rooms.h"
#include "tensor/rows/row_table.h"

/** In a direct call peers read it. */
typedef struct tsr_row_request {
    tsr_row_table *table;
    char *local;           /**< this rank's shard of the table */
    size_t local_stride;   /**< bytes from row to row there */
    size_t local_bytes;    /**< from its first to behind its last element */
    const tsr_tensor *ids; /**< on the host */
    tsr_tensor brought;    /**< the ids, where they were on a device */
    int64_t count;         /**< of ids */
    char *data;            /**< rows of the ids: an update reads them, a gather writes them */
    size_t stride;         /**< bytes from row to row there */
    tsr_row_rooms *rooms;

    /* Set by tsr_row_request_sort(), in rooms: the ids of row part p are those from starts[p] to
     * below starts[p + 1]. */
    int64_t *starts;
    int64_t *locals;    /**< local row of each */
    int64_t *positions; /**< position of each among `ids`; ascending within a part */
} tsr_row_request;

/** Takes the rooms of tsr_row_request_sort() for `count` ids. */
tsr_status tsr_row_request_reserve(tsr_row_request *request, int64_t count);

/** Sorts the ids, which are in range, by row part. */
tsr_status tsr_row_request_sort(tsr_row_request *request);

/** Leaves each row once among the sorted ids, with its last position. */
tsr_status tsr_row_request_keep_last(tsr_row_request *request);

/** Rows of a request, each once, in rooms. */
typedef struct tsr_row_unique {
    int64_t *starts; /**< by row part, as `starts` of the request */
    int64_t *locals;
    int64_t *indices; /**< for each sorted id its row among those of its part */
} tsr_row_unique;

/** Finds the different rows of the sorted ids. */
tsr_status tsr_row_request_find_unique(const tsr_row_request *request, tsr_row_unique *out);

#endif
