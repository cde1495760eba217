/* Linear layers with weights of 8 bits: their values, their bits, and how weights are quantized. */
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>
#include <tessera/tessera.h>

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

enum { BLOCK = TSR_Q8_SCALED, MOST_K = 6 * BLOCK, MOST_O = 600, MOST_ROWS = 20 };

/* A tensor of f32 from -1 to 1, or of small integers. */
static tsr_status make(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape, bool integers,
                       tsr_dtensor **out)
{
    static _Thread_local float values[MOST_O * MOST_K];
    int64_t count = 1;
    for (int dim = 0; dim < ndim; dim++)
        count *= shape[dim];
    for (int64_t i = 0; i < count; i++) {
        const uint64_t mixed = ((uint64_t)i + 3) * UINT64_C(0x9e3779b97f4a7c15) ^ (uint64_t)count;
        values[i] = integers ? (float)(mixed >> 40 & 7) - 3 : (float)((int64_t)(mixed >> 40) - (1 << 23)) * 0x1p-23f;
    }
    return support_distribute(mesh, placements, TSR_F32, ndim, shape, values, out);
}

/* The values of weights of 8 bits. */
static tsr_status make_values(const tsr_mesh *mesh, const tsr_dtensor *data, const tsr_dtensor *scales,
                              tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_create(mesh, tsr_layout_placements(tsr_dtensor_layout(data)), 2,
                              tsr_layout_shape(tsr_dtensor_layout(data)), TSR_F32, &layout));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), out));
    tsr_layout_destroy(layout);
    const tsr_tensor from = tsr_dtensor_to_local(data), steps = tsr_dtensor_to_local(scales),
                     to = tsr_dtensor_to_local(*out);
    EXPECT(from.shape[0] == steps.shape[0] && from.shape[1] == BLOCK * steps.shape[1], "parts of %lld and %lld columns",
           (long long)from.shape[1], (long long)steps.shape[1]);
    for (int64_t i = 0; i < from.shape[0] * from.shape[1]; i++)
        ((float *)to.data)[i] = ((float *)steps.data)[i / BLOCK] * (float)((int8_t *)from.data)[i];
    return TSR_OK;
}

static tsr_status expect_bits(const char *what, const tsr_dtensor *a, const tsr_dtensor *b)
{
    const tsr_tensor x = tsr_dtensor_to_local(a), y = tsr_dtensor_to_local(b);
    int64_t bytes = (int64_t)tsr_dtype_bytes(x.dtype);
    for (int dim = 0; dim < x.ndim; dim++)
        bytes *= x.shape[dim];
    EXPECT(tsr_layout_equal(tsr_dtensor_layout(a), tsr_dtensor_layout(b)), "%s: layouts differ", what);
    EXPECT(bytes == 0 || memcmp(x.data, y.data, (size_t)bytes) == 0, "%s: bits differ", what);
    return TSR_OK;
}

/* Layouts over 2 ranks. */
static const struct {
    const char *x, *w, *b;
} layers[] = {{"R", "R", "R"}, {"R", "S(0)", "S(0)"}, {"S(0)", "R", "R"}, {"S(1;unit=32)", "S(1;unit=32)", "R"}};

static tsr_status check_layer(const tsr_mesh *mesh, int number, int64_t rows, int64_t o, int64_t k, tsr_dtype dtype,
                              bool integers)
{
    const int64_t x_shape[] = {rows, k}, w_shape[] = {o, k};
    tsr_dtensor *wide, *whole, *x, *w, *scales, *values, *b, *plain, *out, *again, *dx, *dx_plain, *dout;
    tsr_layout *gradient;
    TSR_TRY(make(mesh, "R", 2, x_shape, integers, &wide));
    TSR_TRY(tsr_cast(wide, dtype, &whole));
    TSR_TRY(tsr_redistribute_to(whole, layers[number].x, &x));
    TSR_TRY(make(mesh, layers[number].b, 1, w_shape, integers, &b));
    TSR_TRY(make(mesh, layers[number].w, 2, w_shape, integers, &values));
    TSR_TRY(tsr_quantize_q8(values, &w, &scales));
    if (integers)
        TSR_TRY(tsr_dtensor_fill(scales, 0.5, NULL));
    tsr_dtensor_destroy(values);
    TSR_TRY(make_values(mesh, w, scales, &values));
    TSR_TRY(tsr_linear_q8(x, w, scales, b, &out));
    TSR_TRY(tsr_linear(x, values, b, NULL, &plain));
    TSR_TRY(expect_bits("with b", out, plain));
    TSR_TRY(tsr_dtensor_fill(out, 0, NULL));
    TSR_TRY(tsr_linear_q8_into(x, w, scales, b, out));
    TSR_TRY(expect_bits("into", out, plain));
    TSR_TRY(tsr_linear_q8(x, w, scales, NULL, &again));
    tsr_dtensor_destroy(plain);
    TSR_TRY(tsr_linear(x, values, NULL, NULL, &plain));
    if (dtype == TSR_F32)
        TSR_TRY(expect_bits("without b", again, plain));
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(out), &gradient));
    TSR_TRY(tsr_dtensor_create(gradient, tsr_device_host(), &dout));
    tsr_layout_destroy(gradient);
    TSR_TRY(tsr_dtensor_fill(dout, 1, NULL));
    TSR_TRY(tsr_linear_q8_backward(x, w, scales, b, dout, &dx, NULL));
    TSR_TRY(tsr_linear_backward(x, values, NULL, dout, tsr_layout_placements(tsr_dtensor_layout(dx)), NULL, NULL,
                                &dx_plain, NULL, NULL));
    if (integers)
        TSR_TRY(expect_bits("dx", dx, dx_plain));
    tsr_dtensor *const all[] = {wide, whole, x, w, scales, values, b, plain, out, again, dx, dx_plain, dout};
    for (size_t i = 0; i < sizeof all / sizeof all[0]; i++)
        tsr_dtensor_destroy(all[i]);
    return TSR_OK;
}

static tsr_status check_layers(tsr_comm *comm, void *arg)
{
    static const tsr_dtype dtypes[] = {TSR_F32, TSR_BF16, TSR_F16};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "tp=2", &mesh));
    for (int number = 0; number < (int)(sizeof layers / sizeof layers[0]); number++) {
        for (int dtype = 0; dtype < 3; dtype++) {
            TSR_TRY(check_layer(mesh, number, 1, 37, 5 * BLOCK, dtypes[dtype], false));
            TSR_TRY(check_layer(mesh, number, 7, 300, 3 * BLOCK, dtypes[dtype], false));
            TSR_TRY(check_layer(mesh, number, 3, 5, BLOCK, dtypes[dtype], false));
            TSR_TRY(check_layer(mesh, number, MOST_ROWS, 43, 4 * BLOCK, dtypes[dtype], true));
        }
        TSR_TRY(check_layer(mesh, number, MOST_ROWS, MOST_O, MOST_K, TSR_F32, true));
        TSR_TRY(check_layer(mesh, number, 0, 3, BLOCK, TSR_F32, true));
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void a_layer_has_the_bits_of_its_values(void **state)
{
    (void)state;
    layers_run(2, check_layers, NULL);
}

static tsr_status expect_text(const tsr_dtensor *x, const char *wanted)
{
    char text[64];
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    EXPECT(strcmp(text, wanted) == 0, "\"%s\" instead of \"%s\"", text, wanted);
    return TSR_OK;
}

static tsr_status check_quantized(tsr_comm *comm, void *arg)
{
    static const struct {
        const char *weights, *scales;
        int64_t k;
    } cuts[] = {{"R", "R", 3 * BLOCK},
                {"S(0)", "S(0)", 3 * BLOCK},
                {"S(1)", "S(1)", 4 * BLOCK},
                {"S(1;unit=32)", "S(1)", 3 * BLOCK},
                {"S(1;unit=64)", "S(1;unit=2)", 5 * BLOCK},
                {"S(1;interleave=2;unit=32)", "S(1;interleave=2)", 6 * BLOCK},
                {"S(1;balanced;unit=32)", "S(1;balanced)", 5 * BLOCK}};
    tsr_mesh *mesh;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    for (size_t i = 0; i < sizeof cuts / sizeof cuts[0]; i++) {
        const int64_t shape[] = {5, cuts[i].k};
        tsr_dtensor *w, *data, *scales, *values;
        TSR_TRY(make(mesh, cuts[i].weights, 2, shape, false, &w));
        TSR_TRY(tsr_quantize_q8(w, &data, &scales));
        TSR_TRY(expect_text(data, cuts[i].weights));
        TSR_TRY(expect_text(scales, cuts[i].scales));
        TSR_TRY(make_values(mesh, data, scales, &values));
        const tsr_tensor from = tsr_dtensor_to_local(w), to = tsr_dtensor_to_local(values);
        const float *const steps = tsr_dtensor_to_local(scales).data;
        for (int64_t j = 0; j < from.shape[0] * from.shape[1]; j++) {
            const float a = ((float *)from.data)[j], b = ((float *)to.data)[j], step = steps[j / BLOCK];
            EXPECT(fabsf(a - b) <= step * 0.5001f, "weight %lld: %g for %g with scale %g", (long long)j, (double)b,
                   (double)a, (double)step);
        }
        tsr_dtensor *const all[] = {w, data, scales, values};
        for (int j = 0; j < 4; j++)
            tsr_dtensor_destroy(all[j]);
    }
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void weights_differ_by_half_a_scale(void **state)
{
    (void)state;
    layers_run(2, check_quantized, NULL);
}

static tsr_status check_errors(tsr_comm *comm, void *arg)
{
    const int64_t shape[] = {4, 3 * BLOCK}, odd[] = {4, 40};
    tsr_mesh *mesh;
    tsr_dtensor *w, *cut, *short_w, *data = NULL, *scales = NULL, *out = NULL;
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    TSR_TRY(make(mesh, "R", 2, shape, false, &w));
    TSR_TRY(make(mesh, "S(1)", 2, shape, false, &cut));
    TSR_TRY(make(mesh, "R", 2, odd, false, &short_w));
    TSR_TRY(
        layer_expect_refusal(tsr_quantize_q8(cut, &data, &scales),
                             "tsr_quantize_q8: mesh dim 0 of \"S(1)\" cuts blocks of 32 weights, which have one scale; "
                             "redistribute w to \"S(1;unit=32)\" there"));
    TSR_TRY(layer_expect_refusal(tsr_quantize_q8(short_w, &data, &scales),
                                 "tsr_quantize_q8: the last dim of w has size 40, but must be a multiple of 32"));
    TSR_TRY(layer_expect_refusal(tsr_quantize_q8(NULL, &data, &scales), "tsr_quantize_q8: w is NULL"));
    TSR_TRY(tsr_quantize_q8(w, &data, &scales));
    TSR_TRY(layer_expect_refusal(tsr_linear_q8(w, w, scales, NULL, &out),
                                 "tsr_linear_q8: w is f32, but linear_q8 takes i8"));
    TSR_TRY(layer_expect_refusal(tsr_linear_q8(w, data, w, NULL, &out),
                                 "tsr_linear_q8: w has 96 columns and scales 96, but a scale is that of 32 weights"));
    ((float *)tsr_dtensor_to_local(w).data)[7] = NAN;
    tsr_dtensor *more, *and_more;
    TSR_TRY(layer_expect_refusal(tsr_quantize_q8(w, &more, &and_more),
                                 "tsr_quantize_q8: w has infinities, NaNs or numbers beyond f32"));
    tsr_dtensor *const all[] = {w, cut, short_w, data, scales};
    for (int i = 0; i < 5; i++)
        tsr_dtensor_destroy(all[i]);
    tsr_mesh_destroy(mesh);
    return TSR_OK;
}

static void errors_say_what_would_work(void **state)
{
    (void)state;
    layers_run(2, check_errors, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_layer_has_the_bits_of_its_values),
        cmocka_unit_test(weights_differ_by_half_a_scale),
        cmocka_unit_test(errors_say_what_would_work),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
