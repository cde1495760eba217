/** Counts the elements that an order of ranks keeps in place, index by index on the oracle's
 * layouts. */
#ifndef TESTS_RELABEL_RELABELLED_H
#define TESTS_RELABEL_RELABELLED_H

#include "oracle.h"

#include <tessera/relabel.h>

/** The number of elements that `rank` owns in the source and a position of `dst` owns in the
 * destination; Partial is ignored. */
int64_t shared_elements(const oracle_layout *src, int64_t rank, const oracle_layout *dst, int64_t position);

/** shared_elements() for each rank of dst's mesh, in its order, and each position: count * count
 * numbers, which the caller frees. */
int64_t *shared_table(const oracle_layout *src, const oracle_layout *dst);

/** Bytes kept in place by a move from `src` to `dst`, whose mesh has the ranks of `given`, for
 * which `table` was made, in any order. */
int64_t kept_by(const oracle_layout *src, const oracle_layout *dst, const oracle_layout *given, const int64_t *table);

/** The oracle's layout with the mesh of the library's layout `made`. */
oracle_layout with_mesh_of(const oracle_layout *layout, const tsr_layout *made);

/** The number of ranks that have another position in `came` than in `given`. */
int64_t count_moved(const oracle_mesh *given, const oracle_mesh *came);

/** Names the case for failures. */
void name_case(const oracle_layout *src, const oracle_layout *dst);

/**
 * Relabels, and fails the running test unless the result has dst's ranks, placements and shape,
 * keeps the bytes of the report by the oracle's count, no less than `dst` and greedy choice keep,
 * and is `dst` itself if nothing is gained.
 */
tsr_relabel_report check_relabel(const oracle_layout *src, const oracle_layout *dst, const int64_t *table);

#endif
