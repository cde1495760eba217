/* Products element by element, with terms in ascending k; narrow types are converted to float. */
#include "async_machine.h"

static double load(const async_machine *machine, tsr_dtype dtype, const void *matrix, int64_t at)
{
    double value = 0;
    machine->host->convert(machine->host_self, 0, &value, TSR_F64,
                           (const char *)matrix + (size_t)at * tsr_dtype_bytes(dtype), dtype, 1, NULL);
    return value;
}

static void store(const async_machine *machine, tsr_dtype dtype, void *matrix, int64_t at, double value)
{
    machine->host->convert(machine->host_self, 0, (char *)matrix + (size_t)at * tsr_dtype_bytes(dtype), dtype, &value,
                           TSR_F64, 1, NULL);
}

static double dot(const async_machine *machine, const tsr_gemm *g, int64_t i, int64_t j)
{
    double sum = 0;
    for (int64_t k = 0; k < g->k; k++) {
        const double a = load(machine, g->a_dtype, g->a, g->trans_a ? k * g->lda + i : i * g->lda + k);
        const double b = load(machine, g->b_dtype, g->b, g->trans_b ? j * g->ldb + k : k * g->ldb + j);
        sum += a * b;
        if (g->c_dtype != TSR_F64)
            sum = (float)sum;
    }
    return sum;
}

void async_multiply(const async_machine *machine, const tsr_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double value = g->alpha * dot(machine, g, i, j);
            if (g->beta != 0)
                value += g->beta * load(machine, g->c_dtype, g->c, i * g->ldc + j);
            if (g->bias)
                value += load(machine, g->bias_dtype, g->bias, j);
            store(machine, g->c_dtype, g->c, i * g->ldc + j, value);
        }
}
