/**
 * The kind of move from a source layout to a destination layout: the role of each mesh dim. Pure;
 * the same on every rank.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_PROBLEM_H
#define TSR_REDISTRIBUTE_MATCH_PROBLEM_H

#include "placement/layout.h"

#include <stdbool.h>

typedef enum tsr_role {
    TSR_ROLE_FREE, /**< every coordinate holds the same (Replicate; a new Partial of avg, min, max; a mesh dim of size
                      1) */
    TSR_ROLE_CUT,  /**< the coordinate picks the piece of a tensor dim */
    TSR_ROLE_KEPT, /**< Partial with the same op on both sides of equal meshes: terms stay where they are */
    TSR_ROLE_REDUCED, /**< source only: Partial whose terms are reduced */
    TSR_ROLE_ZERO /**< destination only: a new Partial of sum or prod; coordinate 0 holds the value, the others the op's
                     identity */
} tsr_role;

typedef struct tsr_side {
    const tsr_layout *layout;
    const int64_t *shape; /**< of the mesh */
    int ndim;             /**< of the mesh */
    tsr_role roles[TSR_MAX_DIMS];
    int twin[TSR_MAX_DIMS]; /**< the matching mesh dim of the other side, if the meshes are equal and its size is not 1;
                               else -1 */
} tsr_side;

typedef struct tsr_problem {
    tsr_side src, dst;
    bool same_mesh;
    bool disjoint;      /**< one mesh's highest rank is below the other's lowest, so no rank is in both */
    bool reduces;       /**< some Partial dim of the source is reduced */
    bool shortcut;      /**< Shard -> Partial(sum) without communication: own elements kept, the rest filled */
    bool local;         /**< no rank needs anything from another */
    bool in_place;      /**< source and destination may share memory */
    bool each;          /**< every owner reduces by itself all that it owns; the plan sets it, only where
                           tsr_problem_each_is_possible() */
    int64_t terms;      /**< contributions to each element: the product of the reduced dims */
    int64_t replicas;   /**< copies of each source piece: the product of the source's free dims */
    tsr_reduce_op op;   /**< of the reduction; sum also for avg */
    int64_t divisor;    /**< what divides the sum: the product of the reduced dims whose op is avg, else 1 */
    tsr_reduce_op fill; /**< the op of new Partial dims, whose identity is the fill: sum or prod */
} tsr_problem;

void tsr_problem_init(tsr_problem *problem, const tsr_layout *src, const tsr_layout *dst);

/** For the problem of divided layouts (division.h): takes `shortcut` and `in_place` from `given`,
 * the problem of the layouts that users gave, and finds `local` anew. Users are told about their
 * own layouts, and the shortcut decides values. */
void tsr_problem_restrict(tsr_problem *problem, const tsr_problem *given);

/**
 * True if there are several owners and each holds a term of what it owns. Each can then reduce by
 * itself, in one step instead of two. With two terms that takes no more bytes than sharing the
 * work.
 */
bool tsr_problem_each_is_possible(const tsr_problem *problem);

/** True if on every tensor dim the destination's cuts begin with all of the source's
 * (`dst_inside_src`), or the source's with all of the destination's. For equal meshes. */
bool tsr_problem_cuts_nest(const tsr_problem *problem, bool dst_inside_src);

/** True if on every tensor dim the source's cuts by mesh dims that do not vary come before its
 * other cuts. `varies[i]`: the placement of the source's mesh dim i differs between the two sides.
 * For equal meshes. */
bool tsr_problem_kept_cuts_lead(const tsr_problem *problem, const bool *varies);

/** True if a rank at source coordinate `have` holds the source piece that `want` names: both are
 * equal on all cut and kept dims. */
bool tsr_problem_holds(const tsr_problem *problem, const int64_t *have, const int64_t *want);

/** True if the destination coordinate holds the value rather than a fill. */
bool tsr_problem_has_value(const tsr_problem *problem, const int64_t *dst);

/** The coordinates on the mesh dims of `role` as one row-major number, and back. Decoding writes
 * these coordinates and leaves the others. */
void tsr_side_decode(const tsr_side *side, tsr_role role, int64_t index, int64_t *coordinate);
/** Decodes `index` on the mesh dims i with dims[i] set. */
void tsr_side_decode_dims(const tsr_side *side, const bool *dims, int64_t index, int64_t *coordinate);
int64_t tsr_side_encode(const tsr_side *side, tsr_role role, const int64_t *coordinate);
int64_t tsr_side_count(const tsr_side *side, tsr_role role);

#endif
