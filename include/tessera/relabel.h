/**
 * @file
 * Which rank takes which place of a destination mesh, where that is free: the order that keeps most
 * bytes where they are.
 *
 * Meshes often only say which ranks hold a tensor, not which of them holds what. Then a move can be
 * made smaller by permuting the ranks of its destination, as ScaLAPACK's and COSTA's process
 * relabelling do (M. Kabic, S. Pintarelli, A. Kozhevnikov, J. VandeVondele, "COSTA:
 * Communication-Optimal Shuffle and Transpose Algorithm with Process Relabeling", ISC High
 * Performance 2021). Pure host arithmetic: nothing here communicates, and all ranks get the same
 * answer.
 */
#ifndef TESSERA_RELABEL_H
#define TESSERA_RELABEL_H

#include <tessera/layout.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Destination meshes of up to so many ranks get the best order there is. */
#define TSR_ASSIGNMENT_EXACT_RANKS 512

/**
 * Exact: no order keeps more. Greedy: heaviest overlaps first; never worse than the order given.
 */
typedef enum tsr_assignment { TSR_ASSIGNMENT_EXACT = 0, TSR_ASSIGNMENT_GREEDY } tsr_assignment;

/** What the choice was between. Bytes kept are those of tsr_layout_relabel(), over all ranks. */
typedef struct tsr_relabel_report {
    tsr_assignment method;
    int64_t bytes_kept_given;  /**< by `dst` in the order given */
    int64_t bytes_kept;        /**< by the layout that came out */
    int64_t bytes_kept_greedy; /**< by greedy assignment alone, also where the exact one was
                                    taken */
    int64_t moved_ranks;       /**< ranks that stand at another coordinate than in `dst` */
} tsr_relabel_report;

/**
 * A layout like `dst`, over a mesh of the same shape, names and ranks, with the ranks in the order
 * that keeps most bytes in place on the way from `src`. The mesh is over the same communicator as
 * dst's, or abstract as that. The caller destroys `*out`; `report` may be NULL.
 *
 * A rank keeps the elements of its destination shard that its own source shard holds: of a Partial
 * that is reduced its own terms there, and nothing where its coordinate in a new Partial(sum) or
 * (prod), or in any new Partial of reduced terms, is not 0. Without Partial, all that ranks receive
 * is the bytes of all destination shards less these. Terms that stay Partial, and a Shard that
 * becomes Partial without communication, need the order of the source's mesh, which therefore
 * always competes. Of orders that keep as much, the one given is taken (then `*out` is `dst`,
 * retained), then that of the source's mesh, then the one that moves fewest ranks.
 *
 * Exact takes O(n^3) time and 8 n^2 bytes for the n ranks of dst's mesh. Greedy weighs about 2^20
 * overlaps, the heaviest of each rank. TSR_ERROR_ARGUMENT: shapes or dtypes differ, more than 2^63
 * - 1 bytes would be kept, in an exact assignment 2^50 by one rank, or it takes more than
 * tsr_context_options.plan_entries.
 */
TSR_API tsr_status tsr_layout_relabel(const tsr_layout *src, const tsr_layout *dst,
                                      tsr_layout **out, tsr_relabel_report *report);

#ifdef __cplusplus
}
#endif

#endif
