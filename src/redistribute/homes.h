/**
 * Who reduces what.
 *
 * A region is the overlap of one source piece with one destination piece. Its owners are the ranks whose destination holds it. Where some
 * of them also hold a contribution, they share the reduction among themselves, else all owners do: each is the home of an equal part, cut
 * along one tensor dim, reduces it once and gives the result to the other owners. So a region costs the least total: terms + owners - 1
 * receives, less one where a home contributes.
 */
#ifndef TSR_REDISTRIBUTE_HOMES_H
#define TSR_REDISTRIBUTE_HOMES_H

#include "redistribute/problem.h"

/** An owner by its rank and destination coordinate. */
typedef struct tsr_owner {
    int64_t rank;
    int64_t coordinate[TSR_MAX_DIMS];
} tsr_owner;

typedef struct tsr_homes {
    tsr_owner *owners; /**< all, by row-major coordinate */
    size_t owner_count, owner_capacity;
    size_t *homes; /**< those among them that reduce */
    size_t home_count, home_capacity;
} tsr_homes;

/** Lists owners and homes of the region of source piece `src` (cut and kept dims) and destination piece `dst` (likewise). Reuses the memory
 * of `homes`, which starts zeroed. */
tsr_status tsr_homes_list(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst);
void tsr_homes_free(tsr_homes *homes, tsr_context *context);

/** The source coordinate that contributes term `term` (row-major over the reduced dims) to what home number `home` reduces. */
void tsr_homes_contributor(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, size_t home, int64_t term,
                           int64_t *contributor);

/** A home's part of a region: positions [begin, end) along `dim`, everything along the others. */
typedef struct tsr_part {
    int dim; /**< -1: the region is not cut (a scalar: the first home has it all) */
    int64_t begin, end;
} tsr_part;

/** Part `home` of `count` of a region of this shape; the cut falls along the dim that divides most evenly, the outermost of equals. */
tsr_part tsr_homes_part(int ndim, const int64_t *shape, size_t element_bytes, size_t home, size_t count);

#endif
