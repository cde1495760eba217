/** Boxes as the device copies, packs and reduces them, between places of an execution. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_BOXES_H
#define TSR_REDISTRIBUTE_EXECUTE_BOXES_H

#include "redistribute/execute/execution.h"

/** Copies that the device is given together, as it launches them. */
#define TSR_COPIES 8

typedef struct tsr_copies {
    const tsr_execution *e;
    tsr_box_copy at[TSR_COPIES];
    size_t count;
} tsr_copies;

/** Boxes between two places, of which none waits for another one. `from_source`: out of a source shard, else out of the same piece's
 * destination. What was added is copied when it is ended. */
void tsr_copies_begin(tsr_copies *copies, const tsr_execution *e);
tsr_status tsr_copies_add(tsr_copies *copies, const tsr_item *item, const tsr_transfer *transfer, tsr_place dst, tsr_place src,
                          bool from_source);
tsr_status tsr_copies_end(tsr_copies *copies);

/** Copies a range of a parcel between memory in which it lies packed and its place. `at_source`: its boxes' positions in the source shard
 * count, else those in the destination's. */
tsr_status tsr_execution_pack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, void *packed, tsr_place place,
                              bool at_source);
tsr_status tsr_execution_unpack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place, void *packed);

/** The bytes of a range of a single box that lies without gaps, else NULL: then there is no need to pack. */
void *tsr_execution_contiguous(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place, bool at_source);

/** Where a fragment lies in a place; `strides` become the place's. */
char *tsr_execution_find(const tsr_item *item, const tsr_fragment *f, tsr_place place, bool at_source, int64_t *strides);

/** A reduction as the device takes it, but for shape and pointers. */
tsr_box_reduce tsr_execution_reduce(const tsr_item *item, const tsr_reduce_arrays *arrays, int dst_count);

#endif
