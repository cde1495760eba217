#include "sharding/formats/tf.h"

#include "mesh/mesh.h"
#include "sharding/text/axis_name.h"
#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <string.h>

/* TensorFlow's word for a dim that nothing cuts. */
static const char unsharded[] = "unsharded";

/* What cuts one dim, where the scan is. */
static tsr_status read_spec(tsr_scan *scan, tsr_sharding_form *form, tsr_axes_used *used, int dim)
{
    const size_t at = scan->at, length = strcspn(scan->text + at, ", \t\n");
    int mesh_dim;
    if (length == 0)
        return tsr_scan_expected(scan, at, "the name of an axis, or unsharded");
    scan->at = at + length;
    if (length == strlen(unsharded) && memcmp(scan->text + at, unsharded, length) == 0)
        return TSR_OK;
    TSR_TRY(tsr_axis_find(scan, form->mesh, at, length, &mesh_dim));
    TSR_TRY(tsr_axis_use(scan, used, mesh_dim, at));
    tsr_form_add(form, &form->cuts[dim], mesh_dim);
    return TSR_OK;
}

/* `x,unsharded, mesh:`; the last comma may be left out, and so may the mesh: then `*has_mesh` is
 * false. */
static tsr_status read_specs(tsr_scan *scan, tsr_sharding_form *form, bool *has_mesh)
{
    tsr_axes_used used = {{false}};
    int dim = 0;
    TSR_TRY(tsr_token_need(scan, "sharding_specs:"));
    for (bool more = true;; more = tsr_token_accept(scan, ",")) {
        *has_mesh = tsr_token_accept(scan, "mesh:");
        if (*has_mesh || scan->text[scan->at] == '\0')
            break;
        if (!more)
            return tsr_scan_expected(scan, scan->at, "a comma, or mesh:");
        if (dim == form->ndim)
            return tsr_scan_refuse(scan, scan->at, "the tensor does not have as many dims");
        TSR_TRY(read_spec(scan, form, &used, dim++));
    }
    return dim == form->ndim ? TSR_OK : tsr_scan_refuse(scan, scan->at, "the tensor has more dims than this");
}

/* `x=2,y=2|`: the axes of the mesh that was given. */
static tsr_status read_axes(tsr_scan *scan, const tsr_mesh *mesh)
{
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++) {
        const size_t at = scan->at, length = strcspn(scan->text + at, "=|,");
        int64_t size;
        int mesh_dim;
        TSR_TRY(tsr_axis_find(scan, mesh, at, length, &mesh_dim));
        scan->at += length;
        TSR_TRY(tsr_token_need(scan, "="));
        TSR_TRY(tsr_token_number(scan, INT_MAX, "the size of an axis", &size));
        if (mesh_dim != m || size != tsr_mesh_size(mesh, m))
            return tsr_scan_refuse(scan, at, "the mesh that is given has other axes");
        if (m + 1 < tsr_mesh_ndim(mesh))
            TSR_TRY(tsr_token_need(scan, ","));
    }
    return tsr_token_need(scan, "|");
}

static tsr_status compare_ranks(tsr_scan *scan, const tsr_mesh *mesh)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0}, told;
    const size_t begin = scan->at;
    do {
        if (scan->at > begin)
            TSR_TRY(tsr_token_need(scan, ","));
        const size_t at = scan->at;
        TSR_TRY(tsr_token_number(scan, INT_MAX, "a device", &told));
        if (told != tsr_mesh_rank(mesh, coordinate))
            return tsr_scan_refuse(scan, at, "the mesh that is given has its ranks in another order");
    } while (tsr_grid_next(tsr_mesh_grid(mesh), coordinate));
    return tsr_token_need(scan, "|");
}

/* `NAME|x=2,y=2|*CPU` or `NAME|x=2,y=2|GLOBAL IDS|LOCAL IDS|DEVICES`, where the last lists say
 * nothing that a mesh has. */
static tsr_status read_mesh(tsr_scan *scan, const tsr_mesh *mesh)
{
    scan->at += strcspn(scan->text + scan->at, "|");
    TSR_TRY(tsr_token_need(scan, "|"));
    TSR_TRY(read_axes(scan, mesh));
    const size_t at = scan->at;
    if (!tsr_token_accept(scan, "*"))
        TSR_TRY(compare_ranks(scan, mesh));
    else if (!tsr_mesh_counts(mesh))
        return tsr_scan_refuse(scan, at, "the mesh that is given has its ranks in another order");
    scan->at += strlen(scan->text + scan->at);
    return TSR_OK;
}

/* TensorFlow cuts dims of which the axes' sizes are divisors, so all rules cut alike. */
static tsr_status check_even(const tsr_sharding_form *form)
{
    for (int d = 0; d < form->ndim; d++) {
        const int64_t parts = tsr_form_parts(form, &form->cuts[d]);
        if (form->shape[d] % parts != 0)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "TensorFlow cuts only evenly, and tensor dim %d has length %lld for %lld parts", d,
                                  (long long)form->shape[d], (long long)parts);
    }
    return TSR_OK;
}

tsr_status tsr_read_tf(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    tsr_sharding_form form;
    bool has_mesh;
    tsr_form_init(&form, given->mesh, given->ndim, given->shape);
    TSR_TRY(read_specs(scan, &form, &has_mesh));
    if (has_mesh)
        TSR_TRY(read_mesh(scan, given->mesh));
    TSR_TRY(check_even(&form));
    return tsr_form_layout(&form, TSR_CUT_AT_ONCE, given->dtype, out);
}

/* An axis that cuts cannot be named as what does not cut. */
static tsr_status check_name(const tsr_sharding_form *form, int dim, int mesh_dim)
{
    if (strcmp(tsr_mesh_name(form->mesh, mesh_dim), unsharded) != 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                          "TensorFlow's %s means that nothing cuts a dim, but an axis of this name cuts tensor dim %d: "
                          "give mesh dim %d another name",
                          unsharded, dim, mesh_dim);
}

static tsr_status check_words(const tsr_sharding_form *form)
{
    TSR_TRY(tsr_axis_need_names(form->mesh, "TensorFlow"));
    for (int d = 0; d < form->ndim; d++) {
        if (form->cuts[d].count > 1)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "TensorFlow cuts a tensor dim by one axis, and %d cut tensor dim %d",
                                  form->cuts[d].count, d);
        if (form->cuts[d].count == 1)
            TSR_TRY(check_name(form, d, form->cuts[d].at[0]));
    }
    return check_even(form);
}

/* Devices by number, since the mesh's ranks are in an order of their own. */
static void write_devices(const tsr_mesh *mesh, tsr_text *out)
{
    for (int list = 0; list < 2; list++) {
        tsr_mesh_write_ranks(mesh, ",", "", out);
        tsr_text_append(out, "|");
    }
    tsr_mesh_write_ranks(mesh, ",", "/job:localhost/replica:0/task:0/device:CPU:", out);
}

tsr_status tsr_write_tf(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_refuse_terms(layout, "TensorFlow"));
    TSR_TRY(tsr_form_of(layout, TSR_CUT_AT_ONCE, "TensorFlow", &form));
    TSR_TRY(check_words(&form));
    const bool counts = tsr_mesh_counts(form.mesh);
    tsr_text_append(out, "sharding_specs:");
    for (int d = 0; d < form.ndim; d++)
        tsr_text_append(out, "%s,", form.cuts[d].count ? tsr_mesh_name(form.mesh, form.cuts[d].at[0]) : "unsharded");
    tsr_text_append(out, " mesh:|");
    for (int m = 0; m < tsr_mesh_ndim(form.mesh); m++)
        tsr_text_append(out, "%s%s=%lld", m ? "," : "", tsr_mesh_name(form.mesh, m),
                        (long long)tsr_mesh_size(form.mesh, m));
    tsr_text_append(out, counts ? "|*CPU" : "|");
    if (!counts)
        write_devices(form.mesh, out);
    return TSR_OK;
}
