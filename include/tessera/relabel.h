/**
 * @file
 * Relabelling: the order of ranks in a destination mesh that keeps most bytes where they are.
 *
 * A mesh often says only which ranks hold a tensor, and leaves free which rank holds which part.
 * Then permuting the ranks of the destination can make a move smaller, as ScaLAPACK's and COSTA's
 * process relabelling do (M. Kabic, S. Pintarelli, A. Kozhevnikov, J. VandeVondele, "COSTA:
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

/** Destination meshes of up to this many ranks are assigned exactly; larger ones greedily. */
#define TSR_ASSIGNMENT_EXACT_RANKS 512

/** Exact: no order keeps more bytes. Greedy: takes the heaviest overlaps first; the result is never
 * worse than the order given. */
typedef enum tsr_assignment { TSR_ASSIGNMENT_EXACT = 0, TSR_ASSIGNMENT_GREEDY } tsr_assignment;

/** The orders that were compared. Bytes kept are those of tsr_layout_relabel(), over all ranks. */
typedef struct tsr_relabel_report {
    tsr_assignment method;
    int64_t bytes_kept_given;  /**< by `dst` in the order given */
    int64_t bytes_kept;        /**< by the resulting layout */
    int64_t bytes_kept_greedy; /**< by greedy assignment alone, also if the exact one was chosen */
    int64_t moved_ranks;       /**< number of ranks whose coordinate differs from that in `dst` */
} tsr_relabel_report;

/**
 * A layout like `dst`, with the ranks of its mesh in the order that keeps most bytes in place on
 * the way from `src`. The new mesh has the same shape, names and set of ranks, and is over the same
 * communicator as dst's, or abstract if that is. The caller destroys `*out`; `report` may be NULL.
 *
 * @par Bytes kept
 * A rank keeps the elements of its destination shard that its own source shard holds. Of a Partial
 * that is reduced it keeps its own terms there. It keeps nothing where its coordinate is not 0 in a
 * new Partial(sum) or (prod), or in any new Partial of reduced terms. Without Partial, the bytes
 * that all ranks receive are the bytes of all destination shards minus these.
 *
 * @par Choice
 * Terms that stay Partial, and a Shard that becomes Partial without communication, need the order
 * of the source's mesh; so that order always competes. If several orders keep equally many bytes,
 * the order given is taken (then `*out` is `dst`, retained), else that of the source's mesh, else
 * the one that moves fewest ranks.
 *
 * @par Cost and errors
 * For the n ranks of dst's mesh, exact takes O(n^3) time and 8 n^2 bytes. Greedy weighs about 2^20
 * overlaps, the heaviest of each rank. TSR_ERROR_ARGUMENT: shapes or dtypes differ; more than 2^63
 * - 1 bytes would be kept, or in an exact assignment 2^50 by one rank; or it takes more than
 * tsr_context_options.plan_entries.
 */
TSR_API tsr_status tsr_layout_relabel(const tsr_layout *src, const tsr_layout *dst,
                                      tsr_layout **out, tsr_relabel_report *report);

#ifdef __cplusplus
}
#endif

#endif
