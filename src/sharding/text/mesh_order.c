#include "sharding/text/mesh_order.h"

#include "mesh/mesh.h"

bool tsr_mesh_counts(const tsr_mesh *mesh)
{
    const tsr_grid *const grid = tsr_mesh_grid(mesh);
    return grid->first == 0 && tsr_grid_is_numbered(grid);
}

bool tsr_mesh_next_along(const tsr_mesh *mesh, int count, const int *dims, int64_t *coordinate)
{
    for (int i = count - 1; i >= 0; i--) {
        if (++coordinate[dims[i]] < tsr_mesh_size(mesh, dims[i]))
            return true;
        coordinate[dims[i]] = 0;
    }
    return false;
}

void tsr_mesh_write_ranks(const tsr_mesh *mesh, const char *between, const char *word, tsr_text *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const char *before = "";
    do {
        tsr_text_append(out, "%s%s%lld", before, word, (long long)tsr_mesh_rank(mesh, coordinate));
        before = between;
    } while (tsr_grid_next(tsr_mesh_grid(mesh), coordinate));
}
