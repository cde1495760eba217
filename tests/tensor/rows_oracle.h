/** Tables, ids and rows that follow from small numbers, and what calls by id must make of them, by
 * plain loops over whole tables. */
#ifndef TESTS_TENSOR_ROWS_ORACLE_H
#define TESTS_TENSOR_ROWS_ORACLE_H

#include <tessera/layout.h>
#include <tessera/rows.h>

#include <stdbool.h>

/** The most ranks, ids of a rank, and bytes of a whole table. */
enum { ROWS_RANKS = 8, ROWS_IDS = 24, ROWS_BYTES = 1 << 14 };

/** The number of ids that a rank brings in a round, and the id at a position, below `rows`. */
int64_t rows_count(int round, int rank);
int64_t rows_id(int round, int rank, int64_t position, int64_t rows);

/** Writes `count` elements that depend on `salt`: numbers whose sums depend on the order, with some
 * -0 and NaN among floats; with `raw`, any bits. */
void rows_fill(tsr_dtype dtype, int64_t count, unsigned salt, bool raw, unsigned char *out);

/** The salt of the rows that a rank brings. */
unsigned rows_salt(int round, int rank);

/** Updates a whole table of rows of `width` elements by what `ranks` ranks bring in a round. */
void rows_update_whole(tsr_dtype dtype, tsr_rows_op op, int64_t rows, int64_t width, int round, int ranks, bool raw,
                       unsigned char *table);

/** True if the dtype has the op. */
bool rows_has_op(tsr_dtype dtype, tsr_rows_op op);

/** Writes the global index, along `dim`, of each index of this rank's shard; returns how many. */
int64_t rows_owned(const tsr_layout *layout, int dim, int64_t *out);

/** The row-major global number of an element of this rank's shard, by its row-major number
 * there. */
int64_t rows_global(const tsr_layout *layout, int64_t local);

#endif
