#include "sharding/formats/mlir.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "placement/layout.h"
#include "sharding/text/mesh_order.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

typedef struct reader {
    tsr_scan *scan;
    const tsr_sharding_case *given;
    tsr_sharding_form form;
    bool used[TSR_MAX_DIMS];
    bool split[TSR_MAX_DIMS]; /* by tensor dim: it has axes, which may all be of size 1 */
    size_t offsets;           /* where the list of offsets begins; 0: there is none */
    bool sizes;               /* the list has sizes instead */
} reader;

/* `[0, 1]`; sets `*some` to whether there are axes, which the list has but for those of size 1. */
static tsr_status read_axes(reader *r, tsr_axis_list *list, bool *some)
{
    int64_t axis;
    TSR_TRY(tsr_token_need(r->scan, "["));
    *some = !tsr_token_accept(r->scan, "]");
    if (!*some)
        return TSR_OK;
    do {
        TSR_TRY(tsr_token_number(r->scan, TSR_MAX_DIMS, "an axis of the grid", &axis));
        if (axis >= tsr_mesh_ndim(r->given->mesh))
            return tsr_scan_refuse(r->scan, r->scan->at - 1, "the mesh does not have as many dims");
        if (r->used[axis])
            return tsr_scan_refuse(r->scan, r->scan->at - 1, "this axis was there before");
        r->used[axis] = true;
        tsr_form_add(&r->form, list, (int)axis);
    } while (tsr_token_accept(r->scan, ","));
    return tsr_token_need(r->scan, "]");
}

/* `[[0], [], [1]]`; dims at the end may be left out. */
static tsr_status read_split_axes(reader *r)
{
    int dim = 0;
    TSR_TRY(tsr_token_need(r->scan, "split_axes"));
    TSR_TRY(tsr_token_need(r->scan, "="));
    TSR_TRY(tsr_token_need(r->scan, "["));
    if (tsr_token_accept(r->scan, "]"))
        return TSR_OK;
    do {
        if (dim == r->given->ndim)
            return tsr_scan_refuse(r->scan, r->scan->at, "the tensor does not have as many dims");
        TSR_TRY(read_axes(r, &r->form.cuts[dim], &r->split[dim]));
        dim++;
    } while (tsr_token_accept(r->scan, ","));
    return tsr_token_need(r->scan, "]");
}

/* One list of numbers, `[0, 1, 4]`, which are kept as a place in the text. */
static tsr_status skip_numbers(reader *r)
{
    int64_t number;
    if (r->offsets)
        return tsr_scan_refuse(r->scan, r->scan->at, "there was a list of offsets or sizes before");
    TSR_TRY(tsr_token_need(r->scan, "="));
    TSR_TRY(tsr_token_need(r->scan, "["));
    r->offsets = r->scan->at;
    do {
        if (tsr_token_accept(r->scan, "%") || tsr_token_accept(r->scan, "?"))
            return tsr_token_unsupported(r->scan, r->scan->at - 1, "a size that is known at run time alone");
        TSR_TRY(tsr_token_number(r->scan, INT64_MAX, "a number", &number));
    } while (tsr_token_accept(r->scan, ","));
    return tsr_token_need(r->scan, "]");
}

static tsr_status read_options(reader *r)
{
    for (;;) {
        const size_t at = r->scan->at;
        bool some;
        if (tsr_token_accept(r->scan, "partial")) {
            TSR_TRY(tsr_token_need(r->scan, "="));
            TSR_TRY(tsr_token_need(r->scan, "sum"));
            TSR_TRY(read_axes(r, &r->form.summed, &some));
        } else if (tsr_token_accept(r->scan, "sharded_dims_offsets")) {
            TSR_TRY(skip_numbers(r));
        } else if (tsr_token_accept(r->scan, "sharded_dims_sizes")) {
            TSR_TRY(skip_numbers(r));
            r->sizes = true;
        } else if (tsr_token_accept(r->scan, "halo_sizes")) {
            return tsr_token_unsupported(r->scan, at, "halos, elements that several ranks hold, have no placement");
        } else {
            return TSR_OK;
        }
    }
}

/* The sizes of the parts of `dim`, from its share of the list. */
static tsr_status read_parts(reader *r, int dim, int64_t parts, int64_t *sizes)
{
    const int64_t length = r->given->shape[dim];
    int64_t before = 0, left = length, number;
    const size_t at = r->scan->at;
    if (!r->sizes)
        TSR_TRY(tsr_token_number(r->scan, 0, "0, the first offset", &before));
    for (int64_t i = 0; i < parts; i++) {
        if (i > 0 || !r->sizes)
            TSR_TRY(tsr_token_need(r->scan, ","));
        TSR_TRY(tsr_token_number(r->scan, length, "a number up to the dim's length", &number));
        if (!r->sizes && number < before)
            return tsr_scan_refuse(r->scan, at, "these offsets do not ascend");
        sizes[i] = r->sizes ? number : number - before;
        before = number;
        left = sizes[i] <= left ? left - sizes[i] : -1; /* -1: they are too long together */
    }
    return left == 0 ? TSR_OK : tsr_scan_refuse(r->scan, at, "these parts do not sum to the dim's length");
}

/* True if the parts are chunks of ceil(length / parts). */
static bool are_chunks(const int64_t *sizes, int64_t parts, int64_t length)
{
    const int64_t chunk = tsr_ceil_div(length, parts);
    for (int64_t i = 0; i < parts; i++) {
        if (sizes[i] != tsr_min_i64(chunk, length))
            return false;
        length -= sizes[i];
    }
    return true;
}

/* The layout of dims cut at offsets: each by one axis. `room` is for the sizes of all axes. */
static tsr_status place_parts(reader *r, int64_t *room, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    bool first = true;
    for (int m = 0; m < TSR_MAX_DIMS; m++)
        placements[m] = tsr_replicate();
    for (int i = 0; i < r->form.summed.count; i++)
        placements[r->form.summed.at[i]] = tsr_partial(TSR_SUM);
    r->scan->at = r->offsets;
    for (int d = 0; d < r->given->ndim; d++) {
        const tsr_axis_list *const cuts = &r->form.cuts[d];
        if (!r->split[d])
            continue;
        if (cuts->count > 1)
            return tsr_token_unsupported(r->scan, r->offsets, "offsets for a dim that several axes cut");
        if (!first)
            TSR_TRY(tsr_token_need(r->scan, ","));
        first = false;
        const int64_t parts = tsr_form_parts(&r->form, cuts);
        TSR_TRY(read_parts(r, d, parts, room));
        if (cuts->count == 0)
            continue;
        placements[cuts->at[0]] = tsr_shard(d);
        if (are_chunks(room, parts, r->given->shape[d]))
            continue;
        placements[cuts->at[0]].sizes = room;
        placements[cuts->at[0]].size_count = (size_t)parts;
        room += parts;
    }
    TSR_TRY(tsr_token_need(r->scan, "]"));
    return tsr_layout_create(r->given->mesh, placements, r->given->ndim, r->given->shape, r->given->dtype, out);
}

static tsr_status make_uneven(reader *r, tsr_layout **out)
{
    tsr_context *const context = tsr_mesh_context(r->given->mesh);
    int64_t *room, count = 1;
    for (int m = 0; m < tsr_mesh_ndim(r->given->mesh); m++)
        count += tsr_mesh_size(r->given->mesh, m);
    TSR_TRY(tsr_allocate_array(context, (size_t)count, sizeof *room, (void **)&room));
    const tsr_status status = place_parts(r, room, out);
    tsr_release(context, room);
    return status;
}

static tsr_status check_even(reader *r)
{
    for (int d = 0; d < r->given->ndim; d++) {
        const int64_t parts = tsr_form_parts(&r->form, &r->form.cuts[d]);
        char reason[160];
        if (r->given->shape[d] % parts == 0)
            continue;
        snprintf(reason, sizeof reason,
                 "tensor dim %d has length %lld for %lld parts: the text needs sharded_dims_offsets to say where "
                 "uneven parts begin",
                 d, (long long)r->given->shape[d], (long long)parts);
        return tsr_token_unsupported(r->scan, r->scan->at, reason);
    }
    return TSR_OK;
}

/* `%s = shard.sharding @grid split_axes = [..] .. : !shard.sharding`; the dialect was called mesh
 * before. */
tsr_status tsr_read_mlir(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    reader r = {.scan = scan, .given = given};
    tsr_form_init(&r.form, given->mesh, given->ndim, given->shape);
    if (tsr_token_accept(scan, "%")) {
        scan->at += strcspn(scan->text + scan->at, " =");
        TSR_TRY(tsr_token_need(scan, "="));
    }
    if (!tsr_token_accept(scan, "mesh.sharding @"))
        TSR_TRY(tsr_token_need(scan, "shard.sharding @"));
    scan->at += strcspn(scan->text + scan->at, " \n");
    TSR_TRY(read_split_axes(&r));
    TSR_TRY(read_options(&r));
    if (tsr_token_accept(scan, ":") && !tsr_token_accept(scan, "!mesh.sharding"))
        TSR_TRY(tsr_token_need(scan, "!shard.sharding"));
    TSR_TRY(tsr_token_end(scan));
    if (r.offsets)
        return make_uneven(&r, out);
    TSR_TRY(check_even(&r));
    return tsr_form_layout(&r.form, TSR_CUT_AT_ONCE, given->dtype, out);
}

/* Whether all axes cut every dim at once into even parts. */
static tsr_status find_even(const tsr_layout *layout, bool *even)
{
    tsr_sharding_form form;
    const tsr_status status = tsr_form_of(layout, TSR_CUT_AT_ONCE, "MLIR", &form);
    *even = status == TSR_OK;
    if (status != TSR_OK)
        return status == TSR_ERROR_UNSUPPORTED ? TSR_OK : status;
    for (int d = 0; d < form.ndim; d++)
        *even = *even && form.shape[d] % tsr_form_parts(&form, &form.cuts[d]) == 0;
    return TSR_OK;
}

/* The offsets of the parts of one dim, which must follow one another; several axes cut in their
 * order. */
static tsr_status write_parts(const tsr_layout *layout, int dim, tsr_text *out)
{
    const tsr_dim_cuts *const cuts = &layout->dims[dim];
    int64_t coordinate[TSR_MAX_DIMS] = {0}, end = 0;
    tsr_text_append(out, "0");
    do {
        tsr_interval part;
        size_t count;
        TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, &part, 1, &count));
        if (count > 1 || (count == 1 && part.begin != end) || cuts->count > 1)
            return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                                  "MLIR has no word for how tensor dim %d is cut: it knows parts that follow one "
                                  "another, and uneven ones by one axis alone",
                                  dim);
        end = count == 1 ? part.end : end;
        tsr_text_append(out, ", %lld", (long long)end);
    } while (tsr_mesh_next_along(layout->mesh, cuts->count, cuts->mesh_dim, coordinate));
    return TSR_OK;
}

static tsr_status write_offsets(const tsr_layout *layout, tsr_text *out)
{
    const char *before = " sharded_dims_offsets = [";
    for (int d = 0; d < layout->ndim; d++) {
        if (layout->dims[d].count == 0)
            continue;
        tsr_text_append(out, "%s", before);
        TSR_TRY(write_parts(layout, d, out));
        before = ", ";
    }
    tsr_text_append(out, "]");
    return TSR_OK;
}

tsr_status tsr_write_mlir(const tsr_layout *layout, tsr_text *out)
{
    tsr_sharding_form form;
    bool even;
    TSR_TRY(tsr_form_refuse_terms(layout, "MLIR"));
    TSR_TRY(tsr_form_of_axes(layout, "MLIR", &form));
    TSR_TRY(find_even(layout, &even));
    tsr_text_append(out, "shard.sharding @mesh split_axes = [");
    for (int d = 0; d < form.ndim; d++) {
        tsr_text_append(out, d ? ", [" : "[");
        for (int i = 0; i < form.cuts[d].count; i++)
            tsr_text_append(out, "%s%d", i ? ", " : "", form.cuts[d].at[i]);
        tsr_text_append(out, "]");
    }
    tsr_text_append(out, "]");
    if (!even)
        TSR_TRY(write_offsets(layout, out));
    tsr_text_append(out, " : !shard.sharding");
    return TSR_OK;
}
