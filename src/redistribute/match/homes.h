/**
 * Which ranks reduce which part of the destination.
 *
 * A region is the overlap of one source piece with one destination piece. Its owners are the ranks
 * whose destination holds it. The owners that also hold a contribution share the reduction; if no
 * owner does, all owners share it. Each of the ranks that share is the home of an equal part, cut
 * along one tensor dim: it reduces the part once and gives the result to the other owners. So a
 * region costs the least total: terms + owners - 1 receives, less one where a home contributes.
 * (Where tsr_problem.each is set, every owner reduces the whole region by itself: with two terms,
 * one of them its own, the total is equal.)
 */
#ifndef TSR_REDISTRIBUTE_MATCH_HOMES_H
#define TSR_REDISTRIBUTE_MATCH_HOMES_H

#include "placement/meter.h"
#include "redistribute/match/problem.h"

/**
 * The homes of one region, numbered by row-major destination coordinate. On one mesh they are a
 * product set, which needs no list; between two meshes the owners that contribute are listed.
 */
typedef struct tsr_homes {
    tsr_meter *meter; /**< the caller's; borrowed */
    int64_t count;
    int64_t coordinate[TSR_MAX_DIMS]; /**< in the destination's mesh: what all homes have in common, on the mesh dims
                                         that do not vary */
    bool varies[TSR_MAX_DIMS];        /**< mesh dims of the destination on which homes have all coordinates */
    bool listed;                      /**< only the owners whose numbers are in `owners`, ascending, are homes */
    int64_t *owners;
    size_t capacity;
} tsr_homes;

/** Finds the homes of the region that source piece `src` and destination piece `dst` share; only
 * the cut and kept dims of the two coordinates count. Reuses the memory of `homes`, of which only
 * the meter is set at first. TSR_ERROR_ARGUMENT: between two meshes, more ranks must be looked at
 * than the meter allows. */
tsr_status tsr_homes_find(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst);
void tsr_homes_free(tsr_homes *homes, tsr_context *context);

/** The rank of home number `home`. */
int64_t tsr_homes_rank(const tsr_homes *homes, const tsr_problem *problem, int64_t home);

/** The home number of the rank at `dst` in the destination's mesh; -1 if it is not a home. */
int64_t tsr_homes_number(const tsr_homes *homes, const tsr_problem *problem, const int64_t *dst);

/** Writes the source coordinate that contributes term `term` (row-major over the reduced dims) to
 * the part of home number `home`. */
void tsr_homes_contributor(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t home,
                           int64_t term, int64_t *contributor);

/**
 * Candidate number `index`, ascending, for the homes to which the rank at source coordinate `src`
 * contributes its term: every such home is a candidate. A result of homes->count or more: there are
 * no further candidates.
 */
int64_t tsr_homes_served(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t index);

/** Lower bound, over all regions, of tsr_homes_served() for index 0. */
int64_t tsr_homes_first_served(const tsr_problem *problem, const int64_t *src);

/** A home's part of a region: positions [begin, end) along `dim`, all positions along the other
 * dims. */
typedef struct tsr_part {
    int dim; /**< -1: the region is not cut; the part is all of it where begin < end, else nothing */
    int64_t begin, end;
} tsr_part;

/** How homes share a region: in parts along the dim that divides most evenly (of equals, the
 * outermost), or uncut. */
typedef struct tsr_sharing {
    int dim; /**< -1: uncut; each of the first `busy` homes has the whole region */
    int64_t length;
    tsr_cut cut;
    int64_t busy; /**< homes from this number on have nothing to do */
} tsr_sharing;

tsr_sharing tsr_homes_share(const tsr_homes *homes, const tsr_problem *problem, const int64_t *shape);
tsr_part tsr_sharing_part(const tsr_sharing *sharing, int64_t home);

#endif
