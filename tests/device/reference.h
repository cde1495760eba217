/** Slow reference arithmetic: narrow floating-point types by their definition and by search,
 * reductions one element at a time. */
#ifndef TESTS_DEVICE_REFERENCE_H
#define TESTS_DEVICE_REFERENCE_H

#include <tessera/dtype.h>

#include <stdint.h>

/** The narrow floating types. */
extern const tsr_dtype reference_narrow[4];

/** The number of codes of a narrow type, and the number of codes, from 0 on, that are finite and
 * not negative. */
uint32_t reference_codes(tsr_dtype dtype);
uint32_t reference_finite(tsr_dtype dtype);

/** The value of a code: exact. */
double reference_decode(tsr_dtype dtype, uint32_t code);

/** The code nearest to a value, the even one in a tie, by bisection over all values of the type. */
uint32_t reference_encode(tsr_dtype dtype, double value);

/** Read and write an element of any floating-point dtype; f32 rounds as a cast does, NaN is written
 * as the canonical NaN. */
double reference_load(tsr_dtype dtype, const void *from);
void reference_store(tsr_dtype dtype, double value, void *to);

/** Writes to `out` the reduction of the `count` elements at `terms`, divided by `divisor`. All are
 * of the dtype. */
void reference_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const void *const *terms, int count,
                      void *out);

#endif
