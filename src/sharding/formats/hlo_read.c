#include "sharding/formats/hlo_read.h"

#include "base/memory/memory.h"
#include "sharding/form/device_grid.h"
#include "sharding/form/device_list.h"

#include <tessera/sys/status.h>

#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct reader {
    tsr_scan *scan;
    const tsr_sharding_case *given;
    tsr_sharding_form form;
    tsr_device_grid grid; /* without a list of devices until the whole text is read */
    size_t list;          /* where the devices begin: those of version 1, or the first after `<=[` */
    bool iota;
    int tail; /* dims of the grid behind the tensor's */
} reader;

/* The devices, in either form; `device` is NULL in the first pass, which only checks the text. */
static tsr_status read_devices(reader *r, int64_t *device)
{
    r->scan->at = r->list;
    return r->iota ? tsr_device_list_read_short(r->scan, r->grid.count, "grid", device)
                   : tsr_device_list_read(r->scan, r->grid.count, device);
}

static tsr_status read_tail_kind(reader *r)
{
    const int dim = r->grid.ndim - r->tail;
    const size_t at = r->scan->at;
    if (tsr_token_accept(r->scan, "replicated"))
        return TSR_OK;
    if (tsr_token_accept(r->scan, "manual"))
        return tsr_token_unsupported(r->scan, at, "manual leaves open what the ranks hold");
    if (!tsr_token_accept(r->scan, "unreduced"))
        return tsr_scan_expected(r->scan, r->scan->at, "replicated, unreduced or manual");
    if (r->grid.summed >= 0)
        return tsr_scan_refuse(r->scan, at, "unreduced was there before");
    r->grid.summed = dim;
    return TSR_OK;
}

/* `last_tile_dims={unreduced, replicated}`: kinds of the last dims of the grid. They are counted
 * first, since the first kind is that of the outermost. */
static tsr_status read_tail(reader *r)
{
    const size_t begin = r->scan->at, end = begin + strcspn(r->scan->text + begin, "}");
    r->tail = 1;
    for (size_t i = begin; i < end; i++)
        r->tail += r->scan->text[i] == ',';
    if (r->tail > r->grid.ndim)
        return tsr_scan_refuse(r->scan, begin, "the grid has fewer dims than this has kinds");
    const int kinds = r->tail;
    do {
        TSR_TRY(read_tail_kind(r));
        r->tail--;
    } while (tsr_token_accept(r->scan, ","));
    r->tail = kinds;
    return tsr_token_need(r->scan, "}");
}

static tsr_status read_dims(reader *r)
{
    const size_t at = r->scan->at;
    TSR_TRY(tsr_token_numbers(r->scan, INT_MAX, r->grid.shape, TSR_GRID_MOST, &r->grid.ndim));
    TSR_TRY(tsr_token_need(r->scan, "]"));
    r->grid.count = tsr_device_grid_count(r->grid.shape, r->grid.ndim);
    if (r->grid.count < 1)
        return tsr_scan_refuse(r->scan, at, "a grid has from 1 to 2147483647 devices");
    return TSR_OK;
}

static tsr_status read_grid(reader *r)
{
    const size_t at = r->scan->at;
    TSR_TRY(read_dims(r));
    r->iota = tsr_token_accept(r->scan, "<=");
    if (r->iota)
        TSR_TRY(tsr_token_need(r->scan, "["));
    r->list = r->scan->at;
    TSR_TRY(read_devices(r, NULL));
    if (tsr_token_accept(r->scan, "last_tile_dim_replicate"))
        r->tail = 1;
    else if (tsr_token_accept(r->scan, "last_tile_dims={"))
        TSR_TRY(read_tail(r));
    r->grid.tensor_dims = r->grid.ndim - r->tail;
    if (r->grid.tensor_dims != r->given->ndim) {
        char reason[96];
        snprintf(reason, sizeof reason, "this grid is for a tensor of %d dims, but the tensor has %d",
                 r->grid.tensor_dims, r->given->ndim);
        return tsr_scan_refuse(r->scan, at, reason);
    }
    return TSR_OK;
}

static tsr_status match_grid(reader *r)
{
    tsr_context *const context = tsr_mesh_context(r->given->mesh);
    const size_t end = r->scan->at;
    TSR_TRY(tsr_device_grid_check(&r->grid, r->given->mesh));
    TSR_TRY(tsr_allocate(context, (size_t)r->grid.count * sizeof *r->grid.device, (void **)&r->grid.device));
    tsr_status status = read_devices(r, r->grid.device);
    if (status == TSR_OK)
        status = tsr_device_grid_match(&r->grid, &r->form);
    tsr_release(context, r->grid.device);
    r->scan->at = end;
    return status;
}

static tsr_status read_body(reader *r)
{
    const size_t at = r->scan->at;
    if (tsr_token_accept(r->scan, "replicated"))
        return TSR_OK;
    if (tsr_token_accept(r->scan, "{"))
        return tsr_token_unsupported(r->scan, at, "this is a tuple of shardings: give that of one tensor");
    if (tsr_token_accept(r->scan, "manual"))
        return tsr_token_unsupported(r->scan, at, "manual leaves open what the ranks hold");
    if (tsr_token_accept(r->scan, "unknown"))
        return tsr_token_unsupported(r->scan, at, "unknown leaves open what the ranks hold");
    if (tsr_token_accept(r->scan, "maximal")) {
        TSR_TRY(tsr_token_need(r->scan, "device="));
        return tsr_token_number(r->scan, INT_MAX, "a device", &r->form.owner);
    }
    if (tsr_token_accept(r->scan, "unreduced")) {
        for (int m = 0; m < tsr_mesh_ndim(r->given->mesh); m++)
            tsr_form_add(&r->form, &r->form.summed, m);
        return TSR_OK;
    }
    if (!tsr_token_accept(r->scan, "devices=["))
        return tsr_scan_expected(r->scan, r->scan->at, "replicated, unreduced, maximal, manual or devices=[..]");
    return read_grid(r);
}

/* `shard_as 1`, which asks that other tensors are cut alike, and `metadata={..}`, which says where
 * a sharding came from. */
static tsr_status skip_marks(tsr_scan *scan)
{
    int64_t group;
    if (tsr_token_accept(scan, "shard_as") || tsr_token_accept(scan, "shard_like"))
        TSR_TRY(tsr_token_number(scan, INT64_MAX, "the number of a group", &group));
    return tsr_token_accept(scan, "metadata={") ? tsr_token_skip_braces(scan) : TSR_OK;
}

tsr_status tsr_read_hlo(tsr_scan *scan, const tsr_sharding_case *given, tsr_layout **out)
{
    reader r = {.scan = scan, .given = given, .grid = {.summed = -1}};
    tsr_form_init(&r.form, given->mesh, given->ndim, given->shape);
    tsr_token_accept(scan, "sharding=");
    TSR_TRY(tsr_token_need(scan, "{"));
    TSR_TRY(read_body(&r));
    TSR_TRY(skip_marks(scan));
    TSR_TRY(tsr_token_need(scan, "}"));
    TSR_TRY(tsr_token_end(scan));
    if (r.grid.ndim > 0)
        TSR_TRY(match_grid(&r));
    return tsr_form_layout(&r.form, TSR_CUT_AT_ONCE, given->dtype, out);
}
