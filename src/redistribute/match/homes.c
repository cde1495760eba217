#include "redistribute/match/homes.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "mesh/mesh.h"

#include <tessera/sys/status.h>

#include <string.h>

/* Makes all owners homes: the ranks that hold the value of the destination piece, not a fill. */
static void take_owners(tsr_homes *homes, const tsr_problem *problem, const int64_t *dst)
{
    for (int i = 0; i < problem->dst.ndim; i++) {
        homes->coordinate[i] = problem->dst.roles[i] == TSR_ROLE_ZERO ? 0 : dst[i];
        homes->varies[i] = problem->dst.roles[i] == TSR_ROLE_FREE;
    }
    homes->count = tsr_side_count(&problem->dst, TSR_ROLE_FREE);
    homes->listed = false;
}

/* True if the coordinate on mesh dim `i` of the destination also picks the source piece: the dim's
 * twin is cut or kept. */
static bool is_in_piece(const tsr_problem *problem, int i)
{
    const int twin = problem->dst.twin[i];
    return twin >= 0 && (problem->src.roles[twin] == TSR_ROLE_CUT || problem->src.roles[twin] == TSR_ROLE_KEPT);
}

/* On one mesh: leaves only the owners that hold a term of source piece `src`. False if no owner
 * does. */
static bool narrow_homes(tsr_homes *homes, const tsr_problem *problem, const int64_t *src)
{
    for (int i = 0; i < problem->dst.ndim; i++) {
        if (!is_in_piece(problem, i))
            continue;
        const int64_t own = src[problem->dst.twin[i]];
        if (homes->varies[i])
            homes->count /= problem->dst.shape[i];
        else if (homes->coordinate[i] != own)
            return false;
        homes->varies[i] = false;
        homes->coordinate[i] = own;
    }
    return true;
}

/* `index`: row-major over the mesh dims on which homes vary. */
static int64_t rank_of(const tsr_homes *homes, const tsr_problem *problem, int64_t index)
{
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, homes->coordinate, sizeof coordinate);
    tsr_side_decode_dims(&problem->dst, homes->varies, index, coordinate);
    return tsr_mesh_rank(problem->dst.layout->mesh, coordinate);
}

/* The number of the owner at a destination coordinate; -1 if the rank there is not an owner. */
static int64_t number_at(const tsr_homes *homes, const tsr_problem *problem, const int64_t *dst)
{
    int64_t number = 0;
    for (int i = 0; i < problem->dst.ndim; i++) {
        if (homes->varies[i])
            number = number * problem->dst.shape[i] + dst[i];
        else if (homes->coordinate[i] != dst[i])
            return -1;
    }
    return number;
}

static tsr_status append_owner(tsr_homes *homes, const tsr_problem *problem, int64_t *count, int64_t number)
{
    void *memory = homes->owners;
    const tsr_status status =
        tsr_reserve(problem->dst.layout->context, &memory, &homes->capacity, (size_t)*count + 1, sizeof *homes->owners);
    homes->owners = memory;
    TSR_TRY(status);
    homes->owners[(*count)++] = number;
    return TSR_OK;
}

static int by_number(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Checks for each owner whether it contributes. */
static tsr_status list_from_owners(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t *found)
{
    for (int64_t i = 0; i < homes->count; i++) {
        int64_t own[TSR_MAX_DIMS];
        if (tsr_mesh_locate(problem->src.layout->mesh, rank_of(homes, problem, i), own) &&
            tsr_problem_holds(problem, own, src))
            TSR_TRY(append_owner(homes, problem, found, i));
    }
    return TSR_OK;
}

/* Checks for each contributor whether it is an owner. */
static tsr_status list_from_contributors(tsr_homes *homes, const tsr_problem *problem, const int64_t *src,
                                         int64_t *found)
{
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, src, sizeof coordinate);
    for (int64_t term = 0; term < problem->terms; term++) {
        tsr_side_decode(&problem->src, TSR_ROLE_REDUCED, term, coordinate);
        for (int64_t replica = 0; replica < problem->replicas; replica++) {
            tsr_side_decode(&problem->src, TSR_ROLE_FREE, replica, coordinate);
            int64_t dst[TSR_MAX_DIMS];
            const bool inside =
                tsr_mesh_locate(problem->dst.layout->mesh, tsr_mesh_rank(problem->src.layout->mesh, coordinate), dst);
            const int64_t number = inside ? number_at(homes, problem, dst) : -1;
            if (number >= 0)
                TSR_TRY(append_owner(homes, problem, found, number));
        }
    }
    tsr_sort_array(homes->owners, (size_t)*found, sizeof *homes->owners, by_number, NULL);
    return TSR_OK;
}

/* Between two meshes: lists the owners that contribute, from the owners or from the contributors,
 * whichever are fewer. */
static tsr_status list_contributors(tsr_homes *homes, const tsr_problem *problem, const int64_t *src)
{
    int64_t found = 0;
    if (problem->disjoint)
        return TSR_OK;
    TSR_TRY(tsr_meter_take(homes->meter, tsr_min_i64(problem->terms * problem->replicas, homes->count)));
    if (problem->terms * problem->replicas < homes->count)
        TSR_TRY(list_from_contributors(homes, problem, src, &found));
    else
        TSR_TRY(list_from_owners(homes, problem, src, &found));
    homes->listed = found > 0;
    homes->count = homes->listed ? found : homes->count;
    return TSR_OK;
}

tsr_status tsr_homes_find(tsr_homes *homes, const tsr_problem *problem, const int64_t *src, const int64_t *dst)
{
    take_owners(homes, problem, dst);
    if (!problem->same_mesh)
        return list_contributors(homes, problem, src);
    if (!narrow_homes(homes, problem, src))
        take_owners(homes, problem, dst);
    return TSR_OK;
}

void tsr_homes_free(tsr_homes *homes, tsr_context *context)
{
    tsr_release(context, homes->owners);
    *homes = (tsr_homes){0};
}

int64_t tsr_homes_rank(const tsr_homes *homes, const tsr_problem *problem, int64_t home)
{
    return rank_of(homes, problem, homes->listed ? homes->owners[home] : home);
}

int64_t tsr_homes_number(const tsr_homes *homes, const tsr_problem *problem, const int64_t *dst)
{
    const int64_t number = number_at(homes, problem, dst);
    if (!homes->listed)
        return number;
    int64_t home = 0;
    while (home < homes->count && homes->owners[home] != number)
        home++;
    return home < homes->count ? home : -1;
}

/* On one mesh a home takes the replica at its own coordinates on the source's free dims, so `src`
 * fixes these coordinates of the home. Between two meshes replicas take turns by home number. */
int64_t tsr_homes_served(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t index)
{
    if (!problem->same_mesh)
        return index * problem->replicas + tsr_side_encode(&problem->src, TSR_ROLE_FREE, src);
    int64_t number = 0, weight = 1;
    for (int i = problem->dst.ndim - 1; i >= 0; i--) {
        if (!homes->varies[i])
            continue;
        const int twin = problem->dst.twin[i];
        const bool given = twin >= 0 && problem->src.roles[twin] == TSR_ROLE_FREE;
        const int64_t size = problem->dst.shape[i];
        number += weight * (given ? src[twin] : index % size);
        index /= given ? 1 : size;
        weight *= size;
    }
    return index > 0 ? homes->count : number;
}

/* Homes vary on the fewest dims where owners contribute (narrow_homes()); with more dims no number
 * is lower. */
int64_t tsr_homes_first_served(const tsr_problem *problem, const int64_t *src)
{
    tsr_homes fewest = {0};
    for (int i = 0; i < problem->dst.ndim; i++)
        fewest.varies[i] = problem->dst.roles[i] == TSR_ROLE_FREE && !is_in_piece(problem, i);
    return tsr_homes_served(&fewest, problem, src, 0);
}

/* The home itself, if it holds the term; on one mesh the replica at the home's coordinates on the
 * source's free dims; else replicas take turns by home number. */
void tsr_homes_contributor(const tsr_homes *homes, const tsr_problem *problem, const int64_t *src, int64_t home,
                           int64_t term, int64_t *contributor)
{
    const tsr_side *side = &problem->src;
    memcpy(contributor, src, sizeof(int64_t) * TSR_MAX_DIMS);
    tsr_side_decode(side, TSR_ROLE_REDUCED, term, contributor);
    int64_t own[TSR_MAX_DIMS];
    if (tsr_mesh_locate(side->layout->mesh, tsr_homes_rank(homes, problem, home), own) &&
        (problem->same_mesh ||
         (tsr_problem_holds(problem, own, src) && tsr_side_encode(side, TSR_ROLE_REDUCED, own) == term)))
        tsr_side_decode(side, TSR_ROLE_FREE, tsr_side_encode(side, TSR_ROLE_FREE, own), contributor);
    else
        tsr_side_decode(side, TSR_ROLE_FREE, home % problem->replicas, contributor);
}

/* Along the innermost dim parts are whole cache lines, if every home then has four or more. */
static int64_t part_unit(bool innermost, int64_t length, size_t element_bytes, int64_t count)
{
    const int64_t line = tsr_max_i64(1, (int64_t)(TSR_LINE / element_bytes));
    return innermost && length / line >= 4 * count ? line : 1;
}

tsr_sharing tsr_homes_share(const tsr_homes *homes, const tsr_problem *problem, const int64_t *shape)
{
    const tsr_layout *layout = problem->src.layout;
    if (problem->each)
        return (tsr_sharing){.dim = -1, .busy = homes->count};
    int best = -1;
    double best_share = 2;
    for (int dim = 0; dim < layout->ndim; dim++) {
        const double share = (double)tsr_ceil_div(shape[dim], homes->count) / (double)shape[dim];
        if (share < best_share) {
            best = dim;
            best_share = share;
        }
    }
    if (best < 0)
        return (tsr_sharing){.dim = -1, .busy = 1};
    const int64_t unit = part_unit(best == layout->ndim - 1, shape[best], layout->element_bytes, homes->count);
    return (tsr_sharing){.dim = best,
                         .length = shape[best],
                         .cut = tsr_cut_balanced(homes->count, unit),
                         .busy = tsr_min_i64(homes->count, tsr_ceil_div(shape[best], unit))};
}

tsr_part tsr_sharing_part(const tsr_sharing *sharing, int64_t home)
{
    if (sharing->dim < 0)
        return (tsr_part){-1, 0, home < sharing->busy};
    const int64_t size = tsr_cut_size(&sharing->cut, sharing->length, home);
    const int64_t begin = size > 0 ? tsr_cut_position(&sharing->cut, sharing->length, home, 0, NULL).begin : 0;
    return (tsr_part){sharing->dim, begin, begin + size};
}
