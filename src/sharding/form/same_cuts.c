#include "sharding/form/same_cuts.h"

#include "base/memory/memory.h"
#include "placement/layout.h"
#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

#include <string.h>

typedef struct owned {
    tsr_interval *at;
    size_t count, capacity;
} owned;

static tsr_status read(const tsr_layout *layout, const int64_t *coordinate, int dim, owned *has)
{
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, has->at, has->capacity, &has->count));
    if (has->count <= has->capacity)
        return TSR_OK;
    TSR_TRY(tsr_reserve(layout->context, (void **)&has->at, &has->capacity, has->count, sizeof *has->at));
    return tsr_layout_intervals(layout, coordinate, dim, has->at, has->capacity, &has->count);
}

static tsr_status compare(const tsr_layout *a, const tsr_layout *b, int dim, owned has[2], bool *same)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    *same = true;
    do {
        TSR_TRY(read(a, coordinate, dim, &has[0]));
        TSR_TRY(read(b, coordinate, dim, &has[1]));
        *same = has[0].count == has[1].count &&
                (has[0].count == 0 || memcmp(has[0].at, has[1].at, has[0].count * sizeof *has[0].at) == 0);
    } while (*same && tsr_mesh_next_along(a->mesh, a->dims[dim].count, a->dims[dim].mesh_dim, coordinate));
    return TSR_OK;
}

tsr_status tsr_same_cuts(const tsr_layout *a, const tsr_layout *b, int dim, bool *same)
{
    owned has[2] = {{0}};
    const tsr_status status = compare(a, b, dim, has, same);
    tsr_release(a->context, has[0].at);
    tsr_release(a->context, has[1].at);
    return status;
}
