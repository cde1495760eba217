/* Matrix products of small integers, which every order of summing gives exactly. */
#include "devices.h"
#include "variants.h"

#include <math.h>
#include <stdbool.h>

/* Bounds of a matrix' rows and columns, and of what its rows are longer in memory. */
enum { MOST_SIDE = 40, MOST_GAP = 5, MOST_ELEMENTS = (MOST_SIDE + MOST_GAP) * MOST_SIDE };

/* A matrix on the device and on the host, with gaps behind its rows; of `columns` elements a
 * row. */
typedef struct matrix {
    tsr_dtype dtype;
    int64_t rows, columns, stride;
    double at[MOST_ELEMENTS]; /* by rows, gaps included */
    void *memory;
} matrix;

static struct {
    const tsr_device_table *table;
    void *self;
} device;

static size_t bytes_of(const matrix *m)
{
    return (size_t)(m->rows * m->stride) * tsr_dtype_bytes(m->dtype) + 1;
}

static void settle(tsr_status status)
{
    if (status != TSR_OK)
        fail_msg("%s", tsr_status_message());
    if (device.table->stream_synchronize)
        assert_int_equal(device.table->stream_synchronize(device.self, 0, NULL), TSR_OK);
}

static void narrow(const matrix *m, void *to)
{
    for (int64_t i = 0; i < m->rows * m->stride; i++)
        if (m->dtype == TSR_F64)
            ((double *)to)[i] = m->at[i];
        else
            ((float *)to)[i] = (float)m->at[i];
}

/* Fills a matrix with integers from -4 to 4, or with NaNs, which no product may read. */
static void make_matrix(uint64_t *seed, matrix *m, tsr_dtype dtype, int64_t rows, int64_t columns, bool unread)
{
    m->dtype = dtype;
    m->rows = rows;
    m->columns = columns;
    m->stride = columns + draw_between(seed, 1, MOST_GAP);
    for (int64_t i = 0; i < rows * m->stride; i++)
        m->at[i] = unread ? (double)NAN : (double)draw_between(seed, -4, 4);
    void *const host = malloc(bytes_of(m));
    assert_non_null(host);
    narrow(m, host);
    settle(device.table->alloc(device.self, 0, bytes_of(m), NULL, &m->memory));
    settle(device.table->copy(device.self, 0, m->memory, host, bytes_of(m) - 1, TSR_COPY_FROM_HOST, NULL));
    free(host);
}

static double element_of(const matrix *m, const void *host, int64_t i)
{
    return m->dtype == TSR_F64 ? ((const double *)host)[i] : (double)((const float *)host)[i];
}

/* Compares the whole matrix, gaps included, with what it must be; either zero is right. */
static void check_matrix(const matrix *got, const matrix *wanted, const char *what)
{
    void *const host = malloc(bytes_of(got));
    assert_non_null(host);
    settle(device.table->copy(device.self, 0, host, got->memory, bytes_of(got) - 1, TSR_COPY_TO_HOST, NULL));
    for (int64_t i = 0; i < got->rows * got->stride; i++) {
        const double found = element_of(got, host, i);
        if (found != wanted->at[i] && !(isnan(found) && isnan(wanted->at[i])))
            fail_msg("the product of %s is wrong: element %d of row %d is %g, not %g", what, (int)(i % got->stride),
                     (int)(i / got->stride), found, wanted->at[i]);
    }
    free(host);
}

static void multiply_naively(const tsr_gemm *g, const matrix *a, const matrix *b, const matrix *bias, matrix *c)
{
    for (int64_t i = 0; i < g->m; i++)
        for (int64_t j = 0; j < g->n; j++) {
            double sum = 0;
            for (int64_t p = 0; p < g->k; p++)
                sum += a->at[g->trans_a ? p * a->stride + i : i * a->stride + p] *
                       b->at[g->trans_b ? j * b->stride + p : p * b->stride + j];
            double *const to = &c->at[i * c->stride + j];
            *to = g->alpha * sum + (g->beta != 0 ? g->beta * *to : 0) + (g->bias ? bias->at[j] : 0);
        }
}

static void draw_product(uint64_t *seed, tsr_gemm *g)
{
    g->m = draw_between(seed, 0, MOST_SIDE);
    g->n = draw_between(seed, 0, MOST_SIDE);
    g->k = draw(seed) % 8 == 0 ? 0 : draw_between(seed, 1, MOST_SIDE);
    g->trans_a = (int)(draw(seed) % 2);
    g->trans_b = (int)(draw(seed) % 2);
    g->alpha = (double)draw_between(seed, -2, 2);
    g->beta = (double)draw_between(seed, 0, 1);
}

static void run_product(uint64_t *seed, tsr_dtype dtype, bool with_bias, bool with_workspace)
{
    static matrix a, b, c, bias, wanted;
    tsr_gemm g = {TSR_GEMM_OF(dtype)};
    size_t bytes = 0;
    char what[100];
    draw_product(seed, &g);
    make_matrix(seed, &a, dtype, g.trans_a ? g.k : g.m, g.trans_a ? g.m : g.k, false);
    make_matrix(seed, &b, dtype, g.trans_b ? g.n : g.k, g.trans_b ? g.k : g.n, false);
    make_matrix(seed, &c, dtype, g.m, g.n, g.beta == 0);
    make_matrix(seed, &bias, dtype, 1, g.n, false);
    g.a = a.memory, g.b = b.memory, g.c = c.memory, g.bias = with_bias ? bias.memory : NULL;
    g.lda = a.stride, g.ldb = b.stride, g.ldc = c.stride;
    wanted = c;
    multiply_naively(&g, &a, &b, &bias, &wanted);
    if (with_workspace && device.table->gemm_workspace)
        settle(device.table->gemm_workspace(device.self, 0, &g, &bytes));
    if (bytes > 0)
        settle(device.table->alloc(device.self, 0, bytes, NULL, &g.workspace));
    g.workspace_bytes = bytes;
    settle(device.table->gemm(device.self, 0, &g, NULL));
    snprintf(what, sizeof what, "%s, (%d, %d) by (%d, %d)%s", tsr_dtype_name(dtype), (int)g.m, (int)g.k, (int)g.k,
             (int)g.n, with_bias ? " with a bias" : "");
    check_matrix(&c, &wanted, what);
    if (bytes > 0)
        device.table->free(device.self, 0, g.workspace, bytes, NULL);
    matrix *const all[] = {&a, &b, &c, &bias};
    for (int i = 0; i < 4; i++)
        device.table->free(device.self, 0, all[i]->memory, bytes_of(all[i]), NULL);
}

/* A product without rows, columns and terms asks for the dtypes alone. */
static bool takes(tsr_dtype dtype)
{
    tsr_gemm g = {TSR_GEMM_OF(dtype)};
    g.alpha = 1;
    const tsr_status status = device.table->gemm(device.self, 0, &g, NULL);
    assert_true(status == TSR_OK || status == TSR_ERROR_UNSUPPORTED);
    return status == TSR_OK;
}

static void products_are_exact(void **state)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_F64};
    uint64_t seed = seed_of(8);
    int taken = 0;
    (void)state;
    device.table = devices_table(&device.self);
    if (!device.table->gemm) {
        print_message("the device has no gemm: it computes no linear layers\n");
        skip();
    }
    for (int d = 0; d < 2; d++) {
        if (!takes(dtypes[d]))
            continue;
        taken++;
        for (int i = 0; i < 60; i++)
            run_product(&seed, dtypes[d], i % 2 == 1, i % 3 > 0);
    }
    assert_true(taken > 0);
}

int devices_products(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(products_are_exact)};
    return cmocka_run_group_tests_name("products", tests, NULL, NULL);
}
