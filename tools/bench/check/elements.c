#include "bench/check/elements.h"

#include <tessera/sys/status.h>

int64_t element_index(const tsr_layout *layout, const int64_t *shape, const int64_t *offset, int64_t local)
{
    int64_t index = 0, scale = 1;
    for (int dim = tsr_layout_ndim(layout) - 1; dim >= 0; dim--) {
        index += (offset[dim] + local % shape[dim]) * scale;
        local /= shape[dim];
        scale *= tsr_layout_shape(layout)[dim];
    }
    return index;
}

tsr_status elements_fill(const tsr_dtensor *x, element_value *value, const void *arg)
{
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS], count;
    const tsr_layout *const layout = tsr_dtensor_layout(x);
    const tsr_tensor local = tsr_dtensor_to_local(x);
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_tensor_count(&local, &count));
    for (int64_t i = 0; i < count; i++) {
        const double made = value(arg, element_index(layout, shape, offset, i));
        if (local.dtype == TSR_I64)
            ((int64_t *)local.data)[i] = (int64_t)made;
        else
            ((float *)local.data)[i] = (float)made;
    }
    return TSR_OK;
}
