/** By what a layer multiplies on the host: the BLAS libraries that this rank's context opened, and of those what all ranks have. */
#ifndef TSR_OPS_BLAS_CHOICE_H
#define TSR_OPS_BLAS_CHOICE_H

#include <stdbool.h>
#include <tessera/sys/blas.h>

/** So many providers a context has at most. */
#define TSR_MOST_PROVIDERS 8

/** The context's providers, or what ranks agreed on, the best first. Plain; valid as long as the context. */
typedef struct tsr_choice {
    const tsr_blas_provider *by[TSR_MOST_PROVIDERS];
    int count;
    const char *kernels; /**< of the kernels of ours: "portable", "avx2", "avx512" */
    bool held;           /**< products may be computed */
} tsr_choice;

/** The first that multiplies operands of `dtype`, or NULL. */
const tsr_blas_provider *tsr_choice_find(const tsr_choice *choice, tsr_dtype dtype);

/** Around everything that multiplies: one thread a product. To release what is not held is fine. */
void tsr_choice_hold(tsr_choice *choice);
void tsr_choice_release(tsr_choice *choice);

/** Around every product, by a holder; `token` is what begin returned. */
static inline int tsr_provider_begin(const tsr_blas_provider *provider)
{
    return provider->table->begin ? provider->table->begin(provider->self) : 0;
}

static inline void tsr_provider_end(const tsr_blas_provider *provider, int token)
{
    if (provider->table->end)
        provider->table->end(provider->self, token);
}

/** Equal on ranks exactly where products have the same bits, as far as names, versions and cores tell: 0 < identity < 2^62 + 1. */
int64_t tsr_provider_identity(const tsr_blas_provider *provider);

#endif
