#include "sharding/formats/named_write.h"

#include "sharding/form/owner.h"
#include "sharding/text/axis_name.h"
#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

static void write_axes(const tsr_sharding_form *form, const tsr_axis_list *list, char quote, tsr_text *out)
{
    tsr_text_append(out, "{");
    for (int i = 0; i < list->count; i++)
        tsr_text_append(out, "%s%c%s%c", i ? ", " : "", quote, tsr_mesh_name(form->mesh, list->at[i]), quote);
    tsr_text_append(out, "}");
}

/* `[{"a"}, {}], unreduced={"b"}` */
static void write_dims(const tsr_sharding_form *form, char quote, tsr_text *out)
{
    tsr_text_append(out, "[");
    for (int d = 0; d < form->ndim; d++) {
        tsr_text_append(out, d ? ", " : "");
        write_axes(form, &form->cuts[d], quote, out);
    }
    tsr_text_append(out, "]");
    if (form->summed.count > 0) {
        tsr_text_append(out, ", unreduced=");
        write_axes(form, &form->summed, quote, out);
    }
}

static void write_sizes(const tsr_mesh *mesh, char quote, const char *between, tsr_text *out)
{
    for (int m = 0; m < tsr_mesh_ndim(mesh); m++)
        tsr_text_append(out, "%s%c%s%c=%lld", m ? between : "", quote, tsr_mesh_name(mesh, m), quote,
                        (long long)tsr_mesh_size(mesh, m));
}

tsr_status tsr_write_hlo3(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_or_owner(layout, "HLO", &form));
    if (form.owner >= 0) {
        tsr_text_append(out, "{maximal_mesh[device_id=%lld]}", (long long)form.owner);
        return TSR_OK;
    }
    TSR_TRY(tsr_axis_need_names(form.mesh, "version 3 of HLO shardings"));
    tsr_text_append(out, "{mesh[");
    write_sizes(form.mesh, '\'', ",", out);
    tsr_text_append(out, "], ");
    if (!tsr_mesh_counts(form.mesh)) {
        tsr_text_append(out, "device_ids=(");
        tsr_mesh_write_ranks(form.mesh, ",", "", out);
        tsr_text_append(out, "), ");
    }
    write_dims(&form, '\'', out);
    tsr_text_append(out, "}");
    return TSR_OK;
}

tsr_status tsr_write_sdy(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_or_owner(layout, "Shardy", &form));
    if (form.owner >= 0) {
        tsr_text_append(out, "#sdy.sharding<mesh<[], device_ids=[%lld]>, []>", (long long)form.owner);
        return TSR_OK;
    }
    TSR_TRY(tsr_axis_need_names(form.mesh, "Shardy"));
    if (tsr_mesh_counts(form.mesh)) {
        tsr_text_append(out, "#sdy.sharding<@mesh, ");
    } else {
        tsr_text_append(out, "#sdy.sharding<mesh<[");
        write_sizes(form.mesh, '"', ", ", out);
        tsr_text_append(out, "], device_ids=[");
        tsr_mesh_write_ranks(form.mesh, ", ", "", out);
        tsr_text_append(out, "]>, ");
    }
    write_dims(&form, '"', out);
    tsr_text_append(out, ">");
    return TSR_OK;
}
