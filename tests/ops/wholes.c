#include "wholes.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <string.h>

tsr_status support_make(const tsr_mesh *mesh, const char *placements, tsr_dtype dtype, int ndim, const int64_t *shape,
                        const double *values, tsr_dtensor **out)
{
    tsr_dtensor *wide;
    const tsr_tensor global = tsr_tensor_contiguous((void *)values, TSR_F64, ndim, shape);
    TSR_TRY(tsr_distribute(&global, mesh, placements, &wide));
    const tsr_status status = tsr_cast(wide, dtype, out);
    tsr_dtensor_destroy(wide);
    return status;
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
    if (status == TSR_OK)
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

tsr_status support_expect(const char *what, int64_t at, double got, double wanted, double tolerance)
{
    if (fabs(got - wanted) <= tolerance * (1 + fabs(wanted)))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_INTERNAL, "%s %lld is %.17g instead of %.17g", what, (long long)at, got, wanted);
}
