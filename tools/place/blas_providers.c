#include "place/blas.h"
#include "place/peak_flops.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>

static void hold(const tsr_blas_provider *provider)
{
    if (provider->table->hold)
        provider->table->hold(provider->self);
}

static void release(const tsr_blas_provider *provider)
{
    if (provider->table->release)
        provider->table->release(provider->self);
}

tsr_status blas_hold(tsr_context *context, tsr_dtype dtype, blas *out)
{
    const tsr_blas_provider *providers;
    int count;
    out->provider = NULL;
    TSR_TRY(tsr_blas_providers(context, &providers, &count));
    for (int i = 0; i < count && !out->provider; i++)
        if (tsr_blas_find_gemm(providers[i].table, dtype))
            out->provider = &providers[i];
    if (!out->provider)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "no BLAS of the host multiplies %s", tsr_dtype_name(dtype));
    hold(out->provider);
    return TSR_OK;
}

void blas_take(const blas *b)
{
    hold(b->provider);
}

void blas_release(blas *b)
{
    if (b->provider)
        release(b->provider);
    b->provider = NULL;
}

tsr_status blas_run(const blas *b, tsr_dtype dtype, const tsr_blas_gemm *gemm)
{
    const tsr_blas_table *const table = b->provider->table;
    if (gemm->m == 0 || gemm->n == 0 || gemm->k == 0)
        return TSR_OK;
    const int token = table->begin ? table->begin(b->provider->self) : 0;
    const tsr_status status = tsr_blas_find_gemm(table, dtype)(b->provider->self, gemm);
    if (table->end)
        table->end(b->provider->self, token);
    return status;
}

/* The side of a square product, large enough that fixed costs are small, and how often it is
 * timed; the best time counts. */
enum { SIDE = 512, ROUNDS = 6 };

/* Floating-point operations a second of one thread, two for each multiply-add; 0 if the provider
 * has no f32 product. */
static double measure(const tsr_blas_provider *provider, float *matrices)
{
    const tsr_blas_gemm gemm = {.m = SIDE,
                                .n = SIDE,
                                .k = SIDE,
                                .alpha = 1,
                                .a = matrices,
                                .b = matrices,
                                .c = matrices + SIDE * SIDE,
                                .lda = SIDE,
                                .ldb = SIDE,
                                .ldc = SIDE};
    const blas b = {provider};
    double best = 0;
    if (!provider->table->gemm_f32)
        return 0;
    hold(provider);
    for (int i = 0; i < ROUNDS; i++) {
        const double start = thread_seconds();
        const tsr_status status = blas_run(&b, TSR_F32, &gemm);
        const double rate = 2.0 * SIDE * SIDE * SIDE / (thread_seconds() - start);
        best = status == TSR_OK && rate > best ? rate : best;
    }
    release(provider);
    return best;
}

/* The peak is measured again before each provider, since a core's clock changes. */
static tsr_status measure_all(blas_facts *facts)
{
    float *const matrices = malloc(2 * SIDE * SIDE * sizeof *matrices);
    if (!matrices)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for a product to measure");
    for (int i = 0; i < 2 * SIDE * SIDE; i++)
        matrices[i] = (float)(i % 61 - 30) / 64;
    for (int i = 0; i < facts->count; i++) {
        const double peak = peak_flops_measure(), rate = measure(&facts->by[i], matrices);
        facts->of_machine[i] = peak > 0 ? rate / peak : 0;
    }
    free(matrices);
    return TSR_OK;
}

tsr_status blas_gather(tsr_context *context, blas_facts *out)
{
    *out = (blas_facts){.count = 0};
    const tsr_status status = tsr_blas_providers(context, &out->by, &out->count);
    if (status != TSR_OK) {
        snprintf(out->text, sizeof out->text, "%s", tsr_status_message());
        return status == TSR_ERROR_MEMORY ? status : TSR_OK;
    }
    const tsr_blas_table *const table = out->by[0].table;
    snprintf(out->text, sizeof out->text, "%s (%s), kernels for %s", table->name, table->version, table->core);
    return measure_all(out);
}
