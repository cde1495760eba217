/** The BLAS libraries that layers multiply with: the tool reports them, and calls them itself to
 * compare the layers with. */
#ifndef TESSERA_TOOLS_PLACE_BLAS_H
#define TESSERA_TOOLS_PLACE_BLAS_H

#include <tessera/comm.h>
#include <tessera/sys/blas.h>

#include <stddef.h>
#include <stdint.h>

/** Bytes of a description in words, and an upper bound of the providers of a context. */
enum { BLAS_TEXT_BYTES = 512, BLAS_MOST = 8 };

/** The providers of a context, and the speed of each on one thread. */
typedef struct blas_facts {
    char text[BLAS_TEXT_BYTES];  /**< the first provider in words; "none" in a build without BLAS; else the reason why
                                    there is no provider */
    const tsr_blas_provider *by; /**< `count` providers; the context's */
    int count;
    double of_machine[BLAS_MOST]; /**< of each: its rate over peak_flops_measure(); 0 if unknown */
} blas_facts;

/** Opens and measures the providers, in some tens of milliseconds each. Returns TSR_ERROR_MEMORY or
 * TSR_OK; any other reason why there is no provider is in out->text. */
tsr_status blas_gather(tsr_context *context, blas_facts *out);

/** The provider that multiplies one dtype in the layers, held by a rank. */
typedef struct blas {
    const tsr_blas_provider *provider;
} blas;

/** Finds the provider for `dtype` and holds it: until blas_release() it computes a product on one
 * thread. Every rank holds before its first blas_run() and releases at its end.
 * TSR_ERROR_UNSUPPORTED: no provider multiplies the dtype. */
tsr_status blas_hold(tsr_context *context, tsr_dtype dtype, blas *out);
void blas_release(blas *b);

/** Holds b->provider once more, without a search; blas_release() must follow. */
void blas_take(const blas *b);

/** Computes a product. All rank threads may call it at once. A product of no elements returns at
 * once and writes nothing. */
tsr_status blas_run(const blas *b, tsr_dtype dtype, const tsr_blas_gemm *gemm);

#endif
