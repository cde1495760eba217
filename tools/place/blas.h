/** The BLAS libraries that layers multiply by, as the tool tells of them and calls them itself, to compare the layers with. */
#ifndef TESSERA_TOOLS_PLACE_BLAS_H
#define TESSERA_TOOLS_PLACE_BLAS_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/comm.h>
#include <tessera/sys/blas.h>

/** Room for any description, and for what there is. */
enum { BLAS_TEXT_BYTES = 512, BLAS_MOST = 8 };

/** The providers of a context, and what share of the fused multiply-adds that a core can do each of them does: 0 where that is not
 * known. */
typedef struct blas_facts {
    char text[BLAS_TEXT_BYTES]; /**< the first in words; "none" in a build without; why they cannot be had */
    const tsr_blas_provider *by;
    int count;
    double of_machine[BLAS_MOST];
} blas_facts;

/** Opens and measures them: some tens of milliseconds a provider. What it tells is the context's. TSR_ERROR_MEMORY
 * alone is returned; what else keeps them away is told in the facts. */
tsr_status blas_gather(tsr_context *context, blas_facts *out);

/** By which the layers of a rank multiply what is of one dtype, while it is held. */
typedef struct blas {
    const tsr_blas_provider *provider;
} blas;

/** Every rank holds it before its first blas_run(), and gives it back: products are computed by one thread each. TSR_ERROR_UNSUPPORTED: no
 * provider multiplies the dtype. */
tsr_status blas_hold(tsr_context *context, tsr_dtype dtype, blas *out);
void blas_release(blas *b);

/** Holds the one that is there. */
void blas_take(const blas *b);

/** May be called by all rank threads at once. A product of nothing is done. */
tsr_status blas_run(const blas *b, tsr_dtype dtype, const tsr_blas_gemm *gemm);

#endif
