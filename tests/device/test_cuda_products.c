/* Products on the emulated machine: which calls of cuBLASLt are made, and how often. */
#include "emulated_driver.h"
#include "reference.h"

#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stdlib.h>

enum { M = 5, N = 7, K = 3, GAP = 2, ROOM = 64 };

/* A product under test. */
typedef struct product {
    tsr_dtype dtype;
    int trans_a, trans_b, biased;
    double alpha, beta;
    size_t workspace; /* bytes given */
    size_t shift;     /* elements by which all operands are off their best alignment */
    bool widens;      /* c and the bias are f32 */
} product;

/* Its operands, and what c becomes. */
typedef struct operands {
    _Alignas(256) unsigned char a[ROOM * 8], b[ROOM * 8], c[ROOM * 8], bias[ROOM * 8], expected[ROOM * 8],
        workspace[8192];
} operands;

static tsr_dtype result_of(const product *p)
{
    return p->widens ? TSR_F32 : p->dtype;
}

static tsr_gemm gemm_of(const product *p, operands *o)
{
    const size_t shift = p->shift * tsr_dtype_bytes(p->dtype), result_shift = p->shift * tsr_dtype_bytes(result_of(p));
    return (tsr_gemm){.size = sizeof(tsr_gemm),
                      .a_dtype = p->dtype,
                      .b_dtype = p->dtype,
                      .c_dtype = result_of(p),
                      .bias_dtype = result_of(p),
                      .trans_a = p->trans_a,
                      .trans_b = p->trans_b,
                      .m = M,
                      .n = N,
                      .k = K,
                      .alpha = p->alpha,
                      .beta = p->beta,
                      .a = o->a + shift,
                      .b = o->b + shift,
                      .c = o->c + result_shift,
                      .lda = (p->trans_a ? M : K) + GAP,
                      .ldb = (p->trans_b ? K : N) + GAP,
                      .ldc = N + GAP,
                      .bias = p->biased ? o->bias + result_shift : NULL,
                      .workspace = p->workspace > 0 ? o->workspace : NULL,
                      .workspace_bytes = p->workspace};
}

/* Small integers, so that every product and sum is exact in every type and order. */
static void fill(const product *p, operands *o)
{
    const tsr_dtype result = result_of(p);
    const size_t bytes = tsr_dtype_bytes(p->dtype), result_bytes = tsr_dtype_bytes(result);
    const tsr_gemm g = gemm_of(p, o);
    const unsigned char *const a = g.a, *const b = g.b;
    for (size_t i = 0; i < ROOM; i++) {
        reference_store(p->dtype, (double)(i * 5 % 7) - 3, o->a + i * bytes);
        reference_store(p->dtype, (double)(i * 3 % 5) - 2, o->b + i * bytes);
        reference_store(result, (double)(i % 11), o->c + i * result_bytes);
        reference_store(result, (double)(i * i % 13) + 20, o->bias + i * result_bytes);
    }
    memcpy(o->expected, o->c, sizeof o->c);
    for (int64_t i = 0; i < M; i++)
        for (int64_t j = 0; j < N; j++) {
            double sum = 0;
            for (int64_t k = 0; k < K; k++)
                sum += reference_load(p->dtype, a + (size_t)(g.trans_a ? k * g.lda + i : i * g.lda + k) * bytes) *
                       reference_load(p->dtype, b + (size_t)(g.trans_b ? j * g.ldb + k : k * g.ldb + j) * bytes);
            unsigned char *const to = o->expected + ((size_t)(i * g.ldc + j) + p->shift) * result_bytes;
            sum = g.alpha * sum + g.beta * reference_load(result, to);
            reference_store(
                result,
                sum +
                    (p->biased ? reference_load(result, (const unsigned char *)g.bias + (size_t)j * result_bytes) : 0),
                to);
        }
}

static void check_product(const machine *m, const product *p)
{
    static operands o;
    fill(p, &o);
    const tsr_gemm g = gemm_of(p, &o);
    assert_int_equal(m->table->gemm(m->self, 0, &g, NULL), TSR_OK);
    assert_int_equal(m->table->stream_synchronize(m->self, 0, NULL), TSR_OK);
    if (memcmp(o.c, o.expected, ROOM * tsr_dtype_bytes(result_of(p))) != 0)
        fail_msg("%s, trans_a %d, trans_b %d, alpha %g, beta %g, biased %d, workspace %zu, shift %zu",
                 tsr_dtype_name(p->dtype), p->trans_a, p->trans_b, p->alpha, p->beta, p->biased, p->workspace,
                 p->shift);
}

static const tsr_dtype dtypes[] = {TSR_F64, TSR_F32, TSR_F16, TSR_BF16};

static void products_are_row_major_in_every_type_and_transposition(void **state)
{
    static const double scalars[][2] = {{1, 0}, {1, 1}, {2, -1}};
    (void)state;
    const machine m = start();
    for (int d = 0; d < 4; d++)
        for (int trans = 0; trans < 4; trans++)
            for (int s = 0; s < 3; s++)
                check_product(&m, &(product){dtypes[d], trans & 1, trans >> 1, 0, scalars[s][0], scalars[s][1], 0, 0});
    stop(&m);
}

static void a_bias_is_added_to_every_row_in_every_type_transposition_and_alignment(void **state)
{
    (void)state;
    const machine m = start();
    for (int d = 0; d < 4; d++)
        for (int trans = 0; trans < 4; trans++)
            for (int rest = 0; rest < 8; rest++)
                check_product(&m, &(product){dtypes[d], trans & 1, trans >> 1, 1, 1, rest & 1, rest & 2 ? 8192 : 0,
                                             (size_t)rest / 4});
    stop(&m);
}

static void narrow_operands_have_results_of_f32_too(void **state)
{
    (void)state;
    const machine m = start();
    for (int d = 0; d < 4; d++)
        for (int rest = 0; rest < 8 && (dtypes[d] == TSR_F16 || dtypes[d] == TSR_BF16); rest++)
            check_product(&m, &(product){dtypes[d], rest & 1, rest >> 1 & 1, rest >> 2, 1, 0, 8192, 0, true});
    stop(&m);
}

static void operands_of_two_dtypes_are_refused(void **state)
{
    float c[1] = {0};
    const tsr_gemm good = {TSR_GEMM_OF(TSR_BF16),
                           .m = 1,
                           .n = 1,
                           .k = 1,
                           .alpha = 1,
                           .a = c,
                           .b = c,
                           .c = c,
                           .lda = 1,
                           .ldb = 1,
                           .ldc = 1};
    tsr_gemm mixed = good, narrowed = good, biased = good;
    size_t bytes;
    (void)state;
    const machine m = start();
    mixed.a_dtype = mixed.c_dtype = TSR_F32;
    assert_int_equal(m.table->gemm(m.self, 0, &mixed, NULL), TSR_ERROR_UNSUPPORTED);
    says("no GEMM of f32 and bf16 to f32");
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &mixed, &bytes), TSR_ERROR_UNSUPPORTED);
    narrowed.c_dtype = TSR_F16;
    assert_int_equal(m.table->gemm(m.self, 0, &narrowed, NULL), TSR_ERROR_UNSUPPORTED);
    biased.bias = c;
    biased.bias_dtype = TSR_F32;
    assert_int_equal(m.table->gemm(m.self, 0, &biased, NULL), TSR_ERROR_UNSUPPORTED);
    says("adds no bias of f32");
    stop(&m);
}

static void a_bias_costs_a_launch_only_where_cublaslt_does_not_add_it(void **state)
{
    static operands o;
    (void)state;
    const machine m = start();
    for (int d = 0; d < 4; d++) {
        const product p = {dtypes[d], 0, 1, 1, 1, 0, 0, 0};
        const tsr_gemm g = gemm_of(&p, &o);
        const int before = emulated_launches();
        assert_int_equal(m.table->gemm(m.self, 0, &g, NULL), TSR_OK);
        assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
        assert_int_equal(emulated_launches() - before, dtypes[d] == TSR_F64);
    }
    const product scaled = {TSR_F64, 0, 1, 1, 1, 2, 0, 0};
    const tsr_gemm g = gemm_of(&scaled, &o);
    assert_int_equal(m.table->gemm(m.self, 0, &g, NULL), TSR_ERROR_UNSUPPORTED);
    says("beta is 0 or 1");
    stop(&m);
}

static void an_algorithm_is_looked_for_once_a_problem(void **state)
{
    product p = {TSR_F32, 0, 0, 0, 1, 0, 8192, 0};
    (void)state;
    const machine m = start();
    const int before = emulated_searches();
    for (int i = 0; i < 5; i++)
        check_product(&m, &p);
    assert_int_equal(emulated_searches(), before + 1);
    p.biased = 1;
    for (int i = 0; i < 5; i++)
        check_product(&m, &p);
    assert_int_equal(emulated_searches(), before + 2);
    /* Where the preferred algorithm gets no workspace, another one is used. */
    p.workspace = 0;
    for (int i = 0; i < 5; i++)
        check_product(&m, &p);
    assert_int_equal(emulated_searches(), before + 3);
    stop(&m);
}

static void a_product_says_what_workspace_it_wants_wherever_its_operands_lie(void **state)
{
    static operands o;
    const product p = {TSR_F32, 0, 0, 1, 1, 0, 0, 0};
    tsr_gemm g = gemm_of(&p, &o);
    size_t bytes = 0, again = 0;
    (void)state;
    const machine m = start();
    const int before = emulated_searches();
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &g, &bytes), TSR_OK);
    /* The workspace of the emulated algorithm, and the bytes that aligning it may cost. */
    assert_int_equal(bytes, 4096 + 255);
    g.a = o.a + 4;
    g.bias = o.bias + 4;
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &g, &again), TSR_OK);
    assert_int_equal(again, bytes);
    assert_int_equal(emulated_searches(), before + 1);
    g.k = 0;
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &g, &bytes), TSR_OK);
    assert_int_equal(bytes, 0);
    g.a_dtype = g.b_dtype = g.c_dtype = g.bias_dtype = TSR_I32;
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &g, &bytes), TSR_ERROR_UNSUPPORTED);
    says("no GEMM of i32");
    stop(&m);
}

static void a_workspace_is_not_asked_for_first_while_a_stream_that_the_default_one_waits_for_is_captured(void **state)
{
    const tsr_gemm some = {TSR_GEMM_OF(TSR_F32), .m = 2, .n = 2, .k = 2, .alpha = 1, .lda = 2, .ldb = 2, .ldc = 2};
    cudaStream_t theirs;
    cudaGraph_t graph;
    size_t bytes = 7;
    (void)state;
    const machine m = start();
    assert_int_equal(cudaStreamCreate(&theirs), cudaSuccess);
    assert_int_equal(cudaStreamBeginCapture(theirs, cudaStreamCaptureModeRelaxed), cudaSuccess);
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &some, &bytes), TSR_ERROR_STATE);
    says("before the capture begins");
    assert_int_equal(bytes, 7);
    assert_int_equal(cudaStreamEndCapture(theirs, &graph), cudaSuccess);
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &some, &bytes), TSR_OK);
    assert_int_equal(cudaGraphDestroy(graph), cudaSuccess);
    assert_int_equal(cudaStreamDestroy(theirs), cudaSuccess);
    stop(&m);
}

static void a_workspace_as_large_as_was_said_suffices_at_any_address(void **state)
{
    static operands o;
    const product p = {TSR_F16, 1, 0, 1, 1, 0, 0, 0};
    (void)state;
    const machine m = start();
    fill(&p, &o);
    tsr_gemm g = gemm_of(&p, &o);
    assert_int_equal(m.table->gemm_workspace(m.self, 0, &g, &g.workspace_bytes), TSR_OK);
    assert_int_equal(m.table->gemm(m.self, 0, &g, NULL), TSR_OK);
    const int alive = emulated_alive(), waits = emulated_host_waits(), searches = emulated_searches();
    unsigned char *const memory = malloc(g.workspace_bytes + 256);
    for (size_t offset = 0; offset < 256; offset += 64) {
        g.workspace = memory + offset;
        assert_int_equal(m.table->gemm(m.self, 0, &g, NULL), TSR_OK);
    }
    assert_int_equal(emulated_alive(), alive);
    assert_int_equal(emulated_host_waits(), waits);
    assert_int_equal(emulated_searches(), searches);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
    assert_memory_equal(o.c, o.expected, ROOM * 2);
    free(memory);
    stop(&m);
}

/* 1 + 2^-12 has more bits than TF32 keeps. */
static void tf32_shortens_the_factors_of_matrices_and_not_those_of_vectors(void **state)
{
    const tsr_cuda_options options = {sizeof options, 1};
    float a[4] = {1, 0, 0, 1}, b[4] = {1 + 0x1p-12f, 2, 3, 4}, c[4] = {0};
    tsr_gemm g = {
        TSR_GEMM_OF(TSR_F32), .m = 2, .n = 2, .k = 2, .alpha = 1, .a = a, .b = b, .c = c, .lda = 2, .ldb = 2, .ldc = 2};
    machine m;
    (void)state;
    assert_int_equal(tsr_cuda_driver_create(NULL, &options, &m.driver), TSR_OK);
    m.table = tsr_device_driver_table(m.driver, &m.self);
    for (int64_t rows = 2; rows >= 1; rows--) {
        g.m = rows;
        assert_int_equal(m.table->gemm(m.self, 0, &g, NULL), TSR_OK);
        assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
        assert_true(c[0] == (rows == 1 ? b[0] : 1));
    }
    stop(&m);
}

static void products_of_nothing_are_zero_or_leave_the_sum(void **state)
{
    float c[4] = {1, 2, 3, 4};
    tsr_gemm gemm = {TSR_GEMM_OF(TSR_F32), .m = 2, .n = 1, .k = 0, .alpha = 1, .beta = 1, .c = c, .ldb = 1, .ldc = 2};
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
    assert_true(c[0] == 1 && c[2] == 3);
    gemm.beta = 0;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
    assert_true(c[0] == 0 && c[1] == 2 && c[2] == 0 && c[3] == 4);
    gemm.beta = 2;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_ERROR_UNSUPPORTED);
    gemm.m = 0;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    stop(&m);
}

static void products_of_nothing_are_the_bias_or_get_it_added(void **state)
{
    float c[4] = {1, 2, 3, 4}, bias[2] = {10, 20};
    tsr_gemm gemm = {TSR_GEMM_OF(TSR_F32), .m = 2, .n = 2, .k = 0, .alpha = 1, .beta = 1, .c = c, .ldb = 2, .ldc = 2,
                     .bias = bias};
    (void)state;
    const machine m = start();
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
    assert_true(c[0] == 11 && c[1] == 22 && c[2] == 13 && c[3] == 24);
    gemm.beta = 0;
    assert_int_equal(m.table->gemm(m.self, 0, &gemm, NULL), TSR_OK);
    assert_int_equal(m.table->stream_synchronize(m.self, 0, NULL), TSR_OK);
    assert_true(c[0] == 10 && c[1] == 20 && c[2] == 10 && c[3] == 20);
    stop(&m);
}

static void products_that_are_none_are_refused(void **state)
{
    float c[1] = {0};
    const tsr_gemm good = {
        TSR_GEMM_OF(TSR_F32), .m = 1, .n = 1, .k = 1, .alpha = 1, .a = c, .b = c, .c = c, .lda = 1, .ldb = 1, .ldc = 1};
    tsr_gemm bad[5] = {good, good, good, good, good};
    (void)state;
    bad[0].k = -1;
    bad[1].lda = 0;
    bad[2].ldb = 0;
    bad[3].ldc = 0;
    bad[4].a_dtype = bad[4].b_dtype = bad[4].c_dtype = TSR_I32;
    const machine m = start();
    for (int i = 0; i < 5; i++)
        assert_int_equal(m.table->gemm(m.self, 0, &bad[i], NULL), i < 4 ? TSR_ERROR_ARGUMENT : TSR_ERROR_UNSUPPORTED);
    bad[4].a_dtype = bad[4].b_dtype = bad[4].c_dtype = TSR_DTYPE_END;
    assert_int_equal(m.table->gemm(m.self, 0, &bad[4], NULL), TSR_ERROR_UNSUPPORTED);
    stop(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(products_are_row_major_in_every_type_and_transposition),
        TEST(a_bias_is_added_to_every_row_in_every_type_transposition_and_alignment),
        TEST(narrow_operands_have_results_of_f32_too),
        TEST(operands_of_two_dtypes_are_refused),
        TEST(a_bias_costs_a_launch_only_where_cublaslt_does_not_add_it),
        TEST(an_algorithm_is_looked_for_once_a_problem),
        TEST(a_product_says_what_workspace_it_wants_wherever_its_operands_lie),
        TEST(a_workspace_is_not_asked_for_first_while_a_stream_that_the_default_one_waits_for_is_captured),
        TEST(a_workspace_as_large_as_was_said_suffices_at_any_address),
        TEST(tf32_shortens_the_factors_of_matrices_and_not_those_of_vectors),
        TEST(products_of_nothing_are_zero_or_leave_the_sum),
        TEST(products_of_nothing_are_the_bias_or_get_it_added),
        TEST(products_that_are_none_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
