#include "ops/rules/alike.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <string.h>

/* Intervals that are compared without allocating memory. */
#define FEW 16

static bool is_cut(const tsr_mesh *mesh, const tsr_placement *cuts, int dim)
{
    return cuts[dim].kind == TSR_SHARD && tsr_mesh_size(mesh, dim) > 1;
}

static bool are_same(const tsr_mesh *mesh, const tsr_placement *a, const tsr_placement *b)
{
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        if (is_cut(mesh, a, dim) && (!tsr_placement_same(&a[dim], &b[dim]) || a[dim].order != b[dim].order))
            return false;
    }
    return true;
}

static tsr_status compare_lists(const tsr_layout *const layouts[2], const int64_t *coordinate, const size_t count,
                                tsr_interval *buffer, bool *same)
{
    size_t ignored;
    TSR_TRY(tsr_layout_intervals(layouts[0], coordinate, 0, buffer, count, &ignored));
    TSR_TRY(tsr_layout_intervals(layouts[1], coordinate, 0, buffer + count, count, &ignored));
    *same = memcmp(buffer, buffer + count, count * sizeof *buffer) == 0;
    return TSR_OK;
}

/* Compares what a coordinate owns. */
static tsr_status compare_at(const tsr_layout *const layouts[2], const int64_t *coordinate, bool *same)
{
    size_t count, other;
    TSR_TRY(tsr_layout_intervals(layouts[0], coordinate, 0, NULL, 0, &count));
    TSR_TRY(tsr_layout_intervals(layouts[1], coordinate, 0, NULL, 0, &other));
    *same = count == other;
    if (!*same || count == 0)
        return TSR_OK;
    tsr_interval few[2 * FEW];
    if (count <= FEW)
        return compare_lists(layouts, coordinate, count, few, same);
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(layouts[0]));
    void *many;
    TSR_TRY(tsr_allocate(context, 2 * count * sizeof(tsr_interval), &many));
    const tsr_status status = compare_lists(layouts, coordinate, count, many, same);
    tsr_release(context, many);
    return status;
}

/* Goes on to the next coordinate in the mesh dims that are cut; false: there is none. */
static bool advance(const tsr_mesh *mesh, const tsr_placement *cuts, int64_t *coordinate)
{
    for (int dim = tsr_mesh_ndim(mesh) - 1; dim >= 0; dim--) {
        if (!is_cut(mesh, cuts, dim))
            continue;
        if (++coordinate[dim] < tsr_mesh_size(mesh, dim))
            return true;
        coordinate[dim] = 0;
    }
    return false;
}

static tsr_status compare_everywhere(const tsr_layout *const layouts[2], const tsr_placement *cuts, bool *same)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(layouts[0]);
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    *same = true;
    do {
        TSR_TRY(compare_at(layouts, coordinate, same));
    } while (*same && advance(mesh, cuts, coordinate));
    return TSR_OK;
}

tsr_status tsr_cuts_alike(const tsr_mesh *mesh, int64_t size, const tsr_placement *a, const tsr_placement *b,
                          bool *alike)
{
    *alike = false;
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        if (is_cut(mesh, a, dim) != is_cut(mesh, b, dim))
            return TSR_OK;
    }
    *alike = are_same(mesh, a, b);
    if (*alike)
        return TSR_OK;
    tsr_layout *ours = NULL, *theirs = NULL;
    tsr_status status = tsr_layout_create(mesh, a, 1, &size, TSR_U8, &ours);
    if (status == TSR_OK)
        status = tsr_layout_create(mesh, b, 1, &size, TSR_U8, &theirs);
    if (status == TSR_OK && !(*alike = tsr_layout_equal(ours, theirs)))
        status = compare_everywhere((const tsr_layout *const[]){ours, theirs}, a, alike);
    tsr_layout_destroy(theirs);
    tsr_layout_destroy(ours);
    return status;
}

/* True, with the status, if `cuts` with `plain` on a mesh dim is a layout and alike. */
static tsr_status try_form(const tsr_mesh *mesh, int64_t size, tsr_placement *cuts, int dim, tsr_placement plain,
                           bool *taken)
{
    tsr_placement with[TSR_MAX_DIMS];
    memcpy(with, cuts, (size_t)tsr_mesh_ndim(mesh) * sizeof *with);
    with[dim] = plain;
    with[dim].order = cuts[dim].order;
    *taken = false;
    const tsr_status status = tsr_cuts_alike(mesh, size, cuts, with, taken);
    if (status == TSR_OK && *taken)
        cuts[dim] = with[dim];
    return status == TSR_ERROR_ARGUMENT ? TSR_OK : status;
}

int tsr_cuts_order(const tsr_mesh *mesh, const tsr_placement *cuts, int order[TSR_MAX_DIMS])
{
    int count = 0;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        if (!is_cut(mesh, cuts, k))
            continue;
        const int own = cuts[k].order == TSR_ORDER_DEFAULT ? k : cuts[k].order;
        int place = count++;
        for (; place > 0; place--) {
            const tsr_placement *const before = &cuts[order[place - 1]];
            if ((before->order == TSR_ORDER_DEFAULT ? order[place - 1] : before->order) < own)
                break;
            order[place] = order[place - 1];
        }
        order[place] = k;
    }
    return count;
}

/* Searches units, interleaves and blocks, too. */
static tsr_status search_forms(const tsr_mesh *mesh, int64_t size, tsr_placement *cuts, tsr_cut_lists *lists)
{
    tsr_parts parts;
    bool found;
    int order[TSR_MAX_DIMS];
    tsr_placement plainest[TSR_MAX_DIMS];
    tsr_cuts_order(mesh, cuts, order);
    TSR_TRY(tsr_parts_list(mesh, size, cuts, &parts));
    const tsr_status status = tsr_parts_express(mesh, &parts, order, lists, plainest, &found);
    for (int k = 0; k < tsr_mesh_ndim(mesh) && status == TSR_OK && found; k++) {
        plainest[k].order = cuts[k].order;
        if (is_cut(mesh, cuts, k) && tsr_cuts_are_plainer(&plainest[k], &cuts[k], 1))
            cuts[k] = plainest[k];
    }
    tsr_parts_clear(&parts);
    return status;
}

tsr_status tsr_cuts_simplify(const tsr_mesh *mesh, int64_t size, tsr_placement *cuts, tsr_cut_lists *lists)
{
    tsr_placement balanced = tsr_shard(0);
    bool plain = true;
    balanced.balanced = 1;
    for (int dim = 0; dim < tsr_mesh_ndim(mesh); dim++) {
        const tsr_placement *const own = &cuts[dim];
        bool taken = own->kind != TSR_SHARD || tsr_placement_same(own, &(tsr_placement){.kind = TSR_SHARD});
        if (!taken)
            TSR_TRY(try_form(mesh, size, cuts, dim, tsr_shard(0), &taken));
        if (!taken && !tsr_placement_same(own, &balanced))
            TSR_TRY(try_form(mesh, size, cuts, dim, balanced, &taken));
        plain = plain && (taken || tsr_placement_same(own, &balanced));
    }
    return plain ? TSR_OK : search_forms(mesh, size, cuts, lists);
}
