/* oneDNN 3, called through its C API: products of f32 by sgemm, and products of bf16 and f16, with
 * sums in f32, by matmul. */
#include "ops/blas/onednn.h"

#include "ops/blas/processor.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>

/* Values of oneDNN's dnnl_types.h and dnnl_common_types.h, which do not change within version 3. */
enum { SUCCESS = 0, ENGINE_CPU = 1, STREAM_IN_ORDER = 1, TYPE_F16 = 1, TYPE_BF16 = 2, TYPE_F32 = 3 };
enum { ARG_A = 1, ARG_C = 17, ARG_B = 33, RUNTIME_SEQUENTIAL = 1, RUNTIME_OPENMP = 2 };
enum { ISA_AVX2 = 0x7, ISA_AVX512 = 0x27, ISA_AVX512_BF16 = 0xe7, ISA_AVX512_FP16 = 0x1ef };

typedef struct version {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime, gpu_runtime;
} version;

typedef struct argument {
    int name;
    void *memory;
} argument;

/* The table's self: oneDNN's functions. Objects of oneDNN are void pointers. */
typedef struct onednn {
    int (*sgemm)(char trans_a, char trans_b, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                 const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
    int (*engine_create)(void **engine, int kind, size_t index);
    int (*engine_destroy)(void *engine);
    int (*stream_create)(void **stream, void *engine, unsigned flags);
    int (*stream_wait)(void *stream);
    int (*stream_destroy)(void *stream);
    int (*desc_create)(void **desc, int ndims, const int64_t *dims, int type, const int64_t *strides);
    int (*desc_destroy)(void *desc);
    int (*post_ops_create)(void **ops);
    int (*post_ops_append_sum)(void *ops, float scale, int32_t zero_point, int type);
    int (*post_ops_destroy)(void *ops);
    int (*attr_create)(void **attr);
    int (*attr_set_post_ops)(void *attr, const void *ops);
    int (*attr_destroy)(void *attr);
    int (*matmul_create)(void **desc, void *engine, const void *a, const void *b, const void *bias, const void *c,
                         const void *attr);
    int (*matmul_destroy)(void *desc);
    int (*primitive_create)(void **primitive, const void *desc);
    int (*primitive_execute)(const void *primitive, void *stream, int count, const argument *arguments);
    int (*primitive_destroy)(void *primitive);
    int (*memory_create)(void **memory, const void *desc, void *engine, void *handle);
    int (*memory_destroy)(void *memory);
    int (*omp_get)(void);
    void (*omp_set)(int);
    void *engine;
} onednn;

/* OpenMP's thread count is one per calling thread; the token is the count to restore. */
static int onednn_begin(void *self)
{
    const onednn *dnn = self;
    const int own = dnn->omp_get ? dnn->omp_get() : 1;
    if (own != 1)
        dnn->omp_set(1);
    return own;
}

static void onednn_end(void *self, int token)
{
    if (token != 1)
        ((const onednn *)self)->omp_set(token);
}

static void hold_nothing(void *self)
{
    (void)self;
}

static tsr_status refuse_code(const char *what, int code)
{
    return tsr_status_set(TSR_ERROR_INTERNAL, "onednn: %s returned %d", what, code);
}

static tsr_status gemm_f32(void *self, const tsr_blas_gemm *g)
{
    const int code = ((const onednn *)self)
                         ->sgemm(g->trans_a ? 'T' : 'N', g->trans_b ? 'T' : 'N', g->m, g->n, g->k, (float)g->alpha,
                                 g->a, g->lda, g->b, g->ldb, (float)g->beta, g->c, g->ldc);
    return code == SUCCESS ? TSR_OK : refuse_code("dnnl_sgemm", code);
}

/* The objects of one product; NULL: not made yet. */
typedef struct narrow {
    void *stream, *descs[3], *post_ops, *attr, *desc, *primitive, *memory[3];
} narrow;

static int describe_narrow(const onednn *dnn, int type, const tsr_blas_gemm *g, narrow *p)
{
    const int64_t dims[3][2] = {{g->m, g->k}, {g->k, g->n}, {g->m, g->n}};
    const int64_t steps[3] = {g->lda, g->ldb, g->ldc};
    const int turned[3] = {g->trans_a, g->trans_b, 0};
    for (int i = 0; i < 3; i++) {
        const int64_t strides[2] = {turned[i] ? 1 : steps[i], turned[i] ? steps[i] : 1};
        const int code = dnn->desc_create(&p->descs[i], 2, dims[i], i < 2 ? type : TYPE_F32, strides);
        if (code != SUCCESS)
            return code;
    }
    int code = dnn->attr_create(&p->attr);
    if (code == SUCCESS && g->beta != 0)
        code = dnn->post_ops_create(&p->post_ops);
    if (code == SUCCESS && g->beta != 0)
        code = dnn->post_ops_append_sum(p->post_ops, (float)g->beta, 0, TYPE_F32);
    if (code == SUCCESS && g->beta != 0)
        code = dnn->attr_set_post_ops(p->attr, p->post_ops);
    return code;
}

static int execute_narrow(const onednn *dnn, const tsr_blas_gemm *g, narrow *p)
{
    void *const data[3] = {(void *)g->a, (void *)g->b, g->c};
    int code = dnn->matmul_create(&p->desc, dnn->engine, p->descs[0], p->descs[1], NULL, p->descs[2], p->attr);
    if (code == SUCCESS)
        code = dnn->primitive_create(&p->primitive, p->desc);
    for (int i = 0; i < 3 && code == SUCCESS; i++)
        code = dnn->memory_create(&p->memory[i], p->descs[i], dnn->engine, data[i]);
    if (code == SUCCESS)
        code = dnn->stream_create(&p->stream, dnn->engine, STREAM_IN_ORDER);
    if (code != SUCCESS)
        return code;
    const argument arguments[3] = {{ARG_A, p->memory[0]}, {ARG_B, p->memory[1]}, {ARG_C, p->memory[2]}};
    code = dnn->primitive_execute(p->primitive, p->stream, 3, arguments);
    return code == SUCCESS ? dnn->stream_wait(p->stream) : code;
}

static void destroy_object(int (*function)(void *), void *object)
{
    if (object)
        function(object);
}

static void clean_up(const onednn *dnn, const narrow *p)
{
    destroy_object(dnn->stream_destroy, p->stream);
    for (int i = 0; i < 3; i++) {
        destroy_object(dnn->memory_destroy, p->memory[i]);
        destroy_object(dnn->desc_destroy, p->descs[i]);
    }
    destroy_object(dnn->primitive_destroy, p->primitive);
    destroy_object(dnn->matmul_destroy, p->desc);
    destroy_object(dnn->attr_destroy, p->attr);
    destroy_object(dnn->post_ops_destroy, p->post_ops);
}

/* Makes all objects for each product: oneDNN caches its latest primitives, so that making one again
 * takes some microseconds. */
static tsr_status multiply_narrow(const onednn *dnn, int type, const tsr_blas_gemm *g)
{
    narrow product = {.stream = NULL};
    int code = describe_narrow(dnn, type, g, &product);
    if (code == SUCCESS)
        code = execute_narrow(dnn, g, &product);
    clean_up(dnn, &product);
    return code == SUCCESS ? TSR_OK : refuse_code("a matmul of narrow operands", code);
}

static tsr_status gemm_bf16(void *self, const tsr_blas_gemm *g)
{
    return multiply_narrow(self, TYPE_BF16, g);
}

static tsr_status gemm_f16(void *self, const tsr_blas_gemm *g)
{
    return multiply_narrow(self, TYPE_F16, g);
}

/* True if a product of one element of this type can be made and run. */
static bool multiplies(const onednn *dnn, int type)
{
    const uint16_t zero = 0;
    float c;
    const tsr_blas_gemm g = {
        .m = 1, .n = 1, .k = 1, .alpha = 1, .a = &zero, .b = &zero, .c = &c, .lda = 1, .ldb = 1, .ldc = 1};
    narrow product = {.stream = NULL};
    const bool made =
        describe_narrow(dnn, type, &g, &product) == SUCCESS && execute_narrow(dnn, &g, &product) == SUCCESS;
    clean_up(dnn, &product);
    return made;
}

static bool find_all(void *handle, onednn *out)
{
    const struct {
        const char *name;
        void *function;
    } wanted[] = {{"dnnl_sgemm", &out->sgemm},
                  {"dnnl_engine_create", &out->engine_create},
                  {"dnnl_engine_destroy", &out->engine_destroy},
                  {"dnnl_stream_create", &out->stream_create},
                  {"dnnl_stream_wait", &out->stream_wait},
                  {"dnnl_stream_destroy", &out->stream_destroy},
                  {"dnnl_memory_desc_create_with_strides", &out->desc_create},
                  {"dnnl_memory_desc_destroy", &out->desc_destroy},
                  {"dnnl_post_ops_create", &out->post_ops_create},
                  {"dnnl_post_ops_append_sum", &out->post_ops_append_sum},
                  {"dnnl_post_ops_destroy", &out->post_ops_destroy},
                  {"dnnl_primitive_attr_create", &out->attr_create},
                  {"dnnl_primitive_attr_set_post_ops", &out->attr_set_post_ops},
                  {"dnnl_primitive_attr_destroy", &out->attr_destroy},
                  {"dnnl_matmul_primitive_desc_create", &out->matmul_create},
                  {"dnnl_primitive_desc_destroy", &out->matmul_destroy},
                  {"dnnl_primitive_create", &out->primitive_create},
                  {"dnnl_primitive_execute", &out->primitive_execute},
                  {"dnnl_primitive_destroy", &out->primitive_destroy},
                  {"dnnl_memory_create", &out->memory_create},
                  {"dnnl_memory_destroy", &out->memory_destroy}};
    for (size_t i = 0; i < sizeof wanted / sizeof *wanted; i++)
        if (!tsr_library_symbol(handle, wanted[i].name, wanted[i].function))
            return false;
    return true;
}

/* Returns the instruction set that oneDNN uses, 0 if it does not tell. oneDNN trusts the
 * processor's flags, so before its first product it is told if AMX must not be used. */
static int cap_isa(void *handle)
{
    int (*set)(int), (*get)(void);
    if (!tsr_processor_amx_is_safe() && tsr_library_symbol(handle, "dnnl_set_max_cpu_isa", &set))
        set(ISA_AVX512_FP16);
    return tsr_library_symbol(handle, "dnnl_get_effective_cpu_isa", &get) ? get() : 0;
}

/* Describes the instruction set by oneDNN's names without their prefixes. */
static void describe_isa(int isa, tsr_library *library)
{
    static const struct {
        int isa;
        const char *core, *kernels;
    } rows[] = {{ISA_AVX512_FP16 + 1, "avx512_core_amx", "avx512"},
                {ISA_AVX512_FP16, "avx512_core_fp16", "avx512"},
                {ISA_AVX512_BF16, "avx512_core_bf16", "avx512"},
                {ISA_AVX512, "avx512_core", "avx512"},
                {ISA_AVX2, "avx2", "avx2"},
                {0, "generic", NULL}};
    size_t row = 0;
    while (isa < rows[row].isa)
        row++;
    snprintf(library->core, sizeof library->core, "%s", rows[row].core);
    library->table.kernels = rows[row].kernels;
}

static tsr_status check_version(const tsr_library *library, void *handle, const version **out)
{
    const version *(*get)(void);
    if (!tsr_library_symbol(handle, "dnnl_version", &get))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s has no dnnl_version()", library->source);
    const version *found = *out = get();
    if (found->major < 3)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s is oneDNN %d.%d; version 3 is wanted", library->source,
                              found->major, found->minor);
    if (found->cpu_runtime != RUNTIME_SEQUENTIAL && found->cpu_runtime != RUNTIME_OPENMP)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE,
                              "%s is a oneDNN that cannot be kept to one thread per product; a build for OpenMP can",
                              library->source);
    return TSR_OK;
}

static tsr_status fill_library(void *handle, const version *found, onednn *dnn, tsr_library *library)
{
    if (!find_all(handle, dnn))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s lacks calls that oneDNN 3 has", library->source);
    if (found->cpu_runtime == RUNTIME_OPENMP && (!tsr_library_symbol(handle, "omp_get_max_threads", &dnn->omp_get) ||
                                                 !tsr_library_symbol(handle, "omp_set_num_threads", &dnn->omp_set)))
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s is for OpenMP, but its runtime lacks calls", library->source);
    const int isa = cap_isa(handle);
    if (dnn->engine_create(&dnn->engine, ENGINE_CPU, 0) != SUCCESS)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "%s makes no engine for this processor", library->source);
    snprintf(library->name, sizeof library->name, "onednn");
    snprintf(library->version, sizeof library->version, "oneDNN %d.%d.%d %.40s", found->major, found->minor,
             found->patch, found->hash);
    library->table = (tsr_blas_table){
        .hold = hold_nothing, .release = hold_nothing, .begin = onednn_begin, .end = onednn_end, .gemm_f32 = gemm_f32};
    describe_isa(isa, library);
    /* For some processors oneDNN has no kernels for narrow operands, or only slow reference
     * kernels. */
    library->table.gemm_bf16 = isa >= ISA_AVX512 && multiplies(dnn, TYPE_BF16) ? gemm_bf16 : NULL;
    library->table.gemm_f16 = isa >= ISA_AVX512 && multiplies(dnn, TYPE_F16) ? gemm_f16 : NULL;
    return TSR_OK;
}

tsr_status tsr_onednn_open(tsr_context *context, void *handle, tsr_library *library)
{
    const version *found = NULL;
    void *memory;
    TSR_TRY(check_version(library, handle, &found));
    TSR_TRY(tsr_allocate(context, sizeof(onednn), &memory));
    library->family = memory;
    *(onednn *)memory = (onednn){.engine = NULL};
    return fill_library(handle, found, memory, library);
}
