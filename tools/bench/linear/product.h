/** Products that are called directly, to compare the layers with: by the BLAS on the host, by the
 * device's table on GPUs. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_PRODUCT_H
#define TESSERA_TOOLS_BENCH_LINEAR_PRODUCT_H

#include "place/blas.h"
#include "place/local.h"

#include <tessera/sys/device.h>

/** The product c[m,n] = op(a) op(b) of dense row-major matrices: a is stored as [m,k], or [k,m] if
 * `trans_a`; b as [k,n], or [n,k] if `trans_b`. */
tsr_gemm product_make(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const local *a, const local *b,
                      const local *c);

/** Raises `*most` to the bytes of workspace that the product needs on the rank's device. */
tsr_status product_measure(const place *p, int rank, const tsr_gemm *product, size_t *most);

/** Computes the product: on the host by `host`, on GPUs in the order of the rank's stream. A
 * product of no elements does nothing. */
tsr_status product_run(const place *p, int rank, const blas *host, const tsr_gemm *product);

#endif
