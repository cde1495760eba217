#include "bench/linear/product.h"

tsr_gemm product_make(int trans_a, int trans_b, int64_t m, int64_t n, int64_t k, const local *a, const local *b,
                      const local *c)
{
    return (tsr_gemm){.size = sizeof(tsr_gemm),
                      .a_dtype = a->tensor.dtype,
                      .b_dtype = b->tensor.dtype,
                      .c_dtype = c->tensor.dtype,
                      .trans_a = trans_a,
                      .trans_b = trans_b,
                      .m = m,
                      .n = n,
                      .k = k,
                      .alpha = 1,
                      .a = a->tensor.data,
                      .b = b->tensor.data,
                      .c = c->tensor.data,
                      .lda = trans_a ? m : k,
                      .ldb = trans_b ? k : n,
                      .ldc = n};
}

static bool is_empty(const tsr_gemm *g)
{
    return g->m == 0 || g->n == 0 || g->k == 0;
}

tsr_status product_measure(const place *p, int rank, const tsr_gemm *product, size_t *most)
{
    size_t bytes = 0;
    void *self;
    const tsr_device_table *const table = place_table(p, rank, &self);
    if (!place_enqueues(p) || is_empty(product) || !table->gemm_workspace)
        return TSR_OK;
    TSR_TRY(table->gemm_workspace(self, place_device(p, rank).index, product, &bytes));
    *most = bytes > *most ? bytes : *most;
    return TSR_OK;
}

tsr_status product_run(const place *p, int rank, const blas *host, const tsr_gemm *product)
{
    const tsr_blas_gemm gemm = {
        product->trans_a, product->trans_b, product->m, product->n,   product->k,   1,           0,
        product->a,       product->b,       product->c, product->lda, product->ldb, product->ldc};
    void *self;
    const tsr_device_table *const table = place_table(p, rank, &self);
    if (is_empty(product))
        return TSR_OK;
    if (place_enqueues(p))
        return table->gemm(self, place_device(p, rank).index, product, place_stream(p, rank));
    return blas_run(host, product->c_dtype, &gemm);
}
