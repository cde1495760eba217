#include "ops/blas/choice.h"

tsr_blas_multiply *tsr_blas_find_gemm(const tsr_blas_table *table, tsr_dtype dtype)
{
    const struct {
        tsr_dtype dtype;
        tsr_blas_multiply *gemm;
    } rows[] = {{TSR_F32, table->gemm_f32},
                {TSR_F64, table->gemm_f64},
                {TSR_BF16, table->gemm_bf16},
                {TSR_F16, table->gemm_f16}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].dtype == dtype)
            return rows[i].gemm;
    return NULL;
}

const tsr_blas_provider *tsr_choice_find(const tsr_choice *choice, tsr_dtype dtype)
{
    for (int i = 0; i < choice->count; i++)
        if (tsr_blas_find_gemm(choice->by[i]->table, dtype))
            return choice->by[i];
    return NULL;
}

void tsr_choice_hold(tsr_choice *choice)
{
    choice->held = true;
    for (int i = 0; i < choice->count; i++)
        if (choice->by[i]->table->hold)
            choice->by[i]->table->hold(choice->by[i]->self);
}

void tsr_choice_release(tsr_choice *choice)
{
    for (int i = 0; choice->held && i < choice->count; i++)
        if (choice->by[i]->table->release)
            choice->by[i]->table->release(choice->by[i]->self);
    choice->held = false;
}

/* FNV-1a of a text with its NUL, which separates it from the next text. */
static uint64_t hash(uint64_t value, const char *text)
{
    do
        value = (value ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    while (*text++);
    return value;
}

int64_t tsr_provider_identity(const tsr_blas_provider *provider)
{
    const tsr_blas_table *t = provider->table;
    const uint64_t value = hash(hash(hash(UINT64_C(0xcbf29ce484222325), t->name), t->version), t->core);
    return (int64_t)((value ^ value >> 32) & ((UINT64_C(1) << 62) - 1)) + 1;
}
