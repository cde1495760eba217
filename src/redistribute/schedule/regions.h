/** Regions that two pieces share: walked one after the other, and appended to an item as boxes and transfers. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_REGIONS_H
#define TSR_REDISTRIBUTE_SCHEDULE_REGIONS_H

#include "redistribute/match/homes.h"
#include "redistribute/match/reach.h"
#include "redistribute/schedule/plan.h"

/** True if a shard of this shape has no elements. However long it is along its other dims, nothing needs to be looked for there. */
bool tsr_shape_is_empty(int ndim, const int64_t *shape);

/** One region, and a walk over all regions between this rank's shard and the pieces of the other layout: an odometer over one group per
 * tensor dim. */
typedef struct tsr_regions {
    const tsr_layout *far;
    bool near_is_source;
    const tsr_segment *segments[TSR_MAX_DIMS]; /**< of the current region, by tensor dim */
    size_t counts[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];

    tsr_overlap dims[TSR_MAX_DIMS]; /**< of the walk */
    size_t group[TSR_MAX_DIMS];     /**< the current one of each dim */
    bool done;
} tsr_regions;

/** Makes the region that a built reach, by tensor dim, shares with the piece at `coordinate` the current one; no walk goes on from there.
 */
void tsr_regions_set(tsr_regions *regions, tsr_reach *reach, const int64_t *coordinate);

/** Starts a walk at the first region of the shard of `near` at `coordinate`, which has this shape: none is walked where it is empty.
 * `regions` is freed with tsr_regions_free(), also after an error. TSR_ERROR_ARGUMENT: the regions, or what they are made of, are more than
 * the meter allows. */
tsr_status tsr_regions_begin(tsr_regions *regions, tsr_meter *meter, const tsr_layout *near, const int64_t *coordinate,
                             const int64_t *shape, const tsr_layout *far, bool near_is_source);
void tsr_regions_next(tsr_regions *regions);
void tsr_regions_free(tsr_regions *regions);

/** Writes the far coordinates of the mesh dims that cut tensor dims; leaves the others alone. */
void tsr_regions_far(const tsr_regions *regions, int64_t *coordinate);

/** Appends the current region's boxes, or those of one part of it, to the item. `*elements` may come out 0. */
tsr_status tsr_regions_append(const tsr_regions *regions, tsr_item *item, const tsr_part *part, size_t *first, size_t *count,
                              int64_t *elements);

/** Adds `times` * `elements` to a total of what crosses ranks. TSR_ERROR_ARGUMENT: more than 2^61 bytes, so that sums of two totals,
 * rounded up for staging, do not overflow. */
tsr_status tsr_item_add(const tsr_item *item, int64_t *total, int64_t elements, int64_t times);

/** Makes room for so many more boxes and transfers, where they are known beforehand. */
tsr_status tsr_transfers_reserve(tsr_transfers *transfers, tsr_item *item, size_t boxes, size_t count);

/** One of no elements is left out. */
tsr_status tsr_transfers_append(tsr_transfers *transfers, tsr_item *item, const tsr_transfer *transfer);

/** Appends the current region, or one part of it, with its boxes, as what travels to or from `peer`. `taken`, where not NULL, is what was
 * appended. */
tsr_status tsr_transfers_take(tsr_transfers *transfers, tsr_item *item, const tsr_regions *regions, int64_t peer, const tsr_part *part,
                              tsr_transfer *taken);

#endif
