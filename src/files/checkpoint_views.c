#include "files/checkpoint_views.h"

#include <tessera/sys/status.h>

#include <stdbool.h>
#include <string.h>

static tsr_status check_fit(const char *call, const tsr_checkpoint_view *view, const tsr_layout *layout)
{
    int64_t count = 1;
    bool fits = view->shape && view->ndim >= 1 && view->ndim <= TSR_MAX_DIMS && tsr_layout_ndim(layout) == 1;
    for (int d = 0; fits && d < view->ndim; d++)
        fits = view->shape[d] >= 0 && !__builtin_mul_overflow(count, view->shape[d], &count);
    if (fits && count == tsr_layout_shape(layout)[0])
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: the view of %.200s does not fit: a view has 1 to %d dims, and the dtensor one, with as "
                          "many elements",
                          call, view->name, TSR_MAX_DIMS);
}

tsr_status tsr_checkpoint_shape(const char *call, size_t count, const tsr_checkpoint_view *views, const char *name,
                                const tsr_layout *layout, tsr_stored_shape *out)
{
    *out = (tsr_stored_shape){tsr_layout_ndim(layout), tsr_layout_shape(layout)};
    for (size_t i = 0; i < count; i++) {
        if (strcmp(views[i].name, name) != 0)
            continue;
        TSR_TRY(check_fit(call, &views[i], layout));
        *out = (tsr_stored_shape){views[i].ndim, views[i].shape};
    }
    return TSR_OK;
}

tsr_status tsr_checkpoint_check_views(const char *call, size_t view_count, const tsr_checkpoint_view *views,
                                      size_t count, const char *(*name_of)(const void *user, size_t index),
                                      const void *user)
{
    if (view_count > 0 && !views)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.views is NULL", call);
    for (size_t i = 0; i < view_count; i++) {
        bool found = false;
        for (size_t j = 0; j < count && views[i].name; j++)
            found = found || strcmp(name_of(user, j), views[i].name) == 0;
        if (!found)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.views[%zu].name is %.200s, which is not a dtensor's",
                                  call, i, views[i].name ? views[i].name : "NULL");
    }
    return TSR_OK;
}
