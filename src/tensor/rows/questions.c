/* Which rank has which rows, by a layout or by a list of parts. */
#include "base/checked.h"
#include "device/device.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/walk.h"
#include "tensor/rows/row_ids.h"

#include <tessera/rows.h>
#include <tessera/sys/status.h>

#include <string.h>

static tsr_status check_layout(const char *call, const tsr_layout *layout)
{
    if (!layout)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: layout is NULL", call);
    if (layout->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the layout is of a scalar, which has no rows", call);
    return TSR_OK;
}

/* Checks ids of which there are `end` things. */
static tsr_status check_ids(const char *call, const char *name, const tsr_tensor *ids, int64_t end, const char *things)
{
    int64_t id = 0;
    char device[64];
    TSR_TRY(tsr_row_ids_check(call, name, ids));
    if (ids->device.driver)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED, "%s: %s is on device %s: questions take numbers on the host", call,
                              name, tsr_device_print(ids->device, device));
    if (!tsr_host_is_meant(ids->device, NULL))
        return tsr_refuse_host(name, ids->device, NULL);
    const int64_t at = tsr_row_ids_find_outside(ids, end, &id);
    if (at < 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s at position %lld is %lld: there are %lld %s, counted from 0",
                          call, name, (long long)at, (long long)id, (long long)end, things);
}

static void find_owners(tsr_owner_walk *walk, const tsr_tensor *ids, int64_t *ranks, int64_t *locals)
{
    int64_t block[TSR_ROW_BLOCK], rank = 0;
    tsr_cut_run run = {0};
    for (int64_t i = 0; i < ids->shape[0]; i++) {
        if (i % TSR_ROW_BLOCK == 0)
            tsr_row_ids_read(ids, i, tsr_min_i64(TSR_ROW_BLOCK, ids->shape[0] - i), block);
        const int64_t id = block[i % TSR_ROW_BLOCK];
        if (id < run.begin || id - run.begin >= run.length) {
            int64_t coordinate[TSR_MAX_DIMS] = {0};
            run = tsr_owner_walk_at(walk, id, coordinate);
            rank = tsr_mesh_rank(walk->layout->mesh, coordinate);
        }
        if (ranks)
            ranks[i] = rank;
        if (locals)
            locals[i] = run.local + (id - run.begin);
    }
}

tsr_status tsr_rows_owners(const tsr_layout *layout, const tsr_tensor *ids, int64_t *ranks, int64_t *locals)
{
    static const char call[] = "tsr_rows_owners";
    TSR_TRY(check_layout(call, layout));
    TSR_TRY(check_ids(call, "ids", ids, layout->shape[0], "rows"));
    tsr_owner_walk walk;
    const tsr_status status = tsr_owner_walk_begin(&walk, layout, 0);
    if (status == TSR_OK)
        find_owners(&walk, ids, ranks, locals);
    tsr_owner_walk_end(&walk);
    return status;
}

/* Writes the ids of local rows [first, first + count). */
static void list_ids(const tsr_layout *layout, const int64_t *coordinate, int64_t first, int64_t count, int64_t *ids)
{
    tsr_shard_walk walk;
    tsr_shard_walk_begin(&walk, layout, 0, coordinate);
    for (int64_t done = 0; done < count;) {
        const tsr_cut_run run = tsr_shard_walk_at(&walk, first + done);
        const int64_t length = tsr_min_i64(run.length, count - done);
        for (int64_t i = 0; i < length; i++)
            ids[done + i] = run.begin + i;
        done += length;
    }
}

tsr_status tsr_rows_of(const tsr_layout *layout, int64_t rank, int64_t first, int64_t capacity, int64_t *ids,
                       int64_t *count)
{
    static const char call[] = "tsr_rows_of";
    int64_t coordinate[TSR_MAX_DIMS];
    TSR_TRY(check_layout(call, layout));
    if (!count || (!ids && capacity > 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is NULL", call, !count ? "count" : "ids");
    if (first < 0 || capacity < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s is %lld: it is 0 or more", call,
                              first < 0 ? "first" : "capacity", (long long)(first < 0 ? first : capacity));
    *count = tsr_mesh_locate(layout->mesh, rank, coordinate) ? tsr_layout_length(layout, 0, coordinate) : 0;
    if (first < *count && capacity > 0)
        list_ids(layout, coordinate, first, tsr_min_i64(capacity, *count - first), ids);
    return TSR_OK;
}

/* Counts the things of each part in `sizes`. */
static void count_things(const tsr_tensor *parts, int64_t count, int64_t *sizes)
{
    int64_t part;
    memset(sizes, 0, (size_t)count * sizeof *sizes);
    for (int64_t i = 0; i < parts->shape[0]; i++) {
        tsr_row_ids_read(parts, i, 1, &part);
        sizes[part]++;
    }
}

/* Numbers the rows. `sizes` counts up from where each part begins to where it ends, and is the
 * sizes again afterwards. */
static void number_rows(const tsr_tensor *parts, int64_t count, int64_t *sizes, int64_t *rows, int64_t *things)
{
    int64_t part, begin = 0;
    for (int64_t p = 0; p < count; p++) {
        const int64_t size = sizes[p];
        sizes[p] = begin;
        begin += size;
    }
    for (int64_t i = 0; i < parts->shape[0]; i++) {
        tsr_row_ids_read(parts, i, 1, &part);
        const int64_t row = sizes[part]++;
        if (rows)
            rows[i] = row;
        if (things)
            things[row] = i;
    }
    for (int64_t p = count - 1; p > 0; p--)
        sizes[p] -= sizes[p - 1];
}

tsr_status tsr_rows_read_book(const tsr_tensor *parts, int64_t count, int64_t *sizes, int64_t *rows, int64_t *things)
{
    static const char call[] = "tsr_rows_read_book";
    if (count < 0 || !sizes)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s", call,
                              count < 0 ? "count is negative: it is 0 or more parts" : "sizes is NULL");
    TSR_TRY(check_ids(call, "parts", parts, count, "parts"));
    count_things(parts, count, sizes);
    if (rows || things)
        number_rows(parts, count, sizes, rows, things);
    return TSR_OK;
}
