#include "ops/eager/typed/typed.h"

#include <tessera/products.h>
#include <tessera/sys/status.h>

/* The most operands of einsum. */
#define EINSUM_OPERANDS 4

BINARY(matmul, a, b)

/* Operands of the row: those that are given, then NULL. */
static tsr_status take_operands(const char *caller, int count, const tsr_dtensor *const *operands,
                                const tsr_dtensor *all[EINSUM_OPERANDS])
{
    TSR_TRY(tsr_settings_check_count(caller, count, EINSUM_OPERANDS, "operands", operands));
    for (int i = 0; i < EINSUM_OPERANDS; i++) {
        all[i] = i < count ? operands[i] : NULL;
        if (i < count && !operands[i])
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: operand %d is NULL", caller, i);
    }
    return TSR_OK;
}

tsr_status tsr_einsum(const char *equation, int count, const tsr_dtensor *const *operands, tsr_dtensor **out)
{
    const tsr_dtensor *all[EINSUM_OPERANDS];
    TSR_TRY(take_operands("tsr_einsum", count, operands, all));
    return tsr_eager_run("tsr_einsum", row_by("einsum", all[0]), EQUATION, all, out);
}

tsr_status tsr_einsum_into(const char *equation, int count, const tsr_dtensor *const *operands, tsr_dtensor *out)
{
    const tsr_dtensor *all[EINSUM_OPERANDS];
    TSR_TRY(take_operands("tsr_einsum_into", count, operands, all));
    return tsr_eager_run_into("tsr_einsum_into", row_by("einsum", all[0]), EQUATION, all, &out);
}

tsr_status tsr_einsum_backward(const char *equation, int count, const tsr_dtensor *const *operands,
                               const tsr_dtensor *dout, tsr_dtensor **const *wanted)
{
    const tsr_dtensor *all[EINSUM_OPERANDS];
    tsr_dtensor **wanted_of_all[EINSUM_OPERANDS] = {NULL};
    TSR_TRY(take_operands("tsr_einsum_backward", count, operands, all));
    if (!wanted)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_einsum_backward: wanted is NULL");
    for (int i = 0; i < count; i++)
        wanted_of_all[i] = wanted[i];
    return tsr_eager_backward("tsr_einsum_backward", row_by("einsum", all[0]), EQUATION, all, dout, wanted_of_all);
}

tsr_status tsr_linear_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *b, tsr_dtensor *y)
{
    return tsr_eager_run_into("tsr_linear_into", row_by("linear", x), NO_ATTRIBUTES, OPERANDS(x, w, b), &y);
}

tsr_status tsr_grouped_matmul(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *sizes, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_grouped_matmul", row_by("grouped_matmul", x), NO_ATTRIBUTES, OPERANDS(x, w, sizes), out);
}

tsr_status tsr_grouped_matmul_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *sizes,
                                   tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_grouped_matmul_into", row_by("grouped_matmul", x), NO_ATTRIBUTES,
                              OPERANDS(x, w, sizes), &out);
}

tsr_status tsr_grouped_matmul_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *sizes,
                                       const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dw)
{
    return tsr_eager_backward("tsr_grouped_matmul_backward", row_by("grouped_matmul", x), NO_ATTRIBUTES,
                              OPERANDS(x, w, sizes), dout, WANTED(dx, dw, NULL));
}

tsr_status tsr_linear_q8(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *scales, const tsr_dtensor *b,
                         tsr_dtensor **out)
{
    return tsr_eager_run("tsr_linear_q8", row_by("linear_q8", x), NO_ATTRIBUTES, OPERANDS(x, w, scales, b), out);
}

tsr_status tsr_linear_q8_into(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *scales,
                              const tsr_dtensor *b, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_linear_q8_into", row_by("linear_q8", x), NO_ATTRIBUTES, OPERANDS(x, w, scales, b),
                              &out);
}

tsr_status tsr_linear_q8_backward(const tsr_dtensor *x, const tsr_dtensor *w, const tsr_dtensor *scales,
                                  const tsr_dtensor *b, const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **db)
{
    return tsr_eager_backward("tsr_linear_q8_backward", row_by("linear_q8", x), NO_ATTRIBUTES,
                              OPERANDS(x, w, scales, b), dout, WANTED(dx, NULL, NULL, db));
}
