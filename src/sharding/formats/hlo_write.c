#include "sharding/formats/hlo_write.h"

#include "mesh/mesh.h"
#include "sharding/form/owner.h"
#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

/* The axes of a grid in its order: those that cut, dim by dim, then those of terms, then the rest,
 * along which ranks hold the same. */
static tsr_axis_list order_axes(const tsr_sharding_form *form, tsr_axis_list *same)
{
    tsr_axis_list all = {0};
    bool used[TSR_MAX_DIMS] = {false};
    for (int d = 0; d <= form->ndim; d++) {
        const tsr_axis_list *const list = d < form->ndim ? &form->cuts[d] : &form->summed;
        for (int i = 0; i < list->count; i++) {
            tsr_form_add(form, &all, list->at[i]);
            used[list->at[i]] = true;
        }
    }
    *same = (tsr_axis_list){0};
    for (int m = 0; m < tsr_mesh_ndim(form->mesh); m++)
        if (!used[m])
            tsr_form_add(form, same, m);
    for (int i = 0; i < same->count; i++)
        tsr_form_add(form, &all, same->at[i]);
    return all;
}

/* Every rank of the grid, apart by commas. */
static void write_list(const tsr_sharding_form *form, const tsr_axis_list *axes, tsr_text *out)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    const char *before = "";
    do {
        tsr_text_append(out, "%s%lld", before, (long long)tsr_mesh_rank(form->mesh, coordinate));
        before = ",";
    } while (tsr_mesh_next_along(form->mesh, axes->count, axes->at, coordinate));
}

/* `<=[4,2]T(1,0)`: neighbours in the mesh that stay neighbours are one dim of the list. */
static void write_iota(const tsr_sharding_form *form, const tsr_axis_list *axes, tsr_text *out)
{
    int64_t sizes[TSR_MAX_DIMS] = {0};
    int place[TSR_MAX_DIMS], previous = -1, runs = 0, order[TSR_MAX_DIMS];
    for (int m = 0, k = 0; m < tsr_mesh_ndim(form->mesh); m++)
        place[m] = tsr_mesh_size(form->mesh, m) > 1 ? k++ : -1;
    for (int i = 0; i < axes->count; i++) {
        const int at = place[axes->at[i]];
        const bool begins = i == 0 || at != previous + 1;
        if (begins)
            order[runs++] = at;
        sizes[order[runs - 1]] = (begins ? 1 : sizes[order[runs - 1]]) * tsr_mesh_size(form->mesh, axes->at[i]);
        previous = at;
    }
    tsr_text_append(out, "<=[");
    for (int k = 0, first = 1; k < axes->count; k++)
        if (sizes[k] > 0) {
            tsr_text_append(out, "%s%lld", first ? "" : ",", (long long)sizes[k]);
            first = 0;
        }
    tsr_text_append(out, "]");
    for (int i = 0; i < runs && runs > 1; i++) {
        int rank = 0;
        for (int k = 0; k < runs; k++)
            rank += order[k] < order[i];
        tsr_text_append(out, "%s%d%s", i ? "," : "T(", rank, i == runs - 1 ? ")" : "");
    }
}

static void write_grid(const tsr_sharding_form *form, bool iota, tsr_text *out)
{
    tsr_axis_list same;
    const tsr_axis_list axes = order_axes(form, &same);
    const char *before = "{devices=[";
    for (int d = 0; d < form->ndim; d++, before = ",")
        tsr_text_append(out, "%s%lld", before, (long long)tsr_form_parts(form, &form->cuts[d]));
    for (int i = 0; i < 2; i++) {
        const int64_t parts = tsr_form_parts(form, i == 0 ? &form->summed : &same);
        if (parts > 1) {
            tsr_text_append(out, "%s%lld", before, (long long)parts);
            before = ",";
        }
    }
    tsr_text_append(out, "]");
    if (iota && tsr_mesh_counts(form->mesh))
        write_iota(form, &axes, out);
    else
        write_list(form, &axes, out);
    tsr_text_append(out, "%s}",
                    form->summed.count == 0 ? (same.count > 0 ? " last_tile_dim_replicate" : "")
                    : same.count == 0       ? " last_tile_dims={unreduced}"
                                            : " last_tile_dims={unreduced, replicated}");
}

static tsr_status write(const tsr_layout *layout, bool iota, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_or_owner(layout, "HLO", &form));
    if (form.owner >= 0) {
        tsr_text_append(out, "{maximal device=%lld}", (long long)form.owner);
        return TSR_OK;
    }
    int cuts = 0;
    for (int d = 0; d < form.ndim; d++)
        cuts += form.cuts[d].count;
    if (cuts == 0 && tsr_form_parts(&form, &form.summed) == tsr_mesh_count(form.mesh)) {
        tsr_text_append(out, form.summed.count > 0 ? "{unreduced}" : "{replicated}");
        return TSR_OK;
    }
    if (cuts + form.summed.count == 0) {
        tsr_text_append(out, "{replicated}");
        return TSR_OK;
    }
    write_grid(&form, iota, out);
    return TSR_OK;
}

tsr_status tsr_write_hlo1(const tsr_layout *layout, tsr_text *out)
{
    return write(layout, false, out);
}

tsr_status tsr_write_hlo(const tsr_layout *layout, tsr_text *out)
{
    return write(layout, true, out);
}
