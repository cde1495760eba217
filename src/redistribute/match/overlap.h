/**
 * Which peers' pieces overlap one rank's shard, dim by dim.
 *
 * Along a tensor dim the shard's runs are merged with the cut points of the other layout. The
 * result is a list of segments, grouped by the other side's coordinate; the overlap with one peer
 * is the product over dims of one group each. The cost grows with the cuts met, not with the number
 * of ranks.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_OVERLAP_H
#define TSR_REDISTRIBUTE_MATCH_OVERLAP_H

#include "placement/meter.h"

/** Global positions [begin, begin + length) of a tensor dim, which lie from `near` on in this
 * rank's shard and from `far` on in the shard of `key` (tsr_cut_key()). */
typedef struct tsr_segment {
    int64_t key, begin, near, far, length;
} tsr_segment;

/** The segments of one key, ascending: `count` of tsr_overlap.segments from number `first` on. */
typedef struct tsr_segments {
    int64_t key;
    size_t first, count;
    int64_t length; /**< sum of the segments' lengths */
    size_t marked;  /**< set by tsr_reach_mark(): how many groups before this one are marked */
} tsr_segments;

typedef struct tsr_overlap {
    tsr_segment *segments;
    size_t segment_count, segment_capacity;
    tsr_segments *groups; /**< ascending by key */
    size_t group_count, group_capacity;
    size_t marked; /**< set by tsr_reach_mark(): how many groups are marked */
} tsr_overlap;

/** Finds the overlaps of `near`'s shard at `coordinate` along `dim` with the pieces of `far`.
 * `overlap` starts zeroed; free it with tsr_overlap_free(), also after an error.
 * TSR_ERROR_ARGUMENT: there are more than the meter allows. */
tsr_status tsr_overlap_build(tsr_overlap *overlap, tsr_meter *meter, const tsr_layout *near, const int64_t *coordinate,
                             const tsr_layout *far, int dim);
void tsr_overlap_free(tsr_overlap *overlap, tsr_context *context);

/** The index of the first group whose key is `key` or more; group_count if every key is less. */
size_t tsr_overlap_find(const tsr_overlap *overlap, int64_t key);

/** True if mesh dim `mesh_dim` cuts tensor dim `dim`. */
bool tsr_cuts_dim(const tsr_layout *layout, int mesh_dim, int dim);

/** A key: the coordinates on the mesh dims that cut `dim`, as one number, row-major by mesh dim.
 * Unkeying writes these coordinates and leaves the others. */
int64_t tsr_cut_keys(const tsr_layout *layout, int dim); /**< the number of keys */
int64_t tsr_cut_key(const tsr_layout *layout, int dim, const int64_t *coordinate);
void tsr_cut_unkey(const tsr_layout *layout, int dim, int64_t key, int64_t *coordinate);

#endif
