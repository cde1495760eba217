/** Layouts and whole tensors of tests: made, read and compared. */
#ifndef TESTS_OPS_WHOLES_H
#define TESTS_OPS_WHOLES_H

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <stdbool.h>

/** Distributes values that all ranks have, converted to `dtype`. */
tsr_status support_make(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                        const double *values, tsr_dtensor **out);

/** The layout of f32 that a text such as "4x6 S(0)" tells; fails the test if there is none. */
tsr_layout *support_layout(const tsr_mesh *mesh, const char *text);

/** Distributes values of `dtype` that all ranks have. */
tsr_status support_distribute(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim,
                              const int64_t *shape, const void *values, tsr_dtensor **out);

/** Distributes f32 that count from `first`; at most 1024 elements. */
tsr_status support_make_numbered(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape,
                                 int first, tsr_dtensor **out);

/** Copies `bytes` of the whole tensor, and destroys `x`. */
tsr_status support_take(tsr_dtensor *x, void *to, size_t bytes);

/** Reads the whole tensor as f64. */
tsr_status support_read(const tsr_dtensor *x, double *values);

/** A gradient of 1 for each of up to 8 elements of a result. */
tsr_status support_make_ones(const tsr_dtensor *result, tsr_dtensor **out);

/** The ranks of a mesh such as "2x3". */
int support_count_ranks(const char *mesh);

/** A number from -6 to 6 that depends on i alone. */
double support_draw(int64_t i);

/** Ends the rank's program, with a sentence as printf() makes it, unless `held`. */
#define EXPECT(held, ...)                                                                                              \
    do {                                                                                                               \
        if (!(held))                                                                                                   \
            return tsr_status_set(TSR_ERROR_INTERNAL, __VA_ARGS__);                                                    \
    } while (0)

/** TSR_ERROR_INTERNAL, with the name, place and values of an element, unless `held`. */
tsr_status support_expect_held(bool held, const char *what, int64_t at, double got, double wanted);

/** Checks the placements of a dtensor of f32, and its elements as a whole, in row-major order. */
tsr_status support_expect_whole(const char *what, const tsr_dtensor *x, const char *placements, int count,
                                const float *wanted);

/** TSR_ERROR_INTERNAL: `got` differs from `wanted` by more than the tolerance, relative to 1 and
 * the size. */
tsr_status support_expect(const char *what, int64_t at, double got, double wanted, double tolerance);

#endif
