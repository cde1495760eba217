/**
 * Who reduces what.
 *
 * A region is the overlap of one source piece with one destination piece. Its owners are the ranks whose destination holds it. Where some
 * of them also hold a contribution, they share the reduction among themselves, else all owners do: each is the home of an equal part, cut
 * along one tensor dim, reduces it once and gives the result to the other owners. So a region costs the least total: terms + owners - 1
 * receives, less one where a home contributes. (Where tsr_problem.each is set, all owners reduce the whole region for themselves: with two
 * terms, one of them their own, that is the same total.)
 */
#ifndef TSR_REDISTRIBUTE_MATCH_HOMES_H
#define TSR_REDISTRIBUTE_MATCH_HOMES_H

#include "placement/meter.h"
#include "redistribute/match/problem.h"

/**
 * The homes of one region, numbered by row-major destination coordinate. On one mesh they are a product set, so that nothing is listed;
 * between two meshes those owners that contribute are.
 */
typedef struct tsr_homes {
    tsr_meter *meter; /**< of whoever looks for homes; borrowed */
    int64_t count;
    int64_t coordinate[TSR_MAX_DIMS]; /**< in the destination's mesh: what all homes share */
    bool varies[TSR_MAX_DIMS];        /**< mesh dims over whose coordinates they range */
    bool listed;                      /**< then they are only those owners whose numbers `owners` has, ascending */
    int64_t *owners;
    size_t capacity;
} tsr_homes;

/** Finds the homes of the region of source piece `src` (cut and kept dims) and destination piece `dst` (likewise). Reuses the memory of
 * `homes`, which starts with nothing but a meter. TSR_ERROR_ARGUMENT: between two meshes more ranks are to be looked at than it allows. */
tsr_status tsr_homes_find(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst);
void tsr_homes_free(tsr_homes *homes, tsr_context *context);

/** The rank of home number `home`. */
int64_t tsr_homes_rank(const tsr_homes *homes, const tsr_problem *problem, int64_t home);

/** The number of the home that the rank at `dst` in the destination's mesh is; -1 if it is none. */
int64_t tsr_homes_number(const tsr_homes *homes, const tsr_problem *problem, const int64_t *dst);

/** The source coordinate that contributes term `term` (row-major over the reduced dims) to what home number `home` reduces. */
void tsr_homes_contributor(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t home, int64_t term,
                           int64_t *contributor);

/**
 * The homes to which the rank at source coordinate `src` contributes its term are among tsr_homes_served(.., 0), (.., 1), .., ascending;
 * homes->count or more: there are no others.
 */
int64_t tsr_homes_served(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t index);

/** No lower than this is the first of them in any region. */
int64_t tsr_homes_first_served(const tsr_problem *problem, const int64_t *src);

/** A home's part of a region: positions [begin, end) along `dim`, everything along the others. */
typedef struct tsr_part {
    int dim; /**< -1: the region is not cut (a scalar: the first home has it all) */
    int64_t begin, end;
} tsr_part;

/** How homes share a region: in parts along the dim that divides most evenly, the outermost of equals, or each has all of it. */
typedef struct tsr_sharing {
    int dim; /**< -1: it is not cut */
    int64_t length;
    tsr_cut cut;
    int64_t busy; /**< homes from this number on have nothing to do */
} tsr_sharing;

tsr_sharing tsr_homes_share(const tsr_homes *homes, const tsr_problem *problem, const int64_t *shape);
tsr_part tsr_sharing_part(const tsr_sharing *sharing, int64_t home);

#endif
