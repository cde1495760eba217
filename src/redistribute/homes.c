#include "redistribute/homes.h"

#include <string.h>

#include <tessera/sys/status.h>

#include "base/checked.h"
#include "base/memory.h"
#include "mesh/geometry.h"

static tsr_status append_owner(tsr_homes *homes, const tsr_problem *problem, const int64_t *coordinate, bool is_home)
{
    tsr_context *context = problem->dst.layout->context;
    void *memory = homes->owners;
    tsr_status status = tsr_reserve(context, &memory, &homes->owner_capacity, homes->owner_count + 1, sizeof(tsr_owner));
    homes->owners = memory;
    TSR_TRY(status);
    memory = homes->homes;
    status = tsr_reserve(context, &memory, &homes->home_capacity, homes->home_count + 1, sizeof(size_t));
    homes->homes = memory;
    TSR_TRY(status);
    if (is_home)
        homes->homes[homes->home_count++] = homes->owner_count;
    tsr_owner *owner = &homes->owners[homes->owner_count++];
    memcpy(owner->coordinate, coordinate, sizeof owner->coordinate);
    owner->rank = tsr_mesh_rank(problem->dst.layout->mesh, coordinate);
    return TSR_OK;
}

static bool contributes(const tsr_problem *problem, const int64_t *src, const int64_t *dst_coordinate)
{
    const int64_t rank = tsr_mesh_rank(problem->dst.layout->mesh, dst_coordinate);
    int64_t own[TSR_MAX_DIMS];
    return tsr_mesh_locate(problem->src.layout->mesh, rank, own) && tsr_problem_holds(problem, own, src);
}

static tsr_status append_owners(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst,
                                bool contributors_only)
{
    const int64_t count = tsr_side_count(&problem->dst, TSR_ROLE_FREE);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    for (int i = 0; i < problem->dst.ndim; i++)
        coordinate[i] = problem->dst.roles[i] == TSR_ROLE_ZERO ? 0 : dst[i];
    homes->owner_count = homes->home_count = 0;
    for (int64_t index = 0; index < count; index++) {
        tsr_side_decode(&problem->dst, TSR_ROLE_FREE, index, coordinate);
        TSR_TRY(append_owner(homes, problem, coordinate, !contributors_only || contributes(problem, src, coordinate)));
    }
    return TSR_OK;
}

tsr_status tsr_homes_list(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst)
{
    TSR_TRY(append_owners(homes, problem, src, dst, true));
    return homes->home_count > 0 ? TSR_OK : append_owners(homes, problem, src, dst, false);
}

void tsr_homes_free(tsr_homes *homes, tsr_context *context)
{
    tsr_release(context, homes->owners);
    tsr_release(context, homes->homes);
    *homes = (tsr_homes){0};
}

/* The home's own copy where it has one; on one mesh the copy on its own free dims, else replicas take turns. */
void tsr_homes_contributor(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, size_t home, int64_t term,
                           int64_t *contributor)
{
    const tsr_side *side = &problem->src;
    const tsr_owner *owner = &homes->owners[homes->homes[home]];
    memcpy(contributor, src, sizeof(int64_t) * TSR_MAX_DIMS);
    tsr_side_decode(side, TSR_ROLE_REDUCED, term, contributor);
    int64_t own[TSR_MAX_DIMS];
    if (tsr_mesh_locate(side->layout->mesh, owner->rank, own) &&
        (problem->same_mesh || (tsr_problem_holds(problem, own, src) && tsr_side_encode(side, TSR_ROLE_REDUCED, own) == term)))
        tsr_side_decode(side, TSR_ROLE_FREE, tsr_side_encode(side, TSR_ROLE_FREE, own), contributor);
    else
        tsr_side_decode(side, TSR_ROLE_FREE, (int64_t)home % problem->replicas, contributor);
}

/* Parts are whole cache lines of the innermost dim where that leaves everybody several. */
static int64_t part_unit(bool innermost, int64_t length, size_t element_bytes, size_t count)
{
    const int64_t line = tsr_max_i64(1, (int64_t)(64 / element_bytes));
    return innermost && length / line >= 4 * (int64_t)count ? line : 1;
}

tsr_part tsr_homes_part(int ndim, const int64_t *shape, size_t element_bytes, size_t home, size_t count)
{
    int best = -1;
    double best_share = 2;
    for (int dim = 0; dim < ndim; dim++) {
        const double share = (double)tsr_ceil_div(shape[dim], (int64_t)count) / (double)shape[dim];
        if (share < best_share) {
            best = dim;
            best_share = share;
        }
    }
    if (best < 0)
        return (tsr_part){-1, 0, home == 0};
    const tsr_cut cut = {
        .parts = (int64_t)count, .balanced = 1, .interleave = 1, .unit = part_unit(best == ndim - 1, shape[best], element_bytes, count)};
    const int64_t size = tsr_cut_size(&cut, shape[best], (int64_t)home);
    const int64_t begin = size > 0 ? tsr_cut_position(&cut, shape[best], (int64_t)home, 0).begin : 0;
    return (tsr_part){best, begin, begin + size};
}
