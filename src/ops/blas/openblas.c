/* OpenBLAS as a provider, linked or opened. */
#include "ops/blas/openblas.h"

#include "ops/blas/guard.h"
#include "ops/blas/processor.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>
#include <strings.h>

/* The table's self. */
typedef struct openblas {
    tsr_cblas calls;
    tsr_blas_guard *guard;
} openblas;

static void hold(void *self)
{
    tsr_blas_hold(((openblas *)self)->guard);
}

static void openblas_release(void *self)
{
    tsr_blas_release(((openblas *)self)->guard);
}

static int openblas_begin(void *self)
{
    return tsr_blas_begin(((openblas *)self)->guard);
}

static void openblas_end(void *self, int token)
{
    tsr_blas_end(((openblas *)self)->guard, token);
}

/* The cores of OpenBLAS' builds for x86-64 (cpuid_x86.c, dynamic.c), with the instruction set that
 * their kernels use. */
static const struct {
    const char *core, *kernels;
} cores[] = {
    {"SkylakeX", "avx512"},
    {"Cooperlake", "avx512"},
    {"SapphireRapids", "avx512"},
    {"Haswell", "avx2"},
    {"Zen", "avx2"},
    {"Excavator", "avx2"},
    {"Sandybridge", "portable"},
    {"Bulldozer", "portable"},
    {"Piledriver", "portable"},
    {"Steamroller", "portable"},
    {"Prescott", "portable"},
    {"Core2", "portable"},
    {"Penryn", "portable"},
    {"Dunnington", "portable"},
    {"Nehalem", "portable"},
    {"Atom", "portable"},
    {"Opteron", "portable"},
    {"Opteron_SSE3", "portable"},
    {"Barcelona", "portable"},
    {"Bobcat", "portable"},
    {"Nano", "portable"},
    {"Northwood", "portable"},
    {"Katmai", "portable"},
    {"Coppermine", "portable"},
    {"Banias", "portable"},
    {"Athlon", "portable"},
};

static const char *find_kernels(const char *core)
{
    for (size_t i = 0; i < sizeof cores / sizeof *cores; i++)
        if (strcasecmp(core, cores[i].core) == 0)
            return cores[i].kernels;
    return NULL;
}

/* Warns if OpenBLAS' kernels use less than this processor has. Not for Zen, OpenBLAS' name for all
 * AMD processors with AVX2: some have AVX-512, but many of these run it in halves. */
static void warn_of_core(tsr_library *library)
{
    const char *kernels = library->table.kernels, *best = tsr_processor_best();
    if (!kernels || tsr_kernels_level(kernels) >= tsr_kernels_level(best) || strcasecmp(library->core, "Zen") == 0)
        return;
    snprintf(library->warning, sizeof library->warning,
             "the BLAS %s took its kernels for %s, which leave %s of this processor unused; a newer OpenBLAS may know "
             "the processor "
             "(TSR_BLAS=scipy-openblas), and OPENBLAS_CORETYPE=%s in the environment tells this one",
             library->name, library->core, best, strcmp(best, "avx512") == 0 ? "SkylakeX" : "Haswell");
}

/* `handle` leads to OpenMP's symbols only if this OpenBLAS needs OpenMP. */
static tsr_blas_guard *guard_of(void *handle, const tsr_blas_threads *given)
{
    tsr_blas_threads threads = *given;
    if (!tsr_library_symbol(handle, "omp_get_max_threads", &threads.omp_get) ||
        !tsr_library_symbol(handle, "omp_set_num_threads", &threads.omp_set))
        threads.omp_get = NULL;
    return tsr_blas_guard_of(&threads);
}

tsr_status tsr_openblas_fill(tsr_context *context, void *handle, const char *name, const tsr_openblas_calls *calls,
                             tsr_library *library)
{
    void *memory;
    if (strstr(calls->config(), "USE64BITINT"))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s takes integers of 64 bits; an OpenBLAS with 32 is wanted",
                              library->source);
    tsr_blas_guard *guard = guard_of(handle, &calls->threads);
    if (!guard)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s is one OpenBLAS too many for this process", library->source);
    TSR_TRY(tsr_allocate(context, sizeof(openblas), &memory));
    *(openblas *)memory = (openblas){.calls = calls->products, .guard = guard};
    library->family = memory;
    snprintf(library->name, sizeof library->name, "%s", name);
    snprintf(library->version, sizeof library->version, "%s", calls->config());
    snprintf(library->core, sizeof library->core, "%s", calls->core());
    library->table = (tsr_blas_table){.kernels = find_kernels(library->core),
                                      .hold = hold,
                                      .release = openblas_release,
                                      .begin = openblas_begin,
                                      .end = openblas_end};
    tsr_cblas_fill(&calls->products, &library->table);
    warn_of_core(library);
    return TSR_OK;
}

/* Finds symbol `name` of a library whose symbols all begin with `prefix`. */
static bool find_symbol(void *handle, const char *prefix, const char *name, void *function)
{
    char symbol[64];
    snprintf(symbol, sizeof symbol, "%s%s", prefix, name);
    return tsr_library_symbol(handle, symbol, function);
}

static tsr_status open_prefixed(tsr_context *context, void *handle, const char *name, const char *prefix,
                                tsr_library *library)
{
    tsr_openblas_calls c = {.threads = {.parallel = NULL}};
    const bool whole = find_symbol(handle, prefix, "cblas_sgemm", &c.products.sgemm) &&
                       find_symbol(handle, prefix, "cblas_dgemm", &c.products.dgemm) &&
                       find_symbol(handle, prefix, "cblas_dgemv", &c.products.dgemv) &&
                       find_symbol(handle, prefix, "openblas_get_parallel", &c.threads.parallel) &&
                       find_symbol(handle, prefix, "openblas_get_num_threads", &c.threads.get) &&
                       find_symbol(handle, prefix, "openblas_set_num_threads", &c.threads.set) &&
                       find_symbol(handle, prefix, "openblas_get_config", &c.config) &&
                       find_symbol(handle, prefix, "openblas_get_corename", &c.core);
    if (!whole)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s lacks calls that OpenBLAS has", library->source);
    /* Its bf16 kernels use AMX if the processor's flags list it, even on a system that does not
     * allow it. */
    if (tsr_processor_amx_is_safe())
        find_symbol(handle, prefix, "cblas_sbgemm", &c.products.bf16);
    return tsr_openblas_fill(context, handle, name, &c, library);
}

tsr_status tsr_openblas_open(tsr_context *context, void *handle, tsr_library *library)
{
    return open_prefixed(context, handle, "openblas", "", library);
}

tsr_status tsr_scipy_openblas_open(tsr_context *context, void *handle, tsr_library *library)
{
    return open_prefixed(context, handle, "scipy-openblas", "scipy_", library);
}
