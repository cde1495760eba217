/* Products of few rows, compared byte for byte with plain loops that sum in the order that
 * ops/rows_kernels.h documents. */
#include "ops/rows.h"

#include <tessera/context.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static const char *const names[] = {"portable", "avx2", "avx512"};
static const tsr_dtype dtypes[] = {TSR_F32, TSR_F16, TSR_BF16};

enum { NAMES = 3, DTYPES = 3, MOST_N = 300, MOST_K = 100, GAP = 3 };

static bool runs(const char *name)
{
    const tsr_device_table *table;
    return tsr_device_host_table(name, &table) == TSR_OK;
}

static void convert(void *dst, tsr_dtype dst_dtype, const void *src, tsr_dtype src_dtype, int64_t count)
{
    void *self;
    assert_int_equal(
        tsr_device_driver_table(NULL, &self)->convert(self, 0, dst, dst_dtype, src, src_dtype, count, NULL), TSR_OK);
}

static float load(tsr_dtype dtype, const void *data, int64_t at)
{
    float value;
    convert(&value, TSR_F32, (const char *)data + at * (int64_t)tsr_dtype_bytes(dtype), dtype, 1);
    return value;
}

static void store(tsr_dtype dtype, void *data, int64_t at, float value)
{
    convert((char *)data + at * (int64_t)tsr_dtype_bytes(dtype), dtype, &value, TSR_F32, 1);
}

/* Draws finite numbers of all bits of a dtype, also subnormal ones. */
static void fill(tsr_dtype dtype, void *data, int64_t count, uint64_t seed)
{
    for (int64_t i = 0; i < count; i++) {
        const uint64_t mixed = ((uint64_t)i + seed * UINT64_C(7919) + 1) * UINT64_C(0x9e3779b97f4a7c15);
        const float fraction = (float)((int64_t)(mixed >> 40) - (1 << 23)) * 0x1p-23f;
        store(dtype, data, i, i % 11 == 5 ? fraction * 0x1p-16f : i % 13 == 6 ? 0 : fraction);
    }
}

/* Adds up the 16 sums of terms t mod 16, folded by halves. */
static float plain_dot(const tsr_gemm *g, int64_t i, int64_t j)
{
    float sums[TSR_ROWS_LANES] = {0};
    for (int64_t t = 0; t < g->k; t++)
        sums[t % TSR_ROWS_LANES] += load(g->a_dtype, g->a, g->trans_a ? t * g->lda + i : i * g->lda + t) *
                                    load(g->b_dtype, g->b, j * g->ldb + t);
    for (int half = TSR_ROWS_LANES / 2; half > 0; half /= 2)
        for (int l = 0; l < half; l++)
            sums[l] += sums[l + half];
    return sums[0];
}

/* Adds up all terms in one sum. */
static float plain_terms(const tsr_gemm *g, int64_t i, int64_t j)
{
    float sum = 0;
    for (int64_t t = 0; t < g->k; t++)
        sum += load(g->a_dtype, g->a, g->trans_a ? t * g->lda + i : i * g->lda + t) *
               load(g->b_dtype, g->b, t * g->ldb + j);
    return sum;
}

static void run_plainly(const tsr_gemm *g)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            float sum = g->trans_b ? plain_dot(g, i, j) : plain_terms(g, i, j);
            if (g->alpha != 1)
                sum *= (float)g->alpha;
            if (g->beta != 0)
                sum += (float)g->beta * load(g->c_dtype, g->c, i * g->ldc + j);
            if (g->bias)
                sum += load(g->bias_dtype, g->bias, j);
            store(g->c_dtype, g->c, i * g->ldc + j, sum);
        }
}

/* Memory of each operand, at addresses `shift` bytes off; `before` is what c holds first. */
enum { C_BYTES = TSR_ROWS_MOST * (MOST_N + GAP) * 4 + 64 };

typedef struct memory {
    char a[(TSR_ROWS_MOST + GAP) * (MOST_K + GAP) * 4 + 64], b[(MOST_N + GAP) * (MOST_K + GAP) * 4 + 64];
    char c[C_BYTES], before[C_BYTES], expected[C_BYTES], bias[MOST_N * 4 + 64];
    _Alignas(64) char workspace[TSR_ROWS_MOST * MOST_K * 4 + 64];
} memory;

static memory *acquire(void)
{
    memory *const m = malloc(sizeof *m);
    assert_non_null(m);
    return m;
}

static void check(const tsr_gemm *shape, memory *m, int shift)
{
    tsr_gemm g = *shape;
    g.size = sizeof g;
    g.lda = (g.trans_a ? g.m : g.k) + GAP, g.ldb = (g.trans_b ? g.k : g.n) + GAP, g.ldc = g.n + GAP;
    fill(g.a_dtype, m->a + shift, (g.trans_a ? g.k : g.m) * g.lda, 1);
    fill(g.b_dtype, m->b + shift, (g.trans_b ? g.n : g.k) * g.ldb, 2);
    fill(g.c_dtype, m->expected + shift, g.m * g.ldc, 3);
    fill(g.bias_dtype, m->bias + shift, g.n, 4);
    memcpy(m->before, m->expected, sizeof m->before);
    g.a = m->a + shift, g.b = m->b + shift, g.bias = g.bias ? m->bias + shift : NULL;
    g.workspace = m->workspace, g.workspace_bytes = tsr_rows_workspace(&g);
    assert_true(g.workspace_bytes <= sizeof m->workspace);
    g.c = m->expected + shift;
    run_plainly(&g);
    for (int k = 0; k < NAMES; k++) {
        if (!runs(names[k]))
            continue;
        memcpy(m->c, m->before, sizeof m->c);
        g.c = m->c + shift;
        assert_true(tsr_rows_takes(&g));
        assert_int_equal(tsr_rows_run(tsr_rows_kernels_for(names[k]), &g), TSR_OK);
        const size_t bytes = (size_t)(g.m * g.ldc) * tsr_dtype_bytes(g.c_dtype);
        if (memcmp(m->c + shift, m->expected + shift, bytes) != 0)
            fail_msg("%s: %s x %s to %s, m %lld n %lld k %lld, trans %d %d, alpha %g beta %g bias %d", names[k],
                     tsr_dtype_name(g.a_dtype), tsr_dtype_name(g.b_dtype), tsr_dtype_name(g.c_dtype), (long long)g.m,
                     (long long)g.n, (long long)g.k, g.trans_a, g.trans_b, g.alpha, g.beta, g.bias != NULL);
    }
}

/* Every number of rows, and sizes about the lanes, blocks and panels. */
static void every_shape_has_the_documented_order(void **state)
{
    static const int64_t ns[] = {1, 2, 3, 4, 5, 17, 40, MOST_N}, ks[] = {1, 3, 15, 16, 17, 33, MOST_K};
    memory *const m = acquire();
    (void)state;
    for (int w = 0; w < DTYPES; w++)
        for (int64_t rows = 1; rows <= TSR_ROWS_MOST; rows++)
            for (size_t i = 0; i < sizeof ns / sizeof ns[0]; i++)
                for (size_t j = (size_t)rows % 2; j < sizeof ks / sizeof ks[0]; j += 2)
                    for (int trans_b = 0; trans_b < 2; trans_b++) {
                        const tsr_gemm g = {.a_dtype = TSR_F32,
                                            .b_dtype = dtypes[w],
                                            .c_dtype = TSR_F32,
                                            .bias_dtype = TSR_F32,
                                            .trans_b = trans_b,
                                            .m = rows,
                                            .n = ns[i],
                                            .k = ks[j],
                                            .alpha = 1};
                        check(&g, m, (int)(i % 2) * 2);
                    }
    free(m);
}

/* Epilogues are computed in f32, and the result is rounded once. */
static void every_dtype_and_epilogue_is_rounded_once(void **state)
{
    memory *const m = acquire();
    (void)state;
    for (int number = 0; number < DTYPES * DTYPES * DTYPES * 8; number++) {
        const int dtype = number / 8;
        const tsr_gemm g = {.a_dtype = dtypes[dtype % DTYPES],
                            .b_dtype = dtypes[dtype / DTYPES % DTYPES],
                            .c_dtype = dtypes[dtype / DTYPES / DTYPES],
                            .bias_dtype = dtypes[number % DTYPES],
                            .trans_a = number & 1,
                            .trans_b = number >> 1 & 1,
                            .m = number % TSR_ROWS_MOST + 1,
                            .n = 19,
                            .k = 37,
                            .alpha = number % 3 ? 1 : 0.7,
                            .beta = number & 4 ? 0 : 1.5,
                            .bias = number & 4 ? m->bias : NULL};
        check(&g, m, number % 2 * 2);
    }
    free(m);
}

/* A row alone gives the same result as the same row among others. */
static void a_row_has_the_same_bits_beside_any_others(void **state)
{
    enum { N = 33, K = 50 };
    float x[TSR_ROWS_MOST * K], w[N * K], together[TSR_ROWS_MOST * N], alone[N];
    (void)state;
    fill(TSR_F32, x, TSR_ROWS_MOST * K, 5);
    fill(TSR_F32, w, N * K, 6);
    for (int trans_b = 0; trans_b < 2; trans_b++) {
        const tsr_rows_kernels *const kernels = tsr_rows_kernels_for(tsr_context_kernels(NULL));
        tsr_gemm g = {
            TSR_GEMM_OF(TSR_F32), .trans_b = trans_b, .m = TSR_ROWS_MOST, .n = N, .k = K, .alpha = 1, .a = x, .b = w,
            .c = together};
        g.lda = K, g.ldb = trans_b ? K : N, g.ldc = N;
        assert_int_equal(tsr_rows_run(kernels, &g), TSR_OK);
        g.m = 1, g.c = alone;
        for (int64_t i = 0; i < TSR_ROWS_MOST; i++) {
            g.a = x + i * K;
            assert_int_equal(tsr_rows_run(kernels, &g), TSR_OK);
            assert_memory_equal(alone, together + i * N, sizeof alone);
        }
    }
}

/* Infinities and NaNs of narrow weights become those of f32. */
static void specials_are_widened_too(void **state)
{
    static const uint16_t f16[] = {0x7c00, 0xfc00, 0x7e00, 0x0001, 0x8001, 0x03ff, 0x0400, 0x7bff, 0x8000};
    enum { COUNT = sizeof f16 / sizeof f16[0] };
    const float one = 1;
    (void)state;
    for (int k = 0; k < NAMES; k++) {
        if (!runs(names[k]))
            continue;
        float results[COUNT], expected[COUNT];
        const tsr_gemm g = {.size = sizeof g,
                            .a_dtype = TSR_F32,
                            .b_dtype = TSR_F16,
                            .c_dtype = TSR_F32,
                            .trans_b = 1,
                            .m = 1,
                            .n = COUNT,
                            .k = 1,
                            .alpha = 1,
                            .a = &one,
                            .b = f16,
                            .c = results,
                            .lda = 1,
                            .ldb = 1,
                            .ldc = COUNT};
        assert_int_equal(tsr_rows_run(tsr_rows_kernels_for(names[k]), &g), TSR_OK);
        convert(expected, TSR_F32, f16, TSR_F16, COUNT);
        for (int i = 0; i < COUNT; i++)
            assert_true(results[i] == expected[i] || (results[i] != results[i] && expected[i] != expected[i]));
    }
}

/* Weights of 8 bits have the sums of their values in f32. */
static void weights_of_8_bits_have_the_sums_of_their_values(void **state)
{
    enum { N = 9, K = 3 * TSR_Q8_BLOCK, LD = K + 5 };
    int8_t weights[N * LD];
    float scales[N * 4], values[N * K], x[TSR_ROWS_MOST * K], sums[TSR_ROWS_MOST * N], expected[TSR_ROWS_MOST * N];
    (void)state;
    fill(TSR_F32, x, TSR_ROWS_MOST * K, 7);
    fill(TSR_F32, scales, N * 4, 8);
    for (int i = 0; i < N * LD; i++)
        weights[i] = (int8_t)(i * 37 % 255 - 127);
    for (int i = 0; i < N * K; i++)
        values[i] = (float)weights[i / K * LD + i % K] * scales[i / K * 4 + i % K / TSR_Q8_BLOCK];
    for (int kernels = 0; kernels < NAMES; kernels++) {
        const tsr_rows_kernels *const own = tsr_rows_kernels_for(names[kernels]);
        for (int64_t m = 1; m <= TSR_ROWS_MOST && runs(names[kernels]); m++) {
            tsr_rows_part part = {.w = values, .w_ld = K, .x = x, .x_ld = K, .m = m, .n = N, .k = K, .sums = expected};
            float row[K];
            part.sums_ld = N;
            tsr_rows_kernels_portable.dots[TSR_F32](&part);
            part.w = weights, part.w_ld = LD, part.scales = scales, part.scales_ld = 4, part.sums = sums;
            own->dots_q8(&part);
            assert_memory_equal(sums, expected, (size_t)(m * N) * sizeof(float));
            own->widen_q8(weights + LD, scales + 4, K, row);
            assert_memory_equal(row, values + K, sizeof row);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_shape_has_the_documented_order),
        cmocka_unit_test(every_dtype_and_epilogue_is_rounded_once),
        cmocka_unit_test(a_row_has_the_same_bits_beside_any_others),
        cmocka_unit_test(specials_are_widened_too),
        cmocka_unit_test(weights_of_8_bits_have_the_sums_of_their_values),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
