/** Whether two cuts of one dim are alike, and which text a cut is printed as. Pure; all arrays have
 * a placement for each dim of the mesh: a Shard of dim 0, or Replicate. */
#ifndef TSR_OPS_RULES_ALIKE_H
#define TSR_OPS_RULES_ALIKE_H

#include <tessera/layout.h>

#include <stdbool.h>

/** `*alike` is true if the same mesh dims cut a dim of `size`, and each coordinate owns the same
 * indices, whatever the cuts are called. */
tsr_status tsr_cuts_alike(const tsr_mesh *mesh, int64_t size, const tsr_placement *a, const tsr_placement *b,
                          bool *alike);

/** Makes each cut the plainest of chunk, balanced and itself that leaves every coordinate its
 * indices. */
tsr_status tsr_cuts_simplify(const tsr_mesh *mesh, int64_t size, tsr_placement *cuts);

/** Goes on to the next coordinate in the mesh dims that are cut; false: there is none, and the
 * coordinate is again 0 in these mesh dims. */
bool tsr_cuts_advance(const tsr_mesh *mesh, const tsr_placement *cuts, int64_t *coordinate);

/** True if `a` is printed in a plainer form than `b`: chunk < balanced < unit < interleave <
 * blocks < sizes. */
bool tsr_cuts_are_plainer(const tsr_placement *a, const tsr_placement *b, int count);

#endif
