#include "sharding/form/owner.h"

#include "placement/ownership.h"

#include <tessera/sys/status.h>

/* The one rank that holds the tensor, while the mesh's other ranks hold nothing of it; -1: there is
 * none, or the mesh has one rank. Every mesh dim cuts the tensor, and the first element's owner has
 * all. */
static tsr_status find_owner(const tsr_layout *layout, int64_t *owner)
{
    static const int64_t first[TSR_MAX_DIMS] = {0};
    tsr_owner found;
    *owner = -1;
    for (int m = 0; m < layout->mesh_ndim; m++)
        if (tsr_layout_kind(layout, m) != TSR_SHARD && tsr_mesh_size(layout->mesh, m) > 1)
            return TSR_OK;
    for (int d = 0; d < layout->ndim; d++)
        if (layout->shape[d] == 0)
            return TSR_OK;
    if (tsr_mesh_count(layout->mesh) == 1)
        return TSR_OK;
    TSR_TRY(tsr_layout_owner(layout, first, &found));
    for (int d = 0; d < layout->ndim; d++)
        if (tsr_layout_length(layout, d, found.coordinate) != layout->shape[d])
            return TSR_OK;
    *owner = found.rank;
    return TSR_OK;
}

tsr_status tsr_form_or_owner(const tsr_layout *layout, const char *format, tsr_sharding_form *form)
{
    const tsr_status status = tsr_form_of(layout, TSR_CUT_AT_ONCE, format, form);
    tsr_kept_sentence kept;
    if (status != TSR_ERROR_UNSUPPORTED)
        return status;
    tsr_status_keep(&kept);
    tsr_form_init(form, layout->mesh, layout->ndim, layout->shape);
    TSR_TRY(find_owner(layout, &form->owner));
    return form->owner >= 0 ? TSR_OK : tsr_status_restore(&kept, status);
}
