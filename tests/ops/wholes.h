/** Whole tensors of tests: made, read and compared as f64, whatever dtype they have. */
#ifndef TESTS_OPS_WHOLES_H
#define TESTS_OPS_WHOLES_H

#include <tessera/tessera.h>

/** Distributes values that all ranks have, converted to `dtype`. */
tsr_status support_make(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                        const double *values, tsr_dtensor **out);

/** Reads the whole tensor. */
tsr_status support_read(const tsr_dtensor *x, double *values);

/** A gradient of 1 for each of up to 8 elements of a result. */
tsr_status support_make_ones(const tsr_dtensor *result, tsr_dtensor **out);

/** The ranks of a mesh such as "2x3". */
int support_count_ranks(const char *mesh);

/** A number from -6 to 6 that depends on i alone. */
double support_draw(int64_t i);

/** TSR_ERROR_INTERNAL: `got` differs from `wanted` by more than the tolerance, relative to 1 and
 * the size. */
tsr_status support_expect(const char *what, int64_t at, double got, double wanted, double tolerance);

#endif
