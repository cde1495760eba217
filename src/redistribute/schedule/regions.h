/** Regions, the overlaps of source pieces with destination pieces: walked one after the other, and
 * appended to an item as boxes and transfers. */
#ifndef TSR_REDISTRIBUTE_SCHEDULE_REGIONS_H
#define TSR_REDISTRIBUTE_SCHEDULE_REGIONS_H

#include "redistribute/match/homes.h"
#include "redistribute/match/reach.h"
#include "redistribute/schedule/plan.h"

/** The current region, and a walk over all regions between this rank's shard and the pieces of the
 * other layout: an odometer over one group per tensor dim. */
typedef struct tsr_regions {
    const tsr_layout *far;
    bool near_is_source;
    const tsr_segment *segments[TSR_MAX_DIMS]; /**< of the current region, by tensor dim */
    size_t counts[TSR_MAX_DIMS];
    int64_t shape[TSR_MAX_DIMS];

    tsr_overlap dims[TSR_MAX_DIMS]; /**< of the walk: the overlaps along each tensor dim */
    size_t group[TSR_MAX_DIMS];     /**< of the walk: the current group of each tensor dim */
    bool done;
} tsr_regions;

/** Makes current the region that a shard shares with the piece at `coordinate`; `reach` is that of
 * the shard, built, by tensor dim. There is no walk. */
void tsr_regions_set(tsr_regions *regions, tsr_reach *reach, const int64_t *coordinate);

/** Starts a walk at the first region of the shard of `near` at `coordinate`. `shape` is the
 * shard's; an empty shard has no regions. Free `regions` with tsr_regions_free(), also after an
 * error. TSR_ERROR_ARGUMENT: there are more regions, or more of their segments, than the meter
 * allows. */
tsr_status tsr_regions_begin(tsr_regions *regions, tsr_meter *meter, const tsr_layout *near, const int64_t *coordinate,
                             const int64_t *shape, const tsr_layout *far, bool near_is_source);
void tsr_regions_next(tsr_regions *regions);
void tsr_regions_free(tsr_regions *regions);

/** Writes the coordinates of the current region's far piece on the mesh dims that cut tensor dims;
 * leaves the others. */
void tsr_regions_far(const tsr_regions *regions, int64_t *coordinate);

/** Appends the boxes of the current region, or of `part` of it where not NULL, to the item. Writes
 * the first box, how many there are, and their elements, which may be 0. */
tsr_status tsr_regions_append(const tsr_regions *regions, tsr_item *item, const tsr_part *part, size_t *first,
                              size_t *count, int64_t *elements);

/** Adds `times` * `elements` to `*total`, elements that cross ranks. TSR_ERROR_ARGUMENT: it would
 * be more than 2^61 bytes. So the sum of two totals, rounded up for staging, does not overflow. */
tsr_status tsr_item_add(const tsr_item *item, int64_t *total, int64_t elements, int64_t times);

/** Makes room for `boxes` more boxes and `count` more transfers. */
tsr_status tsr_transfers_reserve(tsr_transfers *transfers, tsr_item *item, size_t boxes, size_t count);

/** Appends a transfer, unless it has no elements. */
tsr_status tsr_transfers_append(tsr_transfers *transfers, tsr_item *item, const tsr_transfer *transfer);

/** Appends the boxes of the current region, or of `part` of it where not NULL, and a transfer of
 * them to or from `peer`. `*taken`, where not NULL, becomes the transfer. */
tsr_status tsr_transfers_take(tsr_transfers *transfers, tsr_item *item, const tsr_regions *regions, int64_t peer,
                              const tsr_part *part, tsr_transfer *taken);

#endif
