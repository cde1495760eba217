#include "sharding/text/axis_name.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

tsr_status tsr_axis_need_names(const tsr_mesh *mesh, const char *format)
{
    if (tsr_mesh_name(mesh, 0))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s names the axes of a mesh, but this mesh's dims have no names: give "
                          "it some, as in a=2,b=4",
                          format);
}

tsr_status tsr_axis_find(tsr_scan *scan, const tsr_mesh *mesh, size_t start, size_t length, int *mesh_dim)
{
    char reason[256] = "the mesh has no dim of this name; its dims are";
    TSR_TRY(tsr_axis_need_names(mesh, "this text"));
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++) {
        const char *const name = tsr_mesh_name(mesh, m);
        const size_t at = strlen(reason);
        if (strlen(name) == length && memcmp(name, scan->text + start, length) == 0) {
            *mesh_dim = m;
            return TSR_OK;
        }
        snprintf(reason + at, sizeof reason - at, "%s %s", m ? "," : "", name);
    }
    return tsr_scan_refuse(scan, start, reason);
}

tsr_status tsr_axis_use(tsr_scan *scan, tsr_axes_used *used, int mesh_dim, size_t start)
{
    if (used->at[mesh_dim])
        return tsr_scan_refuse(scan, start, "this axis was there before");
    used->at[mesh_dim] = true;
    return TSR_OK;
}
