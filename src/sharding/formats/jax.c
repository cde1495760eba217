#include "sharding/formats/jax.h"

#include "sharding/text/axis_name.h"

#include <tessera/sys/status.h>

typedef struct reader {
    tsr_scan *scan;
    const tsr_sharding_case *given;
    tsr_sharding_form form;
    tsr_axes_used used;
} reader;

static tsr_status read_axis(reader *r, tsr_axis_list *list)
{
    size_t start, length;
    int mesh_dim;
    TSR_TRY(tsr_token_quoted(r->scan, 0, &start, &length));
    TSR_TRY(tsr_axis_find(r->scan, r->given->mesh, start, length, &mesh_dim));
    if (list)
        TSR_TRY(tsr_axis_use(r->scan, &r->used, mesh_dim, start));
    if (list)
        tsr_form_add(&r->form, list, mesh_dim);
    return TSR_OK;
}

/* Names apart by commas, until `end`. */
static tsr_status read_axes(reader *r, const char *end, tsr_axis_list *list)
{
    while (!tsr_token_accept(r->scan, end)) {
        TSR_TRY(read_axis(r, list));
        if (!tsr_token_accept(r->scan, ","))
            return tsr_token_need(r->scan, end);
    }
    return TSR_OK;
}

/* `{'a'}` or `frozenset({'a'})` */
static tsr_status read_set(reader *r, tsr_axis_list *list)
{
    const bool frozen = tsr_token_accept(r->scan, "frozenset(");
    TSR_TRY(tsr_token_need(r->scan, "{"));
    TSR_TRY(read_axes(r, "}", list));
    return frozen ? tsr_token_need(r->scan, ")") : TSR_OK;
}

/* What cuts one dim: `None`, `'a'` or `('a', 'b')`. */
static tsr_status read_dim(reader *r, int dim)
{
    const size_t at = r->scan->at;
    tsr_axis_list *const list = &r->form.cuts[dim];
    if (dim == r->given->ndim)
        return tsr_scan_refuse(r->scan, at, "the tensor does not have as many dims");
    if (tsr_token_accept(r->scan, "None"))
        return TSR_OK;
    if (tsr_token_accept(r->scan, "PartitionSpec.UNCONSTRAINED") || tsr_token_accept(r->scan, "P.UNCONSTRAINED") ||
        tsr_token_accept(r->scan, "UNCONSTRAINED"))
        return tsr_token_unsupported(r->scan, at, "UNCONSTRAINED leaves open how the dim is cut");
    if (tsr_token_accept(r->scan, "("))
        return read_axes(r, ")", list);
    return tsr_token_accept(r->scan, "[") ? read_axes(r, "]", list) : read_axis(r, list);
}

/* JAX's `reduced` tells the gradient's layout: values are the same along these axes. */
static tsr_status read_all(reader *r)
{
    int dim = 0;
    while (!tsr_token_accept(r->scan, ")")) {
        if (tsr_token_accept(r->scan, "unreduced="))
            TSR_TRY(read_set(r, &r->form.summed));
        else if (tsr_token_accept(r->scan, "reduced="))
            TSR_TRY(read_set(r, NULL));
        else
            TSR_TRY(read_dim(r, dim++));
        if (!tsr_token_accept(r->scan, ","))
            return tsr_token_need(r->scan, ")");
    }
    return TSR_OK;
}

tsr_status tsr_read_jax(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    reader r = {.scan = scan, .given = given};
    tsr_form_init(&r.form, given->mesh, given->ndim, given->shape);
    (void)(tsr_token_accept(scan, "jax.sharding.") || tsr_token_accept(scan, "jax."));
    if (!tsr_token_accept(scan, "PartitionSpec(") && !tsr_token_accept(scan, "P("))
        return tsr_scan_expected(scan, scan->at, "PartitionSpec(");
    TSR_TRY(read_all(&r));
    TSR_TRY(tsr_token_end(scan));
    return tsr_form_layout(&r.form, TSR_CUT_AT_ONCE, given->dtype, out);
}

static void write_axes(const tsr_sharding_form *form, const tsr_axis_list *list, tsr_text *out)
{
    for (int i = 0; i < list->count; i++)
        tsr_text_append(out, "%s'%s'", i ? ", " : "", tsr_mesh_name(form->mesh, list->at[i]));
}

/* Dims at the end that nothing cuts are left out, as JAX does. */
tsr_status tsr_write_jax(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    TSR_TRY(tsr_form_of(layout, TSR_CUT_AT_ONCE, "JAX", &form));
    TSR_TRY(tsr_axis_need_names(form.mesh, "JAX"));
    int ndim = form.ndim;
    while (ndim > 0 && form.cuts[ndim - 1].count == 0)
        ndim--;
    tsr_text_append(out, "PartitionSpec(");
    for (int d = 0; d < ndim; d++) {
        const tsr_axis_list *const list = &form.cuts[d];
        tsr_text_append(out, "%s%s", d ? ", " : "", list->count == 0 ? "None" : list->count > 1 ? "(" : "");
        write_axes(&form, list, out);
        tsr_text_append(out, list->count > 1 ? ")" : "");
    }
    if (form.summed.count > 0) {
        tsr_text_append(out, "%sunreduced={", ndim ? ", " : "");
        write_axes(&form, &form.summed, out);
        tsr_text_append(out, "}");
    }
    tsr_text_append(out, ")");
    return TSR_OK;
}
