/** Boxes as the device copies, packs and reduces them, between places of an execution. */
#ifndef TSR_REDISTRIBUTE_EXECUTE_BOXES_H
#define TSR_REDISTRIBUTE_EXECUTE_BOXES_H

#include "redistribute/execute/execution.h"

/** The most copies that the device is given together. */
#define TSR_COPIES 8

typedef struct tsr_copies {
    const tsr_execution *e;
    tsr_box_copy at[TSR_COPIES];
    size_t count;
} tsr_copies;

/** Copies of boxes between places; no copy depends on another. All that was added is copied when
 * tsr_copies_end() returns. `from_source`: `src` is a source shard, else it is a destination shard
 * of the same piece. */
void tsr_copies_begin(tsr_copies *copies, const tsr_execution *e);
tsr_status tsr_copies_add(tsr_copies *copies, const tsr_item *item, const tsr_transfer *transfer, tsr_place dst,
                          tsr_place src, bool from_source);
tsr_status tsr_copies_end(tsr_copies *copies);

/** Copies a range of a parcel between packed memory and a place. `at_source`: boxes' positions in
 * the source shard count, else those in the destination shard. Unpacking takes those in the
 * destination shard. */
tsr_status tsr_execution_pack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, void *packed,
                              tsr_place place, bool at_source);
tsr_status tsr_execution_unpack(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place,
                                void *packed);

/** Where a range of a parcel begins in `place`, if the parcel is one box that lies there without
 * gaps, and so needs no packing; else NULL. */
void *tsr_execution_contiguous(const tsr_execution *e, const tsr_parcel *parcel, tsr_extent range, tsr_place place,
                               bool at_source);

/** Where a fragment begins in a place; writes the place's strides. */
char *tsr_execution_find(const tsr_item *item, const tsr_fragment *f, tsr_place place, bool at_source,
                         int64_t *strides);

/** An item's reduction as the device takes it; the caller sets the shape, and the pointers in
 * `arrays`. */
tsr_box_reduce tsr_execution_reduce(const tsr_item *item, const tsr_reduce_arrays *arrays, int dst_count);

#endif
