/* The tensor that every peer moves: all results are checked against the same numbers, which are
 * exact in f32. */
#ifndef PEERS_REFERENCE_H
#define PEERS_REFERENCE_H

#include <stdint.h>

/** The element at a row-major index of the global tensor. */
static inline float reference_value(int64_t index)
{
    return (float)(index % 1009 - 500);
}

/** A rank's term of the element, if the tensor is Partial(sum). */
static inline float reference_term(int64_t index, int rank)
{
    return reference_value(index) + (float)(rank + 1);
}

/** The sum of all ranks' terms. */
static inline float reference_sum(int64_t index, int ranks)
{
    return (float)ranks * reference_value(index) + (float)(ranks * (ranks + 1) / 2);
}

#endif
