/* Products of many rows of narrow operands, by f32 products of panels: small integers are exact,
 * and other numbers are rounded once. */
#include "ops/widened.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F16, TSR_BF16};

enum { DTYPES = 3, GAP = 3 };

/* Multiplies f32 matrices, with one sum for each result, in ascending order. */
typedef struct multiplier {
    int *parts;   /* counts products */
    int fails_at; /* the product that fails; 0: none */
} multiplier;

static tsr_status multiply(const void *self, const tsr_gemm *g)
{
    const multiplier *const m = self;
    const float *const a = g->a, *const b = g->b;
    if (++*m->parts == m->fails_at)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "product %d fails", m->fails_at);
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float *const c = (float *)g->c + i * g->ldc + j, sum = 0;
            for (int64_t t = 0; t < g->k; t++)
                sum +=
                    a[g->trans_a ? t * g->lda + i : i * g->lda + t] * b[g->trans_b ? j * g->ldb + t : t * g->ldb + j];
            *c = (float)g->alpha * sum + (g->beta == 0 ? 0 : (float)g->beta * *c);
        }
    return TSR_OK;
}

static void convert(void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count)
{
    void *self;
    assert_int_equal(
        tsr_device_driver_table(NULL, &self)->convert(self, 0, dst, dst_dtype, src, src_dtype, count, NULL), TSR_OK);
}

/* An operand: what it holds, in its dtype and in f32. */
typedef struct operand {
    void *own;
    float *wide;
    int64_t count;
} operand;

static operand make(tsr_dtype dtype, int64_t count, int seed, float unit)
{
    operand o = {malloc((size_t)count * sizeof(float)), malloc((size_t)count * sizeof(float)), count};
    assert_non_null(o.own);
    assert_non_null(o.wide);
    for (int64_t i = 0; i < count; i++)
        o.wide[i] = (float)((i * 7 + seed) % 5 - 2) * unit;
    convert(o.own, dtype, o.wide, TSR_F32, count);
    convert(o.wide, TSR_F32, o.own, dtype, count);
    return o;
}

static void finish(operand *o)
{
    free(o->own);
    free(o->wide);
}

/* Runs `shape` over panels, and whole in f32; the results must be equal once they are rounded. */
static void check(const tsr_gemm *shape, float unit, int expected_parts)
{
    tsr_gemm g = *shape, whole = {TSR_GEMM_OF(TSR_F32)};
    g.size = sizeof g;
    g.lda = (g.trans_a ? g.m : g.k) + GAP, g.ldb = (g.trans_b ? g.k : g.n) + GAP, g.ldc = g.n + GAP;
    operand a = make(g.a_dtype, (g.trans_a ? g.k : g.m) * g.lda, 1, unit),
            b = make(g.b_dtype, (g.trans_b ? g.n : g.k) * g.ldb, 2, unit), c = make(g.c_dtype, g.m * g.ldc, 3, 1),
            bias = make(g.bias_dtype, g.n, 4, 1);
    whole = g;
    whole.a = a.wide, whole.b = b.wide, whole.c = c.wide;
    g.a = a.own, g.b = b.own, g.c = c.own;
    assert_true(tsr_widened_takes(&g));
    g.workspace_bytes = tsr_widened_workspace(&g);
    g.workspace = aligned_alloc(64, g.workspace_bytes + 64);
    assert_non_null(g.workspace);
    if (g.bias)
        g.bias = bias.own;
    int parts = 0;
    const multiplier counting = {.parts = &parts};
    assert_int_equal(tsr_widened_run(multiply, &counting, &g), TSR_OK);
    assert_int_equal(parts, expected_parts);
    assert_int_equal(multiply(&counting, &whole), TSR_OK);
    for (int64_t i = 0; i < g.m && g.bias; i++)
        for (int64_t j = 0; j < g.n; j++)
            c.wide[i * g.ldc + j] += bias.wide[j];
    operand rounded = make(g.c_dtype, c.count, 0, 1);
    convert(rounded.own, g.c_dtype, c.wide, TSR_F32, c.count);
    if (memcmp(rounded.own, c.own, (size_t)c.count * tsr_dtype_bytes(g.c_dtype)) != 0)
        fail_msg("%s x %s to %s, m %lld n %lld k %lld, trans %d %d, beta %g bias %d", tsr_dtype_name(g.a_dtype),
                 tsr_dtype_name(g.b_dtype), tsr_dtype_name(g.c_dtype), (long long)g.m, (long long)g.n, (long long)g.k,
                 g.trans_a, g.trans_b, g.beta, g.bias != NULL);
    free(g.workspace);
    operand *const all[] = {&a, &b, &c, &bias, &rounded};
    for (int i = 0; i < 5; i++)
        finish(all[i]);
}

static void every_mixture_is_the_product_in_f32_rounded_once(void **state)
{
    (void)state;
    for (int number = 8; number < DTYPES * DTYPES * DTYPES * 8; number++) {
        const int dtype = number / 8;
        const tsr_gemm g = {.a_dtype = dtypes[dtype % DTYPES],
                            .b_dtype = dtypes[dtype / DTYPES % DTYPES],
                            .c_dtype = dtypes[dtype / DTYPES / DTYPES],
                            .bias_dtype = dtypes[number % DTYPES],
                            .trans_a = number & 1,
                            .trans_b = number >> 1 & 1,
                            .m = 9,
                            .n = 21,
                            .k = 30,
                            .alpha = 1,
                            .beta = number & 4 ? 0 : 1,
                            .bias = number & 4 ? &dtypes : NULL};
        /* 1 and thirds: sums of many bits, but of few terms, which are exact in f32. */
        check(&g, number % 16 < 8 ? 1 : 1.34375f, 1);
    }
}

/* Sizes that do not fit into one panel of 512, or of less where rows are long; operands that are
 * f32 are not divided.
 */
static void panels_make_the_same_product(void **state)
{
    static const struct {
        int64_t m, n, k;
        tsr_dtype a, b, c;
        int parts;
    } rows[] = {
        {3, 1100, 20, TSR_F32, TSR_BF16, TSR_F32, 3},  {1100, 3, 20, TSR_BF16, TSR_F32, TSR_F32, 3},
        {600, 700, 5, TSR_F16, TSR_F16, TSR_F16, 4},   {600, 700, 5, TSR_BF16, TSR_BF16, TSR_F32, 4},
        {600, 700, 5, TSR_F32, TSR_F32, TSR_BF16, 4},  {2, 150, 16384, TSR_F32, TSR_BF16, TSR_F32, 3},
        {3, 300, 8192, TSR_F16, TSR_BF16, TSR_F32, 3},
    };
    (void)state;
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
        for (int trans = 0; trans < 4; trans++) {
            const tsr_gemm g = {.a_dtype = rows[i].a,
                                .b_dtype = rows[i].b,
                                .c_dtype = rows[i].c,
                                .bias_dtype = TSR_F32,
                                .trans_a = trans & 1,
                                .trans_b = trans >> 1,
                                .m = rows[i].m,
                                .n = rows[i].n,
                                .k = rows[i].k,
                                .alpha = 1,
                                .bias = &dtypes};
            check(&g, 1, rows[i].parts);
        }
}

static void a_product_that_fails_is_the_last(void **state)
{
    const uint16_t a[8 * 8] = {0}, b[8 * 600] = {0};
    float c[8 * 600];
    int parts = 0;
    tsr_gemm g = {sizeof g, TSR_BF16, TSR_F16,    TSR_F32, TSR_F32, .m = 8,
                  .n = 600, .k = 8,   .alpha = 1, .a = a,  .b = b,  .c = c};
    (void)state;
    g.lda = g.k, g.ldb = g.ldc = g.n;
    g.workspace_bytes = tsr_widened_workspace(&g);
    g.workspace = aligned_alloc(64, g.workspace_bytes);
    assert_non_null(g.workspace);
    assert_int_equal(tsr_widened_run(multiply, &(multiplier){&parts, 1}, &g), TSR_ERROR_UNAVAILABLE);
    assert_int_equal(parts, 1);
    free(g.workspace);
}

static void products_of_f32_and_f64_are_not_taken(void **state)
{
    const tsr_gemm f32 = {TSR_GEMM_OF(TSR_F32)}, f64 = {TSR_GEMM_OF(TSR_F64)}, whole = {TSR_GEMM_OF(TSR_I32)};
    (void)state;
    assert_false(tsr_widened_takes(&f32));
    assert_false(tsr_widened_takes(&f64));
    assert_false(tsr_widened_takes(&whole));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_mixture_is_the_product_in_f32_rounded_once),
        cmocka_unit_test(panels_make_the_same_product),
        cmocka_unit_test(a_product_that_fails_is_the_last),
        cmocka_unit_test(products_of_f32_and_f64_are_not_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
