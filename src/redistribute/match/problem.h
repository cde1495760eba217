/**
 * What kind of move source and destination layouts ask for: the part each mesh dim plays. Pure, and the same on every rank.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_PROBLEM_H
#define TSR_REDISTRIBUTE_MATCH_PROBLEM_H

#include <stdbool.h>

#include "placement/layout.h"

typedef enum tsr_role {
    TSR_ROLE_FREE,    /**< every coordinate holds the same (Replicate; a new Partial of avg, min, max; a mesh dim of size 1) */
    TSR_ROLE_CUT,     /**< the coordinate says which piece of a tensor dim */
    TSR_ROLE_KEPT,    /**< Partial with the same op on both sides of equal meshes: terms stay where they are */
    TSR_ROLE_REDUCED, /**< source only: Partial whose terms are reduced */
    TSR_ROLE_ZERO /**< destination only: a new Partial of sum or prod; coordinate 0 holds the value, the others hold what adds nothing */
} tsr_role;

typedef struct tsr_side {
    const tsr_layout *layout;
    const int64_t *shape; /**< of the mesh */
    int ndim;             /**< of the mesh */
    tsr_role roles[TSR_MAX_DIMS];
    int twin[TSR_MAX_DIMS]; /**< the same mesh dim on the other side of equal meshes, else -1 (also for size 1) */
} tsr_side;

typedef struct tsr_problem {
    tsr_side src, dst;
    bool same_mesh;
    bool disjoint;      /**< no rank is in both meshes, for one ends before the other begins */
    bool reduces;       /**< some Partial dim of the source is reduced */
    bool shortcut;      /**< Shard -> Partial(sum) without communication: own elements kept, the rest filled */
    bool local;         /**< no rank needs anything from another */
    bool in_place;      /**< source and destination may share memory */
    bool each;          /**< every owner reduces for itself; set by the plan, where tsr_problem_each_is_possible() */
    int64_t terms;      /**< contributions to each element: the product of the reduced dims */
    int64_t replicas;   /**< copies of each source piece: the product of the source's free dims */
    tsr_reduce_op op;   /**< of the reduction; sum also for avg */
    int64_t divisor;    /**< of avg: the product of its reduced dims, else 1 */
    tsr_reduce_op fill; /**< what new Partial dims are filled for: sum or prod */
} tsr_problem;

void tsr_problem_init(tsr_problem *problem, const tsr_layout *src, const tsr_layout *dst);

/** What users are told of `given` holds for a problem of divided layouts too: whether new Partial terms take the shortcut, which decides
 * values, and whether it works in place. */
void tsr_problem_restrict(tsr_problem *problem, const tsr_problem *given);

/**
 * True if every owner holds a term of what it owns, so that each can reduce for itself, in one step instead of two. With two terms that
 * takes no more bytes than sharing the work.
 */
bool tsr_problem_each_is_possible(const tsr_problem *problem);

/** True if on every tensor dim the destination's cuts are the source's and then others (`dst_inside_src`), or the other way round. For
 * equal meshes. */
bool tsr_problem_cuts_nest(const tsr_problem *problem, bool dst_inside_src);

/** True if on every tensor dim the cuts of the mesh dims that do not vary, whose placements are the same on both sides, come before all
 * others. For equal meshes; `varies` is of the source's mesh dims. */
bool tsr_problem_kept_cuts_lead(const tsr_problem *problem, const bool *varies);

/** True if a rank at source coordinate `have` holds the source piece that `want` names: equal where the source is cut or kept. */
bool tsr_problem_holds(const tsr_problem *problem, const int64_t *have, const int64_t *want);

/** True if the destination coordinate holds the value rather than a fill. */
bool tsr_problem_has_value(const tsr_problem *problem, const int64_t *dst);

/** Visits every combination of the dims of `role`, row-major: index -> coordinates of just those dims. */
void tsr_side_decode(const tsr_side *side, tsr_role role, int64_t index, int64_t *coordinate);
void tsr_side_decode_dims(const tsr_side *side, const bool *dims, int64_t index, int64_t *coordinate); /**< of those mesh dims instead */
int64_t tsr_side_encode(const tsr_side *side, tsr_role role, const int64_t *coordinate);
int64_t tsr_side_count(const tsr_side *side, tsr_role role);

#endif
