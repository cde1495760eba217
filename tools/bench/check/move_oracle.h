/**
 * Computes every element of a redistributed tensor from its global index alone.
 *
 * The oracle does not know how moves are executed. A source without Partial dims holds hashes of
 * its elements' global indices, so every bit counts. With Partial dims each rank's terms are small
 * integers, exact in every dtype, and every term counts: a result that leaves a term out, takes one
 * twice or takes another element's differs. Terms depend on the index by few keys, so that terms
 * and results are looked up in tables.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_MOVE_ORACLE_H
#define TESSERA_TOOLS_BENCH_CHECK_MOVE_ORACLE_H

#include <tessera/layout.h>

/** Writes the source of a move: the contiguous local tensor of `from` at a coordinate. */
tsr_status oracle_fill(const tsr_layout *from, const int64_t *coordinate, void *local);

/** Counts the elements of a move's result, the contiguous local tensor of `to` at a coordinate,
 * that are not right bit for bit. */
tsr_status oracle_count_wrong(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate,
                              const void *local, int64_t *wrong);

#endif
