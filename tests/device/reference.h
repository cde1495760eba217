/** Numbers the slow way: narrow floats by their definition and by search, reductions one element at a time. */
#ifndef TESTS_DEVICE_REFERENCE_H
#define TESTS_DEVICE_REFERENCE_H

#include <stdbool.h>
#include <stdint.h>
#include <tessera/dtype.h>

/** The narrow floating types. */
extern const tsr_dtype reference_narrow[4];

/** How many codes a narrow type has, and how many of them, from 0 on, are finite and not negative. */
uint32_t reference_codes(tsr_dtype dtype);
uint32_t reference_finite(tsr_dtype dtype);

/** The value of a code: exact. */
double reference_decode(tsr_dtype dtype, uint32_t code);

/** The code next to a value, to even in a tie: found by bisection over all the type's values. */
uint32_t reference_encode(tsr_dtype dtype, double value);

/** One element of any floating dtype from and to memory; f32 rounds as a cast does. NaN is written as the canonical one. */
double reference_load(tsr_dtype dtype, const void *from);
void reference_store(tsr_dtype dtype, double value, void *to);

/** Element `out` = op over the `count` elements at `terms`, then divided. All have the dtype. */
void reference_reduce(tsr_dtype dtype, tsr_reduce_op op, int64_t divisor, const void *const *terms, int count, void *out);

#endif
