#include "sharding/formats/named_read.h"

#include "base/memory/memory.h"
#include "sharding/form/device_list.h"
#include "sharding/text/axis_name.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <string.h>

/* In what XLA's version 3 and Shardy differ. */
typedef struct dialect {
    char quote;
    const char *ids, *ids_end; /* around a list of devices */
    const char *mesh_end;
    bool words; /* `replicated` and such may stand in place of dims; `[]`: no dim is cut */
} dialect;

typedef struct reader {
    tsr_scan *scan;
    const tsr_sharding_case *given;
    const dialect *dialect;
    tsr_sharding_form form;
    tsr_axes_used used;
    bool has_mesh; /* the text has a mesh of its own, with these names and sizes */
    int mesh_ndim;
    size_t name_at[TSR_MAX_DIMS], name_length[TSR_MAX_DIMS];
    int64_t sizes[TSR_MAX_DIMS];
} reader;

/* An axis of which parts were read: it is whole when `read` is its size. */
typedef struct pending {
    int mesh_dim; /* -1: none */
    int64_t read;
    size_t at;
} pending;

static tsr_status refuse_part(reader *r, size_t at)
{
    return tsr_token_unsupported(r->scan, at,
                                 "this is part of an axis, which a placement does not cut by: give the mesh with "
                                 "that part as an axis of its own");
}

static tsr_status find_axis(reader *r, size_t start, size_t length, int *mesh_dim)
{
    if (!r->has_mesh)
        return tsr_axis_find(r->scan, r->given->mesh, start, length, mesh_dim);
    for (int m = 0; m < r->mesh_ndim; m++)
        if (r->name_length[m] == length && memcmp(r->scan->text + r->name_at[m], r->scan->text + start, length) == 0) {
            *mesh_dim = m;
            return TSR_OK;
        }
    return tsr_scan_refuse(r->scan, start, "the text's mesh has no axis of this name");
}

/* `"a"` or `"a":(2)2`: part of size 2 after parts of 2. */
static tsr_status read_axis(reader *r, int *mesh_dim, int64_t *before, int64_t *size, size_t *at)
{
    size_t length;
    TSR_TRY(tsr_token_quoted(r->scan, r->dialect->quote, at, &length));
    TSR_TRY(find_axis(r, *at, length, mesh_dim));
    *before = 1;
    *size = tsr_mesh_size(r->given->mesh, *mesh_dim);
    if (!tsr_token_accept(r->scan, ":"))
        return TSR_OK;
    const int64_t whole = *size;
    TSR_TRY(tsr_token_need(r->scan, "("));
    TSR_TRY(tsr_token_number(r->scan, whole, "the size of the parts before", before));
    TSR_TRY(tsr_token_need(r->scan, ")"));
    TSR_TRY(tsr_token_number(r->scan, whole, "the size of this part of the axis", size));
    if (*before < 1 || *size < 1 || whole % (*before * *size) != 0)
        return tsr_scan_refuse(r->scan, *at, "the axis cannot be divided into this part and others");
    return TSR_OK;
}

/* Adds an axis to a list when all its parts were read, one behind the other. */
static tsr_status take_axis(reader *r, pending *part, tsr_axis_list *list)
{
    int mesh_dim;
    int64_t before, size;
    size_t at;
    TSR_TRY(read_axis(r, &mesh_dim, &before, &size, &at));
    if (part->mesh_dim >= 0 && (part->mesh_dim != mesh_dim || part->read != before))
        return refuse_part(r, part->at);
    if (part->mesh_dim < 0 && before != 1)
        return refuse_part(r, at);
    if (part->mesh_dim < 0)
        TSR_TRY(tsr_axis_use(r->scan, &r->used, mesh_dim, at));
    *part = (pending){mesh_dim, before * size, at};
    if (part->read < tsr_mesh_size(r->given->mesh, mesh_dim))
        return TSR_OK;
    tsr_form_add(&r->form, list, mesh_dim);
    part->mesh_dim = -1;
    return TSR_OK;
}

/* `{"a", "b", ?}` behind its first brace. */
static tsr_status read_axes(reader *r, tsr_axis_list *list)
{
    pending part = {.mesh_dim = -1};
    if (tsr_token_accept(r->scan, "}"))
        return TSR_OK;
    do {
        if (tsr_token_accept(r->scan, "?"))
            break;
        TSR_TRY(take_axis(r, &part, list));
    } while (tsr_token_accept(r->scan, ","));
    return part.mesh_dim >= 0 ? refuse_part(r, part.at) : tsr_token_need(r->scan, "}");
}

/* Axes along which the text says that the tensor is the same, which is so for all that it does not
 * use. */
static tsr_status read_replicated(reader *r)
{
    if (tsr_token_accept(r->scan, "}"))
        return TSR_OK;
    do {
        int mesh_dim;
        int64_t before, size;
        size_t at;
        TSR_TRY(read_axis(r, &mesh_dim, &before, &size, &at));
        if (size == tsr_mesh_size(r->given->mesh, mesh_dim))
            TSR_TRY(tsr_axis_use(r->scan, &r->used, mesh_dim, at));
    } while (tsr_token_accept(r->scan, ","));
    return tsr_token_need(r->scan, "}");
}

/* `[{"a"}, {}p1]`. On one device no dims are listed, however many the tensor has. */
static tsr_status read_dims(reader *r)
{
    int64_t priority;
    int ndim = 0;
    TSR_TRY(tsr_token_need(r->scan, "["));
    const size_t at = r->scan->at;
    while (!tsr_token_accept(r->scan, "]")) {
        if (ndim > 0)
            TSR_TRY(tsr_token_need(r->scan, ","));
        TSR_TRY(tsr_token_need(r->scan, "{"));
        if (ndim == r->given->ndim)
            return tsr_scan_refuse(r->scan, r->scan->at - 1, "the tensor does not have as many dims");
        TSR_TRY(read_axes(r, &r->form.cuts[ndim++]));
        if (tsr_token_accept(r->scan, "p"))
            TSR_TRY(tsr_token_number(r->scan, INT_MAX, "a priority", &priority));
    }
    const bool none = ndim == 0 && (r->dialect->words || r->form.owner >= 0);
    return ndim == r->given->ndim || none ? TSR_OK
                                          : tsr_scan_refuse(r->scan, at, "the tensor has more dims than these");
}

static tsr_status refuse_manual(reader *r)
{
    return tsr_token_unsupported(r->scan, r->scan->at, "manual leaves open what the ranks hold");
}

/* `, unreduced={"b"}` and such, and the end. */
static tsr_status read_marks(reader *r, const char *end)
{
    while (tsr_token_accept(r->scan, ",")) {
        if (tsr_token_accept(r->scan, "replicated={"))
            TSR_TRY(read_replicated(r));
        else if (tsr_token_accept(r->scan, "unreduced={"))
            TSR_TRY(read_axes(r, &r->form.summed));
        else if (r->dialect->words && tsr_token_accept(r->scan, "manual={"))
            return refuse_manual(r);
        else if (r->dialect->words && tsr_token_accept(r->scan, "metadata={"))
            TSR_TRY(tsr_token_skip_braces(r->scan));
        else
            return tsr_scan_expected(r->scan, r->scan->at, "replicated={..} or unreduced={..}");
    }
    return tsr_token_need(r->scan, end);
}

/* What all axes do, in place of dims; `*read` is false if something else comes next. */
static tsr_status read_word(reader *r, bool *read)
{
    *read = tsr_token_accept(r->scan, "replicated");
    if (*read)
        return TSR_OK;
    if (tsr_token_accept(r->scan, "manual"))
        return refuse_manual(r);
    *read = tsr_token_accept(r->scan, "unreduced");
    for (int m = 0; *read && m < tsr_mesh_ndim(r->given->mesh); m++) {
        tsr_form_add(&r->form, &r->form.summed, m);
        r->used.at[m] = true;
    }
    return TSR_OK;
}

static tsr_status read_rest(reader *r, const char *end)
{
    bool word = false;
    if (r->dialect->words)
        TSR_TRY(read_word(r, &word));
    if (!word)
        TSR_TRY(read_dims(r));
    return read_marks(r, end);
}

/* `"a"=2, "b"=4` */
static tsr_status read_sizes(reader *r)
{
    do {
        const int m = r->mesh_ndim;
        if (m == TSR_MAX_DIMS)
            return tsr_scan_refuse(r->scan, r->scan->at, "this axis is one too many for a mesh");
        TSR_TRY(tsr_token_quoted(r->scan, r->dialect->quote, &r->name_at[m], &r->name_length[m]));
        TSR_TRY(tsr_token_need(r->scan, "="));
        TSR_TRY(tsr_token_number(r->scan, INT_MAX, "the size of an axis", &r->sizes[m]));
        r->mesh_ndim++;
    } while (tsr_token_accept(r->scan, ","));
    return TSR_OK;
}

/* The text's mesh must be the one that was given; names count if that one has any. */
static tsr_status compare_mesh(reader *r, size_t at)
{
    const tsr_mesh *const mesh = r->given->mesh;
    bool same = r->mesh_ndim == tsr_mesh_ndim(mesh);
    for (int m = 0; same && m < r->mesh_ndim; m++) {
        const char *const name = tsr_mesh_name(mesh, m);
        same = r->sizes[m] == tsr_mesh_size(mesh, m) &&
               (!name || (strlen(name) == r->name_length[m] &&
                          memcmp(name, r->scan->text + r->name_at[m], r->name_length[m]) == 0));
    }
    return same ? TSR_OK : tsr_scan_refuse(r->scan, at, "this mesh has other axes than the mesh that is given");
}

static tsr_status compare_ids(reader *r, const int64_t *ids, size_t at)
{
    tsr_mesh *told;
    TSR_TRY(tsr_mesh_create_abstract(tsr_mesh_context(r->given->mesh), r->mesh_ndim, r->sizes, NULL, ids, &told));
    const bool same = tsr_mesh_equal(told, r->given->mesh);
    tsr_mesh_destroy(told);
    return same ? TSR_OK : tsr_scan_refuse(r->scan, at, "the mesh that is given has its ranks in another order");
}

static tsr_status read_ids(reader *r, size_t at)
{
    tsr_context *const context = tsr_mesh_context(r->given->mesh);
    const int64_t count = tsr_mesh_count(r->given->mesh);
    int64_t *ids = NULL;
    const size_t begin = r->scan->at;
    if (!tsr_token_accept(r->scan, ",") || !tsr_token_accept(r->scan, r->dialect->ids)) {
        r->scan->at = begin;
        return compare_ids(r, NULL, at);
    }
    TSR_TRY(tsr_allocate(context, (size_t)count * sizeof *ids, (void **)&ids));
    tsr_status status = tsr_token_accept(r->scan, "[") ? tsr_device_list_read_short(r->scan, count, "mesh", ids)
                                                       : tsr_device_list_read(r->scan, count, ids);
    if (status == TSR_OK)
        status = tsr_token_need(r->scan, r->dialect->ids_end);
    if (status == TSR_OK)
        status = compare_ids(r, ids, begin);
    tsr_release(context, ids);
    return status;
}

static tsr_status read_mesh(reader *r)
{
    const size_t at = r->scan->at;
    TSR_TRY(read_sizes(r));
    TSR_TRY(tsr_token_need(r->scan, "]"));
    TSR_TRY(compare_mesh(r, at));
    TSR_TRY(read_ids(r, at));
    return tsr_token_need(r->scan, r->dialect->mesh_end);
}

static tsr_status finish(reader *r, tsr_layout **out)
{
    TSR_TRY(tsr_token_end(r->scan));
    return tsr_form_layout(&r->form, TSR_CUT_AT_ONCE, r->given->dtype, out);
}

static reader begin(tsr_scan *scan, const tsr_sharding_case *given, const dialect *signs)
{
    reader r = {.scan = scan, .given = given, .dialect = signs};
    tsr_form_init(&r.form, given->mesh, given->ndim, given->shape);
    return r;
}

/* A sharding without a mesh: one device, or one word. */
static tsr_status read_hlo3_word(reader *r)
{
    bool word;
    if (tsr_token_accept(r->scan, "maximal_mesh[device_id=")) {
        TSR_TRY(tsr_token_number(r->scan, INT_MAX, "a device", &r->form.owner));
        TSR_TRY(tsr_token_need(r->scan, "]"));
    } else if (tsr_token_accept(r->scan, "maximal")) {
        TSR_TRY(tsr_token_need(r->scan, "device="));
        TSR_TRY(tsr_token_number(r->scan, INT_MAX, "a device", &r->form.owner));
    } else {
        TSR_TRY(read_word(r, &word));
        if (!word)
            return tsr_scan_expected(r->scan, r->scan->at, "mesh[..], maximal, replicated, unreduced or manual");
    }
    return read_marks(r, "}");
}

static tsr_status read_hlo3(reader *r)
{
    r->has_mesh = true;
    TSR_TRY(tsr_token_need(r->scan, "{"));
    if (!tsr_token_accept(r->scan, "mesh["))
        return read_hlo3_word(r);
    if (tsr_token_accept(r->scan, "]"))
        TSR_TRY(tsr_token_need(r->scan, ","));
    else
        TSR_TRY(read_mesh(r));
    return read_rest(r, "}");
}

tsr_status tsr_read_hlo3(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    static const dialect xla = {'\'', "device_ids=(", ")", ",", true};
    reader r = begin(scan, given, &xla);
    TSR_TRY(read_hlo3(&r));
    return finish(&r, out);
}

/* A mesh without axes holds the tensor on its one device, or, without a device, on all ranks. */
static tsr_status read_sdy_mesh(reader *r)
{
    r->has_mesh = true;
    if (!tsr_token_accept(r->scan, "]"))
        return read_mesh(r);
    if (tsr_token_accept(r->scan, ">"))
        return tsr_token_need(r->scan, ",");
    TSR_TRY(tsr_token_need(r->scan, ","));
    TSR_TRY(tsr_token_need(r->scan, "device_ids=["));
    TSR_TRY(tsr_token_number(r->scan, INT_MAX, "a device", &r->form.owner));
    TSR_TRY(tsr_token_need(r->scan, "]"));
    return tsr_token_need(r->scan, ">,");
}

static tsr_status read_sdy(reader *r)
{
    (void)tsr_token_accept(r->scan, "#sdy.sharding");
    TSR_TRY(tsr_token_need(r->scan, "<"));
    if (tsr_token_accept(r->scan, "mesh<[")) {
        TSR_TRY(read_sdy_mesh(r));
    } else {
        TSR_TRY(tsr_token_need(r->scan, "@"));
        r->scan->at += strcspn(r->scan->text + r->scan->at, " ,>");
        TSR_TRY(tsr_token_need(r->scan, ","));
    }
    return read_rest(r, ">");
}

tsr_status tsr_read_sdy(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    static const dialect shardy = {'"', "device_ids=[", "]", ">,", false};
    reader r = begin(scan, given, &shardy);
    TSR_TRY(read_sdy(&r));
    return finish(&r, out);
}
