/** Finds placements that give each coordinate what it should own, in their plainest form. Pure. */
#ifndef TSR_OPS_RULES_EXPRESS_H
#define TSR_OPS_RULES_EXPRESS_H

#include "ops/rules/parts.h"

/** Lists of sizes and blocks that placements borrow. */
typedef struct tsr_cut_lists {
    tsr_context *context;
    struct tsr_cut_list *first;
} tsr_cut_lists;

/** Room for a list of `count` numbers. */
tsr_status tsr_cut_lists_add(tsr_cut_lists *lists, size_t count, int64_t **out);

/** Frees the lists. */
void tsr_cut_lists_clear(tsr_cut_lists *lists);

/**
 * Finds cuts, Shards of dim 0 or Replicate, that give each coordinate its part. Each is in the
 * plainest form: chunk < balanced < unit < interleave < blocks < sizes; with `order` NULL mesh dims
 * cut in the order that makes forms plainest, else in the order of `order`. `*found` false: no
 * placements can say it. Their lists belong to `lists`.
 */
tsr_status tsr_parts_express(const tsr_mesh *mesh, const tsr_parts *parts, const int *order, tsr_cut_lists *lists,
                             tsr_placement *cuts, bool *found);

/** Below 0 if the first cuts that differ in form have a plainer one in `a`: chunk < balanced < unit
 * < interleave < blocks < sizes. */
int tsr_cuts_compare_forms(const tsr_placement *a, const tsr_placement *b, int count);

/** True if `a` has plainer forms than `b`, or the same with smaller units and interleaves. */
bool tsr_cuts_are_plainer(const tsr_placement *a, const tsr_placement *b, int count);

/** Makes orders of Shards, which are places in the order of cuts, the default where they ascend
 * with mesh dims. */
void tsr_cuts_settle_order(int mesh_ndim, tsr_placement *cuts);

#endif
