/** The BLAS libraries by which a layer multiplies on the host: those that this rank's context
 * opened or, later, those that all ranks have. */
#ifndef TSR_OPS_BLAS_CHOICE_H
#define TSR_OPS_BLAS_CHOICE_H

#include <tessera/sys/blas.h>

#include <stdbool.h>

/** The most providers that a context has. */
#define TSR_MOST_PROVIDERS 8

/** The context's providers, or those that ranks agreed on, the best first. A plain value, valid as
 * long as the context. */
typedef struct tsr_choice {
    const tsr_blas_provider *by[TSR_MOST_PROVIDERS];
    int count;
    const char *kernels; /**< Tessera's own kernels (rows.h): "portable", "avx2" or "avx512" */
    bool held;           /**< tsr_choice_hold() was called, so products may be computed */
} tsr_choice;

/** The first provider with a product for operands of `dtype`; NULL: there is none. */
const tsr_blas_provider *tsr_choice_find(const tsr_choice *choice, tsr_dtype dtype);

/** Holds all providers, so that each computes a product by one thread; before any product. */
void tsr_choice_hold(tsr_choice *choice);

/** Undoes tsr_choice_hold(); a choice that is not held is fine. */
void tsr_choice_release(tsr_choice *choice);

/** Called before each product, on its thread, while the choice is held; returns the token for
 * tsr_provider_end(). */
static inline int tsr_provider_begin(const tsr_blas_provider *provider)
{
    return provider->table->begin ? provider->table->begin(provider->self) : 0;
}

/** Called after each product, on its thread; `token` is what tsr_provider_begin() returned. */
static inline void tsr_provider_end(const tsr_blas_provider *provider, int token)
{
    if (provider->table->end)
        provider->table->end(provider->self, token);
}

/** A hash of name, version and core: ranks with equal identities compute products with the same
 * bits. 0 < identity <= 2^62. */
int64_t tsr_provider_identity(const tsr_blas_provider *provider);

#endif
