/* Layers with every mixture of f32, f16 and bf16 operands, compared with plain loops on small
 * integers, which are exact in all three. */
#include "layers.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

static const tsr_dtype dtypes[] = {TSR_F32, TSR_F16, TSR_BF16};

enum { DTYPES = 3 };

/* Few rows and many, one and two dims of batch, with strides and without. Sums stay below 2^8,
 * which bf16 holds. */
static const struct {
    int x_ndim;
    int64_t x_shape[TSR_MAX_DIMS];
    int64_t out;
    int gap;
} shapes[] = {{1, {13}, 7, 0},    {2, {1, 21}, 5, 0},  {2, {7, 17}, 20, 0},
              {2, {5, 13}, 3, 2}, {2, {20, 18}, 9, 0}, {3, {3, 7, 5}, 16, 2}};

static const struct {
    const char *mesh;
    int ranks;
    const char *x, *w, *b;
} layouts[] = {
    {"1", 1, "R", "R", "R"}, {"2", 2, "R", "S(0)", "S(0)"}, {"2", 2, "S(%d)", "S(1)", "R"}, {"2", 2, "P", "R", "R"}};

static tsr_status check_shape(tsr_comm *comm, const layer *l, int number)
{
    layer at = *l;
    at.x_ndim = shapes[number].x_ndim;
    memcpy(at.x_shape, shapes[number].x_shape, sizeof at.x_shape);
    at.out = shapes[number].out;
    at.gap = shapes[number].gap;
    char x[8];
    snprintf(x, sizeof x, l->x, at.x_ndim - 1);
    at.x = x;
    return layer_check(comm, &at);
}

static tsr_status check_mixtures(tsr_comm *comm, void *arg)
{
    const int number = *(const int *)arg;
    layer l = {.mesh = layouts[number].mesh, .x = layouts[number].x, .w = layouts[number].w};
    for (int mixture = 0; mixture < DTYPES * DTYPES * (DTYPES + 1); mixture++) {
        const int b = mixture / (DTYPES * DTYPES);
        l.dtype = dtypes[mixture % DTYPES];
        l.w_dtype = dtypes[mixture / DTYPES % DTYPES];
        l.b = b < DTYPES ? layouts[number].b : NULL;
        l.b_dtype = dtypes[b % DTYPES];
        for (size_t i = 0; i < sizeof shapes / sizeof shapes[0]; i++)
            TSR_TRY(check_shape(comm, &l, (int)i));
    }
    return TSR_OK;
}

static void layers_of_every_mixture_are_exact(void **state)
{
    (void)state;
    for (int i = 0; i < (int)(sizeof layouts / sizeof layouts[0]); i++)
        layers_run(layouts[i].ranks, check_mixtures, &i);
}

static tsr_status check_dtypes(tsr_comm *comm, void *arg)
{
    static const struct {
        tsr_dtype x, w, b, y;
    } rows[] = {{TSR_F32, TSR_BF16, TSR_BF16, TSR_F32},      {TSR_BF16, TSR_BF16, TSR_BF16, TSR_BF16},
                {TSR_F16, TSR_F16, TSR_F16, TSR_F16},        {TSR_F16, TSR_BF16, TSR_F16, TSR_F32},
                {TSR_BF16, TSR_F32, TSR_BF16, TSR_F32},      {TSR_BF16, TSR_BF16, TSR_F32, TSR_F32},
                {TSR_F64, TSR_F64, TSR_F64, TSR_F64},        {TSR_F64, TSR_F32, TSR_F64, TSR_DTYPE_NONE},
                {TSR_F32, TSR_I32, TSR_F32, TSR_DTYPE_NONE}, {TSR_F32, TSR_F8E4M3, TSR_F32, TSR_DTYPE_NONE}};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        tsr_layout *x, *w, *b, *y = NULL;
        TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){2, 3}, rows[i].x, &x));
        TSR_TRY(tsr_layout_parse(mesh, "R", 2, (int64_t[]){4, 3}, rows[i].w, &w));
        TSR_TRY(tsr_layout_parse(mesh, "R", 1, (int64_t[]){4}, rows[i].b, &b));
        const tsr_status status = tsr_linear_propagate(x, w, b, &y);
        const bool right = rows[i].y ? status == TSR_OK && tsr_layout_dtype(y) == rows[i].y
                                     : status == TSR_ERROR_ARGUMENT && strstr(tsr_status_message(), "one dtype");
        tsr_layout_destroy(y);
        tsr_layout_destroy(b);
        tsr_layout_destroy(w);
        tsr_layout_destroy(x);
        if (!right)
            return tsr_status_set(TSR_ERROR_INTERNAL, "row %zu: %s", i,
                                  status == TSR_OK ? "another dtype" : tsr_status_message());
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_result_is_f32_where_dtypes_differ(void **state)
{
    (void)state;
    layers_run(1, check_dtypes, NULL);
}

/* A weight with a single 1 in each row copies x: all bits of f32 have to be kept, for few rows and
 * for many. */
static tsr_status check_passing(tsr_comm *comm, void *arg)
{
    enum { ROWS = 12, SIZE = 20 };
    float x[ROWS * SIZE];
    uint16_t w[SIZE * SIZE] = {0};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "1", &mesh));
    for (int i = 0; i < ROWS * SIZE; i++)
        x[i] = 1.0f / (float)(i + 3);
    for (int i = 0; i < SIZE; i++)
        w[i * SIZE + (i + 1) % SIZE] = 0x3f80;
    for (int64_t rows = 1; rows <= ROWS; rows += ROWS - 1) {
        const tsr_tensor tx = tsr_tensor_contiguous(x, TSR_F32, 2, (int64_t[]){rows, SIZE}),
                         tw = tsr_tensor_contiguous(w, TSR_BF16, 2, (int64_t[]){SIZE, SIZE});
        const tsr_placement whole = tsr_replicate();
        tsr_dtensor *dx, *dw, *dy;
        TSR_TRY(tsr_distribute_tensor(&tx, mesh, &whole, NULL, &dx));
        TSR_TRY(tsr_distribute_tensor(&tw, mesh, &whole, NULL, &dw));
        TSR_TRY(tsr_linear(dx, dw, NULL, NULL, &dy));
        const tsr_tensor y = tsr_dtensor_to_local(dy);
        for (int64_t i = 0; i < rows * SIZE; i++)
            if (((const float *)y.data)[i] != x[i / SIZE * SIZE + (i % SIZE + 1) % SIZE])
                return tsr_status_set(TSR_ERROR_INTERNAL, "element %lld of %lld rows", (long long)i, (long long)rows);
        tsr_dtensor_destroy(dy);
        tsr_dtensor_destroy(dw);
        tsr_dtensor_destroy(dx);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void f32_beside_narrow_weights_is_never_rounded(void **state)
{
    (void)state;
    layers_run(1, check_passing, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(layers_of_every_mixture_are_exact),
        cmocka_unit_test(a_result_is_f32_where_dtypes_differ),
        cmocka_unit_test(f32_beside_narrow_weights_is_never_rounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
