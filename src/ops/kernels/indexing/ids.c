#include "ops/kernels/indexing/ids.h"

#include <tessera/sys/memory.h>
#include <tessera/sys/status.h>

#include <stdio.h>

tsr_ids tsr_ids_below(const tsr_kernel_call *call, int operand, const char *name, int64_t size)
{
    return (tsr_ids){
        .call = call, .name = name, .tensor = &call->inputs[operand], .layout = call->layouts[operand], .size = size};
}

tsr_ids tsr_ids_of_table(const tsr_kernel_call *call, int operand, const char *name, const tsr_layout *table, int dim)
{
    tsr_ids ids = tsr_ids_below(call, operand, name, tsr_layout_shape(table)[dim]);
    const tsr_mesh *const mesh = tsr_layout_mesh(table);
    ids.table = table;
    ids.dim = dim;
    for (int k = 0; k < tsr_mesh_ndim(mesh); k++) {
        const tsr_placement *const p = &tsr_layout_placements(table)[k];
        if (p->kind != TSR_SHARD || p->dim != dim)
            continue;
        ids.part = ids.part * tsr_mesh_size(mesh, k) + call->coordinate[k];
        ids.is_cut = ids.is_cut || tsr_mesh_size(mesh, k) > 1;
    }
    return ids;
}

int64_t tsr_ids_count(const tsr_ids *ids)
{
    int64_t count = 1;
    for (int dim = 0; dim < ids->tensor->ndim; dim++)
        count *= ids->tensor->shape[dim];
    return count;
}

static int64_t read_id(const tsr_tensor *tensor, int64_t offset)
{
    return tensor->dtype == TSR_I32 ? ((const int32_t *)tensor->data)[offset] : ((const int64_t *)tensor->data)[offset];
}

/* Reads ids as they are. */
static void read_chunk(const tsr_tensor *tensor, int64_t first, int64_t count, int64_t *to)
{
    int64_t index[TSR_MAX_DIMS] = {0}, offset = 0;
    for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
        index[dim] = first % tensor->shape[dim];
        first /= tensor->shape[dim];
        offset += index[dim] * tensor->strides[dim];
    }
    for (int64_t i = 0; i < count; i++) {
        to[i] = read_id(tensor, offset);
        for (int dim = tensor->ndim - 1; dim >= 0; dim--) {
            const bool more = ++index[dim] < tensor->shape[dim];
            offset += (more ? 1 : 1 - tensor->shape[dim]) * tensor->strides[dim];
            if (more)
                break;
            index[dim] = 0;
        }
    }
}

/* Writes the index that the local element `at` has in the whole operand: "[2,5]". */
static tsr_status print_index(const tsr_ids *ids, int64_t at, char *text, size_t capacity)
{
    int64_t index[TSR_MAX_DIMS];
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(ids->layout));
    size_t length = 0;
    for (int dim = ids->tensor->ndim - 1; dim >= 0; dim--) {
        void *positions;
        const int64_t size = ids->tensor->shape[dim];
        TSR_TRY(tsr_allocate(context, (size_t)size * sizeof(int64_t), &positions));
        const tsr_status status = tsr_ids_positions(ids->layout, ids->call->coordinate, dim, size, positions);
        index[dim] = status == TSR_OK ? ((const int64_t *)positions)[at % size] : 0;
        tsr_release(context, positions);
        TSR_TRY(status);
        at /= size;
    }
    text[0] = '\0';
    for (int dim = 0; dim < ids->tensor->ndim && length < capacity; dim++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld%s", dim ? "," : "[", (long long)index[dim],
                                   dim == ids->tensor->ndim - 1 ? "]" : "");
    return TSR_OK;
}

static tsr_status refuse_id(const tsr_ids *ids, int64_t at, int64_t id)
{
    const tsr_mesh *const mesh = tsr_layout_mesh(ids->layout);
    char index[TSR_MAX_DIMS * 24], skipped[64] = "", on[32] = "";
    int64_t rank;
    TSR_TRY(print_index(ids, at, index, sizeof index));
    TSR_TRY(tsr_mesh_rank_at(mesh, ids->call->coordinate, &rank));
    /* On a mesh of one rank without a communicator the caller knows which rank this is. */
    if (tsr_mesh_comm(mesh) || tsr_mesh_count(mesh) > 1)
        snprintf(on, sizeof on, " on rank %lld", (long long)rank);
    if (ids->skips)
        snprintf(skipped, sizeof skipped, ", or %lld, which is ignored", (long long)ids->skipped);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: %s%s is %lld%s, but must be at least 0 and below %lld%s",
                          ids->call->op, ids->name, index, (long long)id, on, (long long)ids->size, skipped);
}

tsr_status tsr_ids_read(const tsr_ids *ids, int64_t first, int64_t count, int64_t *places)
{
    int64_t positions[TSR_IDS_CHUNK], parts[TSR_IDS_CHUNK];
    read_chunk(ids->tensor, first, count, places);
    for (int64_t i = 0; i < count; i++) {
        const bool skipped = ids->skips && places[i] == ids->skipped, beyond = places[i] >= ids->size;
        if (!skipped && (places[i] < 0 || (beyond && !ids->passes)))
            return refuse_id(ids, first + i, places[i]);
        positions[i] = skipped || beyond ? 0 : places[i];
        places[i] = skipped ? TSR_ID_SKIPPED : beyond ? TSR_ID_BEYOND : places[i];
    }
    if (!ids->is_cut || ids->size == 0)
        return TSR_OK;
    TSR_TRY(tsr_layout_owners(ids->table, ids->dim, (size_t)count, positions, parts, positions));
    for (int64_t i = 0; i < count; i++) {
        if (places[i] >= 0)
            places[i] = parts[i] == ids->part ? positions[i] : TSR_ID_ELSEWHERE;
    }
    return TSR_OK;
}

tsr_status tsr_ids_positions(const tsr_layout *layout, const int64_t *coordinate, int dim, int64_t count, int64_t *to)
{
    size_t interval_count;
    void *memory;
    tsr_context *const context = tsr_mesh_context(tsr_layout_mesh(layout));
    TSR_TRY(tsr_layout_intervals(layout, coordinate, dim, NULL, 0, &interval_count));
    TSR_TRY(tsr_allocate(context, interval_count * sizeof(tsr_interval), &memory));
    const tsr_status status = tsr_layout_intervals(layout, coordinate, dim, memory, interval_count, &interval_count);
    const tsr_interval *const intervals = memory;
    int64_t done = 0;
    for (size_t i = 0; status == TSR_OK && i < interval_count; i++) {
        for (int64_t at = intervals[i].begin; at < intervals[i].end && done < count; at++)
            to[done++] = at;
    }
    tsr_release(context, memory);
    return status;
}
