#include "sharding/form/form.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "placement/ownership.h"
#include "sharding/form/same_cuts.h"

#include <tessera/sys/status.h>

#include <string.h>

void tsr_form_init(tsr_sharding_form *form, const tsr_mesh *mesh, int ndim, const int64_t *shape)
{
    *form = (tsr_sharding_form){.mesh = mesh, .ndim = ndim, .shape = shape, .owner = -1};
}

void tsr_form_add(const tsr_sharding_form *form, tsr_axis_list *list, int mesh_dim)
{
    if (tsr_mesh_size(form->mesh, mesh_dim) > 1)
        list->at[list->count++] = mesh_dim;
}

int64_t tsr_form_parts(const tsr_sharding_form *form, const tsr_axis_list *list)
{
    int64_t parts = 1;
    for (int i = 0; i < list->count; i++)
        parts *= tsr_mesh_size(form->mesh, list->at[i]);
    return parts;
}

/* True if the axes of `list` from number `first` on, one after the other, cut `length` into chunks
 * of `chunk` too. */
static bool falls_alike(const tsr_sharding_form *form, const tsr_axis_list *list, int first, int64_t length,
                        int64_t chunk)
{
    if (length == 0 || first == list->count)
        return true;
    int64_t whole = chunk;
    for (int i = first + 1; i < list->count; i++)
        whole *= tsr_mesh_size(form->mesh, list->at[i]);
    const int64_t parts = tsr_mesh_size(form->mesh, list->at[first]);
    if (tsr_ceil_div(length, parts) != whole && length > 1)
        return false;
    return (length < whole || falls_alike(form, list, first + 1, whole, chunk)) &&
           falls_alike(form, list, first + 1, length % whole, chunk);
}

/* True if parts that differ by at most one, by the axes of `list` from number `first` on, are the
 * chunks. */
static bool is_balanced(const tsr_sharding_form *form, const tsr_axis_list *list, int first, int64_t length)
{
    if (length == 0 || first == list->count)
        return true;
    const int64_t parts = tsr_mesh_size(form->mesh, list->at[first]), each = length / parts, longer = length % parts;
    if (each > 0 && longer > 0 && longer < parts - 1)
        return false;
    return (longer == 0 || is_balanced(form, list, first + 1, each + 1)) && is_balanced(form, list, first + 1, each);
}

/* Placements of the axes that cut `dim`. The order is given where it is not that of the mesh, and
 * units, or that parts are balanced, where cuts into chunks one after the other fall elsewhere. */
static void place_cuts(const tsr_sharding_form *form, int dim, tsr_cut_rule rule, tsr_placement *placements)
{
    const tsr_axis_list *const list = &form->cuts[dim];
    const int64_t parts = tsr_form_parts(form, list);
    int64_t unit = parts > 0 ? tsr_ceil_div(form->shape[dim], parts) : 1;
    bool ordered = true;
    for (int i = 1; i < list->count; i++)
        ordered = ordered && list->at[i - 1] < list->at[i];
    const bool balanced = rule == TSR_CUT_BALANCED && !is_balanced(form, list, 0, form->shape[dim]);
    const bool units = rule == TSR_CUT_AT_ONCE && unit > 0 && !falls_alike(form, list, 0, form->shape[dim], unit);
    for (int i = list->count - 1; i >= 0; i--) {
        tsr_placement *const p = &placements[list->at[i]];
        *p = tsr_shard(dim);
        p->order = ordered ? TSR_ORDER_DEFAULT : i;
        p->balanced = balanced;
        p->unit = units && unit > 1 ? unit : 0;
        if (i > 0) /* behind the last, this may be more than 2^63 - 1 */
            unit *= tsr_mesh_size(form->mesh, list->at[i]);
    }
}

static tsr_status refuse_owner(const tsr_sharding_form *form, const char *reason)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "a tensor of %d dims on device %lld alone: %s", form->ndim,
                          (long long)form->owner, reason);
}

/* Leaves all to the owner's coordinate: by sizes of one tensor dim for each mesh dim, or, where the
 * coordinate is 0, by a unit as long as the tensor dim, after the sizes. `sizes` has room for those
 * of all mesh dims together. */
static tsr_status place_on_owner(const tsr_sharding_form *form, const int64_t *coordinate, tsr_placement *placements,
                                 int64_t *sizes)
{
    int next = 0;
    for (int m = 0; m < tsr_mesh_ndim(form->mesh); m++) {
        const int64_t size = tsr_mesh_size(form->mesh, m);
        if (size == 1)
            continue;
        if (form->ndim == 0)
            return refuse_owner(form, "a mesh of several ranks holds it on all of them; use a mesh of that rank");
        if (coordinate[m] == 0) {
            placements[m] = tsr_shard(0);
            placements[m].unit = form->shape[0] > 0 ? form->shape[0] : 1;
            placements[m].order = 1 + m;
            continue;
        }
        if (next == form->ndim)
            return refuse_owner(form, "sizes say that for one mesh dim a tensor dim; flatten the mesh");
        memset(sizes, 0, (size_t)size * sizeof *sizes);
        sizes[coordinate[m]] = form->shape[next];
        placements[m] = tsr_shard(next++);
        placements[m].order = 0;
        placements[m].sizes = sizes;
        placements[m].size_count = (size_t)size;
        sizes += size;
    }
    return TSR_OK;
}

static tsr_status find_owner(const tsr_sharding_form *form, int64_t *coordinate)
{
    int inside = 0;
    TSR_TRY(tsr_mesh_coordinate_of(form->mesh, form->owner, coordinate, &inside));
    if (inside)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "the tensor is on device %lld, which the mesh does not have",
                          (long long)form->owner);
}

static tsr_status layout_on_owner(const tsr_sharding_form *form, tsr_placement *placements, tsr_dtype dtype,
                                  tsr_layout **out)
{
    tsr_context *const context = tsr_mesh_context(form->mesh);
    int64_t *sizes = NULL, count = 0, coordinate[TSR_MAX_DIMS];
    TSR_TRY(find_owner(form, coordinate));
    for (int m = 0; m < tsr_mesh_ndim(form->mesh); m++)
        count += tsr_mesh_size(form->mesh, m);
    TSR_TRY(tsr_allocate_array(context, (size_t)count, sizeof *sizes, (void **)&sizes));
    tsr_status status = place_on_owner(form, coordinate, placements, sizes);
    if (status == TSR_OK)
        status = tsr_layout_create(form->mesh, placements, form->ndim, form->shape, dtype, out);
    tsr_release(context, sizes);
    return status;
}

tsr_status tsr_form_layout(const tsr_sharding_form *form, tsr_cut_rule rule, tsr_dtype dtype, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    for (int m = 0; m < TSR_MAX_DIMS; m++)
        placements[m] = tsr_replicate();
    if (form->owner >= 0)
        return layout_on_owner(form, placements, dtype, out);
    for (int i = 0; i < form->summed.count; i++)
        placements[form->summed.at[i]] = tsr_partial(TSR_SUM);
    for (int dim = 0; dim < form->ndim; dim++)
        place_cuts(form, dim, rule, placements);
    return tsr_layout_create(form->mesh, placements, form->ndim, form->shape, dtype, out);
}

static tsr_status refuse_partial(const char *format, int mesh_dim, tsr_reduce_op op)
{
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "%s has no word for P(%s), which mesh dim %d has: it knows sums of terms alone", format,
                          tsr_reduce_op_name(op), mesh_dim);
}

tsr_status tsr_form_refuse_terms(const tsr_layout *layout, const char *format)
{
    for (int m = 0; m < layout->mesh_ndim; m++)
        if (tsr_layout_kind(layout, m) == TSR_PARTIAL)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s has no word for P(%s), which mesh dim %d has", format,
                                  tsr_reduce_op_name(layout->placements[m].op), m);
    return TSR_OK;
}

tsr_status tsr_form_of_axes(const tsr_layout *layout, const char *format, tsr_sharding_form *form)
{
    tsr_form_init(form, layout->mesh, layout->ndim, layout->shape);
    for (int m = 0; m < layout->mesh_ndim; m++) {
        const tsr_placement_kind kind = tsr_layout_kind(layout, m);
        if (kind == TSR_PARTIAL && layout->placements[m].op != TSR_SUM)
            return refuse_partial(format, m, layout->placements[m].op);
        if (kind == TSR_PARTIAL)
            tsr_form_add(form, &form->summed, m);
    }
    for (int dim = 0; dim < layout->ndim; dim++)
        for (int i = 0; i < layout->dims[dim].count; i++)
            tsr_form_add(form, &form->cuts[dim], layout->dims[dim].mesh_dim[i]);
    return TSR_OK;
}

static tsr_status refuse_cuts(const char *format, tsr_cut_rule rule, int dim)
{
    static const char *const words[] = {
        [TSR_CUT_AT_ONCE] = "chunks of ceil(L / parts), by all axes at once",
        [TSR_CUT_IN_TURN] = "chunks of ceil(L / n), by one axis after the other",
        [TSR_CUT_BALANCED] = "parts that differ by at most one, by one axis after the other",
    };
    return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s has no word for how tensor dim %d is cut: it knows %s", format,
                          dim, words[rule]);
}

static tsr_status check_cuts(const tsr_layout *layout, const tsr_layout *ruled, tsr_cut_rule rule, const char *format)
{
    for (int dim = 0; dim < layout->ndim; dim++) {
        bool same;
        TSR_TRY(tsr_same_cuts(layout, ruled, dim, &same));
        if (!same)
            return refuse_cuts(format, rule, dim);
    }
    return TSR_OK;
}

tsr_status tsr_form_of(const tsr_layout *layout, tsr_cut_rule rule, const char *format, tsr_sharding_form *form)
{
    tsr_layout *ruled;
    TSR_TRY(tsr_form_of_axes(layout, format, form));
    TSR_TRY(tsr_form_layout(form, rule, layout->dtype, &ruled));
    const tsr_status status = check_cuts(layout, ruled, rule, format);
    tsr_layout_destroy(ruled);
    return status;
}
