/** Products that are called directly, to compare the layers with: of the BLAS on the host, else of the device's own table. */
#ifndef TESSERA_TOOLS_BENCH_LINEAR_PRODUCT_H
#define TESSERA_TOOLS_BENCH_LINEAR_PRODUCT_H

#include "place/blas.h"
#include "place/local.h"

#include <tessera/sys/device.h>

/** c[m,n] = op(a) op(b), row-major and dense: `trans_a` says that a is stored as [k,m], likewise b. */
tsr_gemm product_make(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const local *a, const local *b, const local *c);

/** Raises `*most` to the bytes of workspace that the product wants on this rank's device. */
tsr_status product_measure(const place *p, int rank, const tsr_gemm *product, size_t *most);

/** Computes it, in the order of the rank's stream, on the host by `host`; one of no elements is done. */
tsr_status product_run(const place *p, int rank, const blas *host, const tsr_gemm *product);

#endif
