#include "redistribute/schedule/ranks.h"

#include "base/memory/memory.h"
#include "base/sort.h"
#include "mesh/mesh.h"

#include <tessera/sys/status.h>

static int by_rank(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const int x = *(const int *)a, y = *(const int *)b;
    return x < y ? -1 : x > y;
}

static size_t list_mesh(const tsr_mesh *mesh, int *ranks)
{
    const tsr_grid *grid = tsr_mesh_grid(mesh);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    size_t count = 0;
    do {
        ranks[count++] = (int)tsr_grid_rank(grid, coordinate);
    } while (tsr_grid_next(grid, coordinate));
    return count;
}

int tsr_ranks_sort(int *ranks, size_t count)
{
    tsr_sort_array(ranks, count, sizeof *ranks, by_rank, NULL);
    int kept = 0;
    for (size_t i = 0; i < count; i++)
        if (kept == 0 || ranks[kept - 1] != ranks[i])
            ranks[kept++] = ranks[i];
    return kept;
}

tsr_status tsr_ranks_of_meshes(const tsr_mesh *const *meshes, size_t mesh_count, int **ranks, int *count)
{
    size_t total = 0;
    for (size_t i = 0; i < mesh_count; i++)
        total += (size_t)tsr_mesh_count(meshes[i]);
    void *memory;
    TSR_TRY(tsr_allocate_array(tsr_mesh_context(meshes[0]), total, sizeof(int), &memory));
    total = 0;
    for (size_t i = 0; i < mesh_count; i++)
        total += list_mesh(meshes[i], (int *)memory + total);
    *ranks = memory;
    *count = tsr_ranks_sort(*ranks, total);
    return TSR_OK;
}

static bool is_listed(const tsr_mesh *const *meshes, size_t count, const tsr_mesh *mesh)
{
    for (size_t i = 0; i < count; i++)
        if (meshes[i] == mesh || tsr_mesh_equal(meshes[i], mesh))
            return true;
    return false;
}

size_t tsr_plan_list_meshes(const tsr_plan *plan, const tsr_mesh **meshes)
{
    size_t count = 0;
    for (size_t i = 0; i < plan->count; i++) {
        const tsr_mesh *const both[] = {plan->items[i].src->mesh, plan->items[i].dst->mesh};
        for (int side = 0; side < 2; side++)
            if (!is_listed(meshes, count, both[side]))
                meshes[count++] = both[side];
    }
    return count;
}
