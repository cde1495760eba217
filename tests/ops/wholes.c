#include "wholes.h"

#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

tsr_layout *support_layout(const tsr_mesh *mesh, const char *text)
{
    int64_t shape[TSR_MAX_DIMS];
    int ndim = 0;
    tsr_layout *layout;
    for (int length = 0; *text != ' '; text += length + (text[length] == 'x')) {
        long long size;
        assert_int_equal(sscanf(text, "%lld%n", &size, &length), 1);
        shape[ndim++] = size;
    }
    if (tsr_layout_parse(mesh, text + 1, ndim, shape, TSR_F32, &layout) != TSR_OK)
        fail_msg("%s: %s", text, tsr_status_message());
    return layout;
}

tsr_status support_distribute(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim,
                              const int64_t *shape, const void *values, tsr_dtensor **out)
{
    const tsr_tensor global = tsr_tensor_contiguous((void *)values, dtype, ndim, shape);
    return tsr_distribute(&global, mesh, placements, out);
}

tsr_status support_make(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                        const double *values, tsr_dtensor **out)
{
    tsr_dtensor *wide;
    TSR_TRY(support_distribute(mesh, placements, TSR_F64, ndim, shape, values, &wide));
    const tsr_status status = tsr_cast(wide, dtype, out);
    tsr_dtensor_destroy(wide);
    return status;
}

tsr_status support_make_numbered(const tsr_mesh *mesh, const char *placements, int ndim, const int64_t *shape,
                                 int first, tsr_dtensor **out)
{
    float values[1024];
    for (int i = 0; i < 1024; i++)
        values[i] = (float)(first + i);
    return support_distribute(mesh, placements, TSR_F32, ndim, shape, values, out);
}

tsr_status support_take(tsr_dtensor *x, void *to, size_t bytes)
{
    tsr_dtensor *whole;
    TSR_TRY(tsr_full_tensor(x, &whole));
    memcpy(to, tsr_dtensor_to_local(whole).data, bytes);
    tsr_dtensor_destroy(whole);
    tsr_dtensor_destroy(x);
    return TSR_OK;
}

tsr_status support_read(const tsr_dtensor *x, double *values)
{
    tsr_dtensor *full, *wide;
    int64_t count;
    TSR_TRY(tsr_full_tensor(x, &full));
    tsr_status status = tsr_cast(full, TSR_F64, &wide);
    tsr_dtensor_destroy(full);
    TSR_TRY(status);
    const tsr_tensor local = tsr_dtensor_to_local(wide);
    status = tsr_tensor_count(&local, &count);
    if (status == TSR_OK && count > 0)
        memcpy(values, local.data, (size_t)count * sizeof(double));
    tsr_dtensor_destroy(wide);
    return status;
}

tsr_status support_make_ones(const tsr_dtensor *loss, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(loss), &layout));
    const double ones[8] = {1, 1, 1, 1, 1, 1, 1, 1};
    char placements[64];
    tsr_layout_print(layout, placements, sizeof placements);
    const tsr_status status = support_make(tsr_layout_mesh(layout), placements, tsr_layout_dtype(layout),
                                           tsr_layout_ndim(layout), tsr_layout_shape(layout), ones, out);
    tsr_layout_destroy(layout);
    return status;
}

int support_count_ranks(const char *mesh)
{
    int count = 1;
    for (; *mesh; mesh++)
        count *= *mesh == 'x' ? 1 : *mesh - '0';
    return count;
}

double support_draw(int64_t i)
{
    uint64_t x = (uint64_t)i * UINT64_C(0x9e3779b97f4a7c15) + 12345;
    x = (x ^ x >> 31) * UINT64_C(0xbf58476d1ce4e5b9);
    return (double)(x >> 40) / (double)(1 << 24) * 12 - 6;
}

tsr_status support_expect_held(bool held, const char *what, int64_t at, double got, double wanted)
{
    EXPECT(held, "%s %lld is %.17g instead of %.17g", what, (long long)at, got, wanted);
    return TSR_OK;
}

tsr_status support_expect(const char *what, int64_t at, double got, double wanted, double tolerance)
{
    return support_expect_held(fabs(got - wanted) <= tolerance * (1 + fabs(wanted)), what, at, got, wanted);
}

tsr_status support_expect_whole(const char *what, const tsr_dtensor *x, const char *placements, int count,
                                const float *wanted)
{
    char text[128];
    tsr_dtensor *whole;
    int64_t size = -1;
    tsr_layout_print(tsr_dtensor_layout(x), text, sizeof text);
    EXPECT(strcmp(text, placements) == 0, "%s is %s instead of %s", what, text, placements);
    TSR_TRY(tsr_full_tensor(x, &whole));
    const tsr_tensor local = tsr_dtensor_to_local(whole);
    const float *const got = local.data;
    tsr_status status = tsr_tensor_count(&local, &size);
    if (status == TSR_OK && size != count)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "%s has %lld elements instead of %d", what, (long long)size, count);
    for (int i = 0; i < count && status == TSR_OK; i++)
        status = support_expect_held(got[i] == wanted[i], what, i, (double)got[i], (double)wanted[i]);
    tsr_dtensor_destroy(whole);
    return status;
}
