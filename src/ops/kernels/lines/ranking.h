/** The order of elements by value: what sort, topk, argmax and argmin have in common. */
#ifndef TSR_OPS_KERNELS_LINES_RANKING_H
#define TSR_OPS_KERNELS_LINES_RANKING_H

#include "ops/kernels/lines/axes.h"

#include <string.h>

/** An element, and its global position along the dim, which is -1 where there is no element. */
typedef struct tsr_ranked {
    tsr_number value;
    int64_t position;
} tsr_ranked;

/** An order of numbers. NaN is above all, unless `nan_first`; zeros are equal. */
typedef struct tsr_ranking {
    bool real; /**< numbers are f64, else i64 */
    bool descending, nan_first;
} tsr_ranking;

/** A number that is lower for elements that come first. */
static inline uint64_t tsr_ranking_key(const tsr_ranking *ranking, tsr_number number)
{
    const uint64_t sign = UINT64_C(1) << 63;
    uint64_t bits, key;
    memcpy(&bits, &number, sizeof bits);
    if (!ranking->real)
        key = bits ^ sign;
    else if (number.real != number.real)
        return ranking->descending || ranking->nan_first ? 0 : UINT64_MAX;
    else
        key = number.real == 0 ? sign : bits & sign ? ~bits : bits | sign;
    return ranking->descending ? ~key : key;
}

/** True if `a` comes before `b`: by value, and of equal values by position. */
static inline bool tsr_ranked_before(const tsr_ranking *ranking, const tsr_ranked *a, const tsr_ranked *b)
{
    const uint64_t first = tsr_ranking_key(ranking, a->value), second = tsr_ranking_key(ranking, b->value);
    return first != second ? first < second : a->position < b->position;
}

/** Sorts n elements by merging runs, of which there may be some. `spare` has room for as many. */
void tsr_ranked_sort(const tsr_ranking *ranking, tsr_ranked *elements, tsr_ranked *spare, int64_t n);

/** Offers an element to the first `most` of those that were offered, of which `*count` are kept in
 * any order. */
void tsr_ranked_offer(const tsr_ranking *ranking, tsr_ranked element, tsr_ranked *kept, int64_t most, int64_t *count);

#endif
