/**
 * Values of tensors that follow from global indices, by which the result of a move is checked bit
 * by bit.
 *
 * Where nothing is reduced they are hashes of the index, so that every bit counts. With Partial
 * dims they are 1 to 7 (in bool 0 and 1). Then one rank, which the index picks, has a term that is
 * the value, and the others have terms that leave it as it is but count: another pick gives another
 * result. All of this is exact in every dtype, and in any order.
 */
#ifndef TSR_BENCH_VALUES_H
#define TSR_BENCH_VALUES_H

#include <tessera/layout.h>

#include <stdbool.h>

/** The small integers that terms are: 0 to 8. */
#define TSR_BENCH_INTEGERS 9

/** The most bytes of an element. */
#define TSR_BENCH_ELEMENT_BYTES 16

/** The values of one move. */
typedef struct tsr_bench_values {
    const tsr_layout *from; /**< borrowed */
    tsr_dtype dtype;
    size_t bytes;                                                    /**< of an element */
    bool terms;                                                      /**< values are small integers, not hashes */
    unsigned char code[TSR_BENCH_INTEGERS][TSR_BENCH_ELEMENT_BYTES]; /**< the integers in the dtype */
} tsr_bench_values;

/** True if a mesh dim larger than 1 is Partial. */
bool tsr_bench_is_partial(const tsr_layout *layout);

/** The values of a move between these layouts. */
tsr_status tsr_bench_values_of(const tsr_layout *from, const tsr_layout *to, tsr_bench_values *out);

/** Writes the source of the move: the contiguous local tensor at a coordinate. */
tsr_status tsr_bench_values_fill(const tsr_bench_values *v, const int64_t *coordinate, void *local);

/** Adds to `*wrong` the elements of a result that are not right: of the contiguous local tensor of
 * `to`, which is not Partial, at a coordinate. */
tsr_status tsr_bench_values_check(const tsr_bench_values *v, const tsr_layout *to, const int64_t *coordinate,
                                  const void *local, int64_t *wrong);

#endif
