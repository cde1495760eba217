/**
 * Cuts a range of the elements of consecutive boxes into boxes, its fragments. Elements count as if
 * the boxes lay packed one after the other.
 *
 * A range of row-major elements of one n-d box has at most 2n - 1 fragments: rows that are begun,
 * whole planes, rows that are not finished.
 */
#ifndef TSR_REDISTRIBUTE_EXECUTE_FRAGMENTS_H
#define TSR_REDISTRIBUTE_EXECUTE_FRAGMENTS_H

#include "redistribute/schedule/plan.h"

typedef struct tsr_fragments {
    const tsr_item *item;
    size_t box;
    int64_t at, size; /**< position in the current box, and how many elements the box has */
    int64_t left;     /**< elements of the range that are left */
} tsr_fragments;

typedef struct tsr_fragment {
    size_t box;
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS]; /**< offset: its first element's place within the box */
    int64_t elements;
} tsr_fragment;

/** Elements [begin, end) of the boxes from `first_box` on. */
tsr_fragments tsr_fragments_begin(const tsr_item *item, size_t first_box, int64_t begin, int64_t end);

/** Writes the next fragment; false when there are no more. */
bool tsr_fragments_next(tsr_fragments *fragments, tsr_fragment *fragment);

/** Row-major strides of the fragment as it lies packed. */
static inline void tsr_fragment_strides(const tsr_fragment *f, int ndim, int64_t *strides)
{
    int64_t elements = 1;
    for (int dim = ndim - 1; dim >= 0; dim--) {
        strides[dim] = elements;
        elements *= f->shape[dim];
    }
}

#endif
