#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

tsr_status tsr_mesh_counts(const tsr_mesh *mesh, bool *counts)
{
    int64_t shape[TSR_MAX_DIMS];
    tsr_mesh *counted;
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++)
        shape[m] = tsr_mesh_size(mesh, m);
    TSR_TRY(tsr_mesh_create_abstract(tsr_mesh_context(mesh), tsr_mesh_ndim(mesh), shape, NULL, NULL, &counted));
    *counts = tsr_mesh_equal(mesh, counted);
    tsr_mesh_destroy(counted);
    return TSR_OK;
}

tsr_status tsr_mesh_write_ranks(const tsr_mesh *mesh, const char *between, tsr_text *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, rank;
    const char *before = "";
    for (int m = 0; m >= 0;) {
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &rank));
        tsr_text_append(out, "%s%lld", before, (long long)rank);
        before = between;
        for (m = tsr_mesh_ndim(mesh) - 1; m >= 0 && ++coordinate[m] == tsr_mesh_size(mesh, m); m--)
            coordinate[m] = 0;
    }
    return TSR_OK;
}
