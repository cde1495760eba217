/** Cuts of a dim that is a product of factors, and cuts of the factors. Pure. All arrays of cuts
 * have a placement for each dim of the mesh: a Shard of dim 0, or Replicate. */
#ifndef TSR_OPS_RULES_COMPOUND_H
#define TSR_OPS_RULES_COMPOUND_H

#include "ops/rules/alike.h"

/** A dim that is a product of factors. */
typedef struct tsr_compound_dim {
    const tsr_mesh *mesh;
    int count;
    int64_t sizes[TSR_MAX_DIMS]; /**< of the factors, major to minor */
} tsr_compound_dim;

/**
 * Says cuts of the dim as cuts of its factors, each mesh dim cutting one: `factor[k]` gets its
 * place (-1: it cuts none), and `cuts[k]` becomes its placement. Where several would do, it is
 * `hint[k]` if that is not -1. `*divides` false: a mesh dim, `*mesh_dim` for one, cuts the dim
 * otherwise; `cuts` is as it was.
 */
tsr_status tsr_compound_divide(const tsr_compound_dim *dim, const int *hint, tsr_cut_lists *lists, tsr_placement *cuts,
                               int *factor, bool *divides, int *mesh_dim);

/** Says cuts of factors, `cuts[k]` of that at `factor[k]` (-1: none), as cuts of the dim, which
 * replace them, in their plainest form. `*combines` false: no placements can say it. */
tsr_status tsr_compound_combine(const tsr_compound_dim *dim, const int *factor, tsr_cut_lists *lists,
                                tsr_placement *cuts, bool *combines);

#endif
