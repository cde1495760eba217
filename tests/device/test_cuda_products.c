/* Products on the emulated machine: what is asked of cuBLASLt, and how often. */
#include "emulated_driver.h"
#include "reference.h"

/* Small integers, so that every product and sum is exact in every type and order. */
static void check_product(const machine *m, tsr_dtype dtype, int trans_a, int trans_b, double alpha, double beta)
{
    enum { M = 5, N = 7, K = 3, GAP = 2 };
    const size_t bytes = tsr_dtype_bytes(dtype);
    unsigned char a[64 * 8], b[64 * 8], c[64 * 8], expected[64 * 8];
    const tsr_gemm gemm = {.dtype = dtype,
                           .trans_a = trans_a,
                           .trans_b = trans_b,
                           .m = M,
                           .n = N,
                           .k = K,
                           .alpha = alpha,
                           .beta = beta,
                           .a = a,
                           .b = b,
                           .c = c,
                           .lda = (trans_a ? M : K) + GAP,
                           .ldb = (trans_b ? K : N) + GAP,
                           .ldc = N + GAP};
    for (size_t i = 0; i < 64; i++) {
        reference_store(dtype, (double)(i * 5 % 7) - 3, a + i * bytes);
        reference_store(dtype, (double)(i * 3 % 5) - 2, b + i * bytes);
        reference_store(dtype, (double)(i % 11), c + i * bytes);
    }
    memcpy(expected, c, sizeof c);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += reference_load(dtype, a + (size_t)(trans_a ? k * gemm.lda + i : i * gemm.lda + k) * bytes) *
                       reference_load(dtype, b + (size_t)(trans_b ? j * gemm.ldb + k : k * gemm.ldb + j) * bytes);
            unsigned char *const to = expected + (size_t)(i * gemm.ldc + j) * bytes;
            reference_store(dtype, alpha * sum + beta * reference_load(dtype, to), to);
        }
    assert_int_equal(m->table->gemm(m->self, 0, &gemm, NULL), TSR_OK);
    if (memcmp(c, expected, 64 * bytes) != 0)
        fail_msg("%s, trans_a %d, trans_b %d, alpha %g, beta %g", tsr_dtype_name(dtype), trans_a, trans_b, alpha, beta);
}

static void products_are_row_major_in_every_type_and_transposition(void **state)
{
    static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};
    static const double scalars[][2] = {{1, 0}, {1, 1}, {2, -1}};
    (void)state;
    const machine m = start();
    for (int d = 0; d < 4; d++)
        for (int trans = 0; trans < 4; trans++)
            for (int s = 0; s < 3; s++)
                check_product(&m, dtypes[d], trans & 1, trans >> 1, scalars[s][0], scalars[s][1]);
    stop(&m);
}

static void an_algorithm_is_looked_for_once_a_problem(void **state)
{
    (void)state;
    const machine m = start();
    const int before = emulated_searches();
    for (int i = 0; i < 5; i++)
        check_product(&m, TSR_F32, 0, 0, 1, 0);
    const int once = emulated_searches();
    /* The operands are on this test's stack, so that their alignment is the same each time. */
    assert_int_equal(once, before + 1);
    check_product(&m, TSR_F32, 0, 1, 1, 0);
    assert_int_equal(emulated_searches(), once + 1);
    stop(&m);
}

static void products_of_nothing_are_zero_or_leave_the_sum(void **state)
{
    float c[4] = {1, 2, 3, 4};
    tsr_gemm gemm = {.dtype = TSR_F32, .m = 2, .n = 1, .k = 0, .alpha = 1, .beta = 1, .c = c, .ldb = 1, .ldc = 2};
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_true(c[0] == 1 && c[2] == 3);
    gemm.beta = 0;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_true(c[0] == 0 && c[1] == 2 && c[2] == 0 && c[3] == 4);
    gemm.beta = 2;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_ERROR_UNSUPPORTED);
    gemm.m = 0;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    stop(&m);
}

static void products_that_are_none_are_refused(void **state)
{
    float c[1] = {0};
    const tsr_gemm good = {.dtype = TSR_F32, .m = 1, .n = 1, .k = 1, .alpha = 1, .a = c, .b = c, .c = c, .lda = 1, .ldb = 1, .ldc = 1};
    tsr_gemm bad[5] = {good, good, good, good, good};
    (void)state;
    bad[0].k = -1;
    bad[1].lda = 0;
    bad[2].ldb = 0;
    bad[3].ldc = 0;
    bad[4].dtype = TSR_I32;
    const machine m = start();
    for (int i = 0; i < 5; i++)
        assert_int_equal(m.table->gemm(m.self, 0, &bad[i], NULL), i < 4 ? TSR_ERROR_ARGUMENT : TSR_ERROR_UNSUPPORTED);
    bad[4].dtype = TSR_DTYPE_END;
    assert_int_equal(m.table->gemm(m.self, 0, &bad[4], NULL), TSR_ERROR_UNSUPPORTED);
    stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_are_row_major_in_every_type_and_transposition),
        TEST(an_algorithm_is_looked_for_once_a_problem),
        TEST(products_of_nothing_are_zero_or_leave_the_sum),
        TEST(products_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
