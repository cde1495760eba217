/* Matrix products, one element at a time: where a device has nothing better, layers still run. */
#include "queue.h"

#include <tessera/sys/status.h>

static double load(tsr_dtype dtype, const void *from, int64_t at)
{
    return dtype == TSR_F64 ? ((const double *)from)[at] : (double)((const float *)from)[at];
}

static void store(tsr_dtype dtype, void *to, int64_t at, double value)
{
    if (dtype == TSR_F64)
        ((double *)to)[at] = value;
    else
        ((float *)to)[at] = (float)value;
}

static double sum_terms(const tsr_gemm *g, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t p = 0; p < g->k; p++)
        sum += load(g->a_dtype, g->a, g->trans_a ? p * g->lda + i : i * g->lda + p) *
               load(g->b_dtype, g->b, g->trans_b ? j * g->ldb + p : p * g->ldb + j);
    return sum;
}

/* Where beta is 0, c is not read: it may hold NaNs. */
static tsr_status run_product(queue_machine *machine, void *arguments)
{
    const tsr_gemm *const g = arguments;
    (void)machine;
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double value = g->alpha * sum_terms(g, i, j);
            if (g->beta != 0)
                value += g->beta * load(g->c_dtype, g->c, i * g->ldc + j);
            if (g->bias)
                value += load(g->bias_dtype, g->bias, j);
            store(g->c_dtype, g->c, i * g->ldc + j, value);
        }
    return TSR_OK;
}

static tsr_status check_dtypes(const tsr_gemm *g)
{
    const bool known = g->c_dtype == TSR_F32 || g->c_dtype == TSR_F64;
    if (known && g->a_dtype == g->c_dtype && g->b_dtype == g->c_dtype && (!g->bias || g->bias_dtype == g->c_dtype))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "queue: no product of %s and %s to %s; it multiplies f32 and f64",
                          tsr_dtype_name(g->a_dtype), tsr_dtype_name(g->b_dtype), tsr_dtype_name(g->c_dtype));
}

static tsr_status enter_operands(const queue_machine *machine, tsr_gemm *g)
{
    void *a = NULL, *b = NULL, *bias = NULL;
    if (g->k > 0) {
        TSR_TRY(queue_enter(machine, g->a, &a));
        TSR_TRY(queue_enter(machine, g->b, &b));
    }
    if (g->bias)
        TSR_TRY(queue_enter(machine, g->bias, &bias));
    g->a = a;
    g->b = b;
    g->bias = bias;
    return queue_enter(machine, g->c, &g->c);
}

tsr_status queue_gemm(void *self, int index, const tsr_gemm *given, tsr_stream stream)
{
    queue_machine *const machine = self;
    tsr_gemm product = *given;
    TSR_TRY(check_dtypes(given));
    if (given->m == 0 || given->n == 0)
        return TSR_OK;
    TSR_TRY(enter_operands(machine, &product));
    queue_command *const command = queue_prepare(machine, sizeof product, run_product);
    if (!command)
        return queue_say_full();
    *(tsr_gemm *)queue_arguments(command) = product;
    queue_enqueue(machine, queue_find(machine, index, stream), command);
    return TSR_OK;
}
