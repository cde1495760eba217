/** What an order of ranks keeps, counted index by index over the oracle's layouts. */
#ifndef TESTS_RELABEL_RELABELLED_H
#define TESTS_RELABEL_RELABELLED_H

#include "oracle.h"
#include <tessera/relabel.h>

/** Elements that `rank` owns in the source and a position of `dst` owns in the destination; Partial is not looked at. */
int64_t shared_elements(const oracle_layout *src, int64_t rank, const oracle_layout *dst, int64_t position);

/** For each rank of dst's mesh, in its order, and each position: shared_elements(); count * count numbers. The caller frees them. */
int64_t *shared_table(const oracle_layout *src, const oracle_layout *dst);

/** Bytes that are kept where `dst`, whose mesh has the ranks of the table's in any order, is reached from `src`. */
int64_t kept_by(const oracle_layout *src, const oracle_layout *dst, const oracle_layout *given, const int64_t *table);

/** The oracle's layout with the mesh of the library's. */
oracle_layout with_mesh_of(const oracle_layout *layout, const tsr_layout *made);

/** Ranks that stand at another position of a mesh with the same ranks. */
int64_t count_moved(const oracle_mesh *given, const oracle_mesh *came);

/** Names the case for failures. */
void name_case(const oracle_layout *src, const oracle_layout *dst);

/**
 * Relabels and fails the running test unless the answer has dst's ranks, placements and shape and keeps what the report says by the
 * oracle's count, no less than dst and than greedy; and unless it is dst itself where nothing is gained.
 */
tsr_relabel_report check_relabel(const oracle_layout *src, const oracle_layout *dst, const int64_t *table);

#endif
