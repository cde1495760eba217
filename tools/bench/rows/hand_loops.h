/** Rows by id as a program would write it for plain S(0) and f32: loops over ids that read and
 * write the memory of other threads. What `bench rows` compares the library's calls with. */
#ifndef TESSERA_TOOLS_BENCH_ROWS_HAND_LOOPS_H
#define TESSERA_TOOLS_BENCH_ROWS_HAND_LOOPS_H

#include <tessera/rows.h>

/** One rank's memory, which all threads see. */
typedef struct hand_rank {
    float *table;       /**< its rows of the table */
    const int64_t *ids; /**< that it brings */
    float *rows;        /**< of these ids */
} hand_rank;

/** All ranks' memory. */
typedef struct hand_table {
    const hand_rank *ranks;
    int count;
    int64_t each;         /**< rows of a rank; the last ranks may have fewer */
    int64_t width, batch; /**< elements of a row, ids of a rank */
} hand_table;

/** Copies the rows of the ids of `rank` to its `rows`. `ahead`: rows are fetched before. */
void hand_gather(const hand_table *t, int rank, int ahead);

/** Changes the rows of `rank` by those that all ranks bring, one after the other: mean as add. */
void hand_update(const hand_table *t, int rank, tsr_rows_op op);

#endif
