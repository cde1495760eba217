/** Whether two cuts of one dim are alike, and which text a cut is printed as. Pure; all arrays have
 * a placement for each dim of the mesh: a Shard of dim 0, or Replicate. */
#ifndef TSR_OPS_RULES_ALIKE_H
#define TSR_OPS_RULES_ALIKE_H

#include "ops/rules/express.h"

/** `*alike` is true if the same mesh dims cut a dim of `size`, and each coordinate owns the same
 * indices, whatever the cuts are called. */
tsr_status tsr_cuts_alike(const tsr_mesh *mesh, int64_t size, const tsr_placement *a, const tsr_placement *b,
                          bool *alike);

/** Makes each cut the plainest that leaves every coordinate its indices, in the same order. Lists
 * of new cuts belong to `lists`. */
tsr_status tsr_cuts_simplify(const tsr_mesh *mesh, int64_t size, tsr_placement *cuts, tsr_cut_lists *lists);

/** The mesh dims that cut, in the order in which they do; their number. */
int tsr_cuts_order(const tsr_mesh *mesh, const tsr_placement *cuts, int order[TSR_MAX_DIMS]);

#endif
