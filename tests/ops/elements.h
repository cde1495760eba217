/** Elements of arrays of any dtype that ops take, as f64. */
#ifndef TESTS_OPS_ELEMENTS_H
#define TESTS_OPS_ELEMENTS_H

#include <tessera/tessera.h>

#include <stdbool.h>

/** Bits of a float's mantissa, with the leading 1: 53, 24, 11 or 8. */
int element_precision(tsr_dtype dtype);

/** The f64 value of element i of an array, and the other way; a bool is 0 or 1. */
double element_get(const void *data, tsr_dtype dtype, int64_t i);
void element_set(void *data, tsr_dtype dtype, int64_t i, double value);

/** True if two results are equal up to 128 roundings of 1 and of themselves, for sums whose terms of
 * up to some hundreds cancel; in f64 8192, and in f16 and bf16, of which each op rounds its result
 * alone, 64. NaN equals NaN. */
bool element_near(double x, double y, tsr_dtype dtype);

/** Where element `i`, in row-major order, lies in a tensor of any strides. */
int64_t element_place(const tsr_tensor *tensor, int64_t i);

#endif
