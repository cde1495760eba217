/**
 * Fills the source of a move, and counts the wrong elements of its result, by the model in oracle/:
 * which elements a rank has, and their values, do not come from the library.
 *
 * A source without Partial dims holds hashes of its elements' global indices, so every bit counts.
 * With Partial dims each rank's terms are small integers (terms.h). Terms depend on the index by
 * few patterns, so that terms and results are looked up in tables, and large tensors are checked
 * about as fast as they are written.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_MOVE_CHECK_H
#define TESSERA_TOOLS_BENCH_CHECK_MOVE_CHECK_H

#include <tessera/layout.h>

/** Writes the source of a move: the contiguous local tensor of `from` at a coordinate, of `bytes`
 * bytes. TSR_ERROR_INTERNAL: by the model the shard has another size. TSR_ERROR_MEMORY. */
tsr_status check_fill(const tsr_layout *from, const int64_t *coordinate, void *local, size_t bytes);

/** Counts the elements of a move's result, the contiguous local tensor of `to` at a coordinate,
 * that are not right bit for bit. Both layouts are over one mesh. Errors are those of
 * check_fill(). */
tsr_status check_count_wrong(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate, const void *local,
                             size_t bytes, int64_t *wrong);

#endif
