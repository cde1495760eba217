/* Intel's MKL, called through its single dynamic library, libmkl_rt, and its CBLAS. */
#include "ops/blas/mkl.h"

#include "ops/blas/cblas.h"
#include "ops/blas/processor.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Values of MKL's mkl_service.h. */
enum { INTERFACE_LP64 = 0, THREADING_SEQUENTIAL = 1, ENABLE_AVX512 = 4 };

typedef struct mkl_version {
    int major, minor, update;
    char *product_status, *build, *processor, *platform;
} mkl_version;

/* The table's self. */
typedef struct mkl {
    tsr_cblas calls;
    /* sets the calling thread's count and returns the old one; 0: the process's count is used */
    int (*set_threads)(int);
} mkl;

static void hold_nothing(void *self)
{
    (void)self;
}

static int mkl_begin(void *self)
{
    return ((const mkl *)self)->set_threads(1);
}

static void mkl_end(void *self, int token)
{
    if (token != 1)
        ((const mkl *)self)->set_threads(token);
}

static bool find_all(void *handle, mkl *out)
{
    return tsr_library_symbol(handle, "cblas_sgemm", &out->calls.sgemm) &&
           tsr_library_symbol(handle, "cblas_dgemm", &out->calls.dgemm) &&
           tsr_library_symbol(handle, "cblas_dgemv", &out->calls.dgemv) &&
           tsr_library_symbol(handle, "MKL_Set_Num_Threads_Local", &out->set_threads);
}

/* Called before all other MKL functions: 32-bit integers, no threads of MKL's own, and no AMX if
 * that would end the process. If the program has used MKL before, these calls change nothing. */
static void settle_mkl(void *handle)
{
    int (*set)(int);
    if (!tsr_processor_amx_is_safe() && tsr_library_symbol(handle, "MKL_Enable_Instructions", &set))
        set(ENABLE_AVX512);
    if (tsr_library_symbol(handle, "MKL_Set_Interface_Layer", &set))
        set(INTERFACE_LP64);
    if (tsr_library_symbol(handle, "MKL_Set_Threading_Layer", &set))
        set(THREADING_SEQUENTIAL);
}

/* MKL describes its kernels by a sentence about their processors; the first row whose words occur
 * in it counts. */
static const struct {
    const char *words, *core, *kernels;
} cores[] = {
    {"512", "AVX-512", "avx512"}, {"AVX2", "AVX2", "avx2"}, {"Extensions 2", "AVX2", "avx2"}, {"", "x86-64", NULL}};

static void describe_library(const mkl_version *found, tsr_library *library)
{
    const char *words = found->processor ? found->processor : "";
    size_t row = 0;
    while (!strstr(words, cores[row].words))
        row++;
    snprintf(library->name, sizeof library->name, "mkl");
    snprintf(library->version, sizeof library->version, "MKL %d.%d.%d %.20s, %.180s", found->major, found->minor,
             found->update, found->build ? found->build : "", words);
    snprintf(library->core, sizeof library->core, "%s", cores[row].core);
    library->table.kernels = cores[row].kernels;
}

tsr_status tsr_mkl_open(tsr_context *context, void *handle, tsr_library *library)
{
    mkl_version found = {0};
    void (*get_version)(mkl_version *);
    void *memory;
    TSR_TRY(tsr_allocate(context, sizeof(mkl), &memory));
    mkl *calls = library->family = memory;
    *calls = (mkl){.set_threads = NULL};
    if (!find_all(handle, calls) || !tsr_library_symbol(handle, "MKL_Get_Version", &get_version))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s lacks calls that MKL has", library->source);
    settle_mkl(handle);
    tsr_library_symbol(handle, "cblas_gemm_bf16bf16f32", &calls->calls.bf16);
    tsr_library_symbol(handle, "cblas_gemm_f16f16f32", &calls->calls.f16);
    get_version(&found);
    library->table =
        (tsr_blas_table){.hold = hold_nothing, .release = hold_nothing, .begin = mkl_begin, .end = mkl_end};
    tsr_cblas_fill(&calls->calls, &library->table);
    describe_library(&found, library);
    return TSR_OK;
}
