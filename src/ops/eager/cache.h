/** Answers of rules that a mesh keeps, so that a repeated call parses nothing and infers
 * nothing. */
#ifndef TSR_OPS_EAGER_CACHE_H
#define TSR_OPS_EAGER_CACHE_H

#include "ops/rows/row.h"

/** What a mesh keeps of calls of ops. Not locked: one thread at a time, as with the mesh's
 * communicator. */
typedef struct tsr_eager_cache tsr_eager_cache;

/** The answer for one op, attributes and layouts. Its layouts are on a mesh without a
 * communicator. */
typedef struct tsr_eager_answer {
    int operand_count, result_count;
    tsr_op_inferred inferred; /**< empty with `settles` */
    bool settles;             /**< operands do not fit, and the context's policy lets them be moved to `fitted` */
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS]; /**< NULL: the operand stays, or is left out */
} tsr_eager_answer;

/** The cache of a mesh, borrowed from it, and this rank's coordinate; `*inside` 0: it is outside
 * the mesh. */
tsr_status tsr_eager_cache_of(const tsr_mesh *mesh, tsr_eager_cache **out);
const int64_t *tsr_eager_coordinate(const tsr_eager_cache *cache, int *inside);

/**
 * The answer for a case whose layouts are on the cache's mesh; it is inferred if the cache lacks
 * it. Borrowed until the next call. Errors are those of tsr_op_settle().
 */
tsr_status tsr_eager_answer_for(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_eager_answer **out);

/** True if a layout's mesh has the same dims, over the same communicator, as the cache's. */
bool tsr_eager_is_on(const tsr_eager_cache *cache, const tsr_layout *layout);

/** True if tsr_eager_remember() was called for the same op, attributes and layout objects, with
 * these results' layouts; then `*out` is the answer. */
bool tsr_eager_recall(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_layout *const *results,
                      const tsr_eager_answer **out);

/** Notes that results of these layouts were found to be right for the case; `answer` is the last
 * one that the cache gave. */
void tsr_eager_remember(tsr_eager_cache *cache, const tsr_op_case *c, const tsr_layout *const *results,
                        const tsr_eager_answer *answer);

#endif
