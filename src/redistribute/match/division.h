/**
 * Interleaved cuts as plain ones.
 *
 * `S(0;interleave=k)` cuts each of k equal blocks alike, so that a shard has k runs. Where blocks and parts are of one length each, the
 * tensor dim is as good as two, one over blocks and one inside a block, of which one or the other is cut: k runs become one box, and memory
 * lies as before. Items are planned on such divided layouts where both layouts allow it; what users give and are told has the dims of
 * the given ones.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_DIVISION_H
#define TSR_REDISTRIBUTE_MATCH_DIVISION_H

#include "placement/layout.h"

/** A shard as users give it: of the given layout. */
typedef struct tsr_given_shard {
    int ndim;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS]; /**< strides: row by row without gaps */
    int64_t inside[TSR_MAX_DIMS];                       /**< by given dim: how much of each block it has; the same on all ranks */
} tsr_given_shard;

/** How the dims of an item's layouts come from those of the given ones. */
typedef struct tsr_division {
    tsr_layout *src, *dst;       /**< as they were given; references of their own */
    int first[TSR_MAX_DIMS];     /**< by given dim: what it became, or the first of two */
    int64_t block[TSR_MAX_DIMS]; /**< by given dim: a block's length, where it became two; 0: it did not */
    tsr_given_shard from, to;    /**< this rank's */
} tsr_division;

/** Divides what can be divided of two layouts of one tensor: the caller owns `*src`, `*dst` and `*out`, NULL where nothing is. */
tsr_status tsr_division_find(const tsr_layout *given_src, const tsr_layout *given_dst, tsr_layout **src, tsr_layout **dst,
                             tsr_division **out);
void tsr_division_free(tsr_division *division);

/** Strides of the divided dims, for a tensor whose given dims have `strides`. */
void tsr_division_strides(const tsr_division *division, const tsr_given_shard *shard, const int64_t *strides, int64_t *divided);

#endif
