/**
 * Interleaved cuts, planned as plain cuts.
 *
 * `S(0;interleave=k)` cuts each of k equal blocks alike, so that a shard has k runs. Where all
 * blocks are equally long, and all parts are, the tensor dim can be divided into two dims, one over
 * blocks and one inside a block. Each cut is then a plain cut of one of them: k runs become one
 * box, and memory lies as before. Items are planned on divided layouts where both layouts allow it;
 * what users give and are told has the dims of the given layouts.
 */
#ifndef TSR_REDISTRIBUTE_MATCH_DIVISION_H
#define TSR_REDISTRIBUTE_MATCH_DIVISION_H

#include "placement/layout.h"

/** A shard as users give it: of the given layout. */
typedef struct tsr_given_shard {
    int ndim;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS]; /**< strides: in elements, row by row without gaps */
    int64_t inside[TSR_MAX_DIMS]; /**< by given dim: how much of each block the shard has; the same on all ranks */
} tsr_given_shard;

/** How the dims of an item's layouts come from those of the given ones. */
typedef struct tsr_division {
    tsr_layout *src, *dst;       /**< the given layouts; owned references */
    int first[TSR_MAX_DIMS];     /**< by given dim: the divided dim that it became, or the first of two */
    int64_t block[TSR_MAX_DIMS]; /**< by given dim: the length of a block where the dim became two, else 0 */
    tsr_given_shard from, to;    /**< this rank's source and destination shard */
} tsr_division;

/** Divides the tensor dims that both layouts of one tensor allow to divide. The caller owns `*src`,
 * `*dst` and `*out`. If no dim can be divided, `*out` is NULL, and `*src` and `*dst` are not
 * written. */
tsr_status tsr_division_find(const tsr_layout *given_src, const tsr_layout *given_dst, tsr_layout **src,
                             tsr_layout **dst, tsr_division **out);
void tsr_division_free(tsr_division *division);

/** Writes the strides of the divided dims, for a tensor whose given dims have `strides`; both in
 * elements. */
void tsr_division_strides(const tsr_division *division, const tsr_given_shard *shard, const int64_t *strides,
                          int64_t *divided);

#endif
