/**
 * What every element of a redistributed tensor must be, worked out from its global index alone.
 *
 * Nothing here knows how a move is done. A tensor without Partial source dims holds bits that hash its elements' global indices, so every
 * bit counts. With Partial source dims each rank's terms are small integers, exact in every dtype, of which every one counts: leave one
 * out, take one twice or take another's and the result differs. They depend on the index through few keys, so that both terms and results
 * are looked up in tables.
 */
#ifndef TESSERA_TOOLS_BENCH_CHECK_MOVE_ORACLE_H
#define TESSERA_TOOLS_BENCH_CHECK_MOVE_ORACLE_H

#include <tessera/layout.h>

/** Writes the source of the move from -> to: the contiguous local tensor under `from` at a coordinate. */
tsr_status oracle_fill(const tsr_layout *from, const int64_t *coordinate, void *local);

/** Counts elements of the contiguous local tensor under `to` at a coordinate that are not, bit for bit, what the move must give. */
tsr_status oracle_count_wrong(const tsr_layout *from, const tsr_layout *to, const int64_t *coordinate, const void *local, int64_t *wrong);

#endif
