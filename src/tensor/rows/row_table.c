#include "tensor/rows/row_table.h"

#include "base/memory/memory.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "tensor/runs.h"

#include <tessera/sys/status.h>

/* Along which numbers a mesh dim counts. */
typedef enum row_kind { KIND_ROWS, KIND_COLUMNS, KIND_REPLICAS } row_kind;

static row_kind kind_of(const tsr_layout *layout, int mesh_dim)
{
    if (tsr_layout_kind(layout, mesh_dim) != TSR_SHARD)
        return KIND_REPLICAS;
    return layout->placements[mesh_dim].dim == 0 ? KIND_ROWS : KIND_COLUMNS;
}

/* What a step along a mesh dim adds to a position, which is row-major. */
static int step_of(const tsr_layout *layout, int mesh_dim)
{
    int64_t step = 1;
    for (int i = mesh_dim + 1; i < layout->mesh_ndim; i++)
        step *= tsr_mesh_shape(layout->mesh)[i];
    return (int)step;
}

/* Lists the positions of all numbers of one kind; `coordinate` is this rank's. */
static tsr_status list_axis(const tsr_layout *layout, row_kind kind, const int64_t *coordinate, tsr_row_axis *axis)
{
    axis->count = 1;
    for (int i = 0; i < layout->mesh_ndim; i++)
        axis->count *= kind_of(layout, i) == kind ? tsr_mesh_shape(layout->mesh)[i] : 1;
    void *memory;
    TSR_TRY(tsr_allocate_array(layout->context, (size_t)axis->count, sizeof(int), &memory));
    axis->positions = memory;
    int64_t block = axis->count;
    for (int i = 0; i < layout->mesh_ndim; i++) {
        const int64_t size = tsr_mesh_shape(layout->mesh)[i];
        if (kind_of(layout, i) != kind)
            continue;
        block /= size;
        axis->own += coordinate[i] * block;
        for (int64_t n = 0; n < axis->count; n++)
            axis->positions[n] += (int)(n / block % size) * step_of(layout, i);
    }
    return TSR_OK;
}

/* The coordinate of a rank with column part `part`; other mesh dims have 0. */
static void column_coordinate(const tsr_layout *layout, int64_t part, int64_t *coordinate)
{
    for (int i = layout->mesh_ndim - 1; i >= 0; i--) {
        const int64_t size = tsr_mesh_shape(layout->mesh)[i];
        coordinate[i] = kind_of(layout, i) == KIND_COLUMNS ? part % size : 0;
        part = kind_of(layout, i) == KIND_COLUMNS ? part / size : part;
    }
}

/* Lists segments, part after part. */
typedef struct segment_list {
    tsr_row_table *table;
    tsr_row_columns *part;
    size_t count, capacity;
} segment_list;

static tsr_status add_segment(void *arg, int64_t first, int64_t count)
{
    segment_list *const list = arg;
    tsr_row_table *const table = list->table;
    void *memory = table->segments;
    if (count == 0)
        return TSR_OK;
    TSR_TRY(tsr_reserve(table->layout->context, &memory, &list->capacity, list->count + 1, sizeof(tsr_row_segment)));
    table->segments = memory;
    table->segments[list->count++] = (tsr_row_segment){first, list->part->width, count};
    list->part->width += count;
    list->part->count++;
    return TSR_OK;
}

static tsr_status list_columns(tsr_row_table *table)
{
    void *memory;
    segment_list list = {.table = table};
    TSR_TRY(tsr_allocate_array(table->layout->context, (size_t)table->columns.count, sizeof(tsr_row_columns), &memory));
    table->parts = memory;
    for (int64_t part = 0; part < table->columns.count; part++) {
        int64_t coordinate[TSR_MAX_DIMS];
        list.part = &table->parts[part];
        list.part->first = list.count;
        column_coordinate(table->layout, part, coordinate);
        TSR_TRY(tsr_visit_row_runs(table->layout, coordinate, add_segment, &list));
    }
    return TSR_OK;
}

/* Lists the numbers of all ranks. */
static tsr_status list_ranks(tsr_row_table *table)
{
    void *memory;
    TSR_TRY(tsr_allocate_array(table->layout->context, (size_t)table->group->count, sizeof(tsr_row_numbers), &memory));
    table->ranks = memory;
    for (int rows = 0; rows < table->rows.count; rows++)
        for (int columns = 0; columns < table->columns.count; columns++)
            for (int replica = 0; replica < table->replicas.count; replica++)
                table->ranks[tsr_row_position(table, rows, columns, replica)] =
                    (tsr_row_numbers){rows, columns, replica};
    return TSR_OK;
}

static tsr_status list_turns(tsr_row_table *table)
{
    const tsr_group *const group = table->group;
    const int ranks = tsr_comm_size(tsr_mesh_comm(table->layout->mesh));
    void *memory;
    TSR_TRY(tsr_allocate_array(table->layout->context, (size_t)group->count, sizeof(int), &memory));
    table->turns = memory;
    for (int rank = 0, turn = 0; rank < ranks; rank++) {
        const int position = tsr_group_position(group, rank);
        if (position >= 0)
            table->turns[position] = turn++;
    }
    return TSR_OK;
}

static tsr_status allocate_scratch(tsr_row_table *table)
{
    const size_t parts = (size_t)table->rows.count;
    void *memory;
    TSR_TRY(tsr_allocate_array(table->layout->context, parts, sizeof *table->bases, &memory));
    table->bases = memory;
    TSR_TRY(tsr_allocate_array(table->layout->context, parts, sizeof *table->strides, &memory));
    table->strides = memory;
    return TSR_OK;
}

static tsr_status fill_table(tsr_row_table *table)
{
    const tsr_layout *const layout = table->layout;
    int64_t coordinate[TSR_MAX_DIMS];
    tsr_mesh_locate(layout->mesh, tsr_comm_rank(tsr_mesh_comm(layout->mesh)), coordinate);
    table->width = 1;
    for (int dim = 1; dim < layout->ndim; dim++)
        table->width *= layout->shape[dim];
    table->element_bytes = layout->element_bytes;
    TSR_TRY(list_axis(layout, KIND_ROWS, coordinate, &table->rows));
    TSR_TRY(list_axis(layout, KIND_COLUMNS, coordinate, &table->columns));
    TSR_TRY(list_axis(layout, KIND_REPLICAS, coordinate, &table->replicas));
    TSR_TRY(list_columns(table));
    TSR_TRY(list_ranks(table));
    TSR_TRY(list_turns(table));
    TSR_TRY(allocate_scratch(table));
    return tsr_row_finder_open(&table->finder, layout);
}

tsr_status tsr_row_table_create(const tsr_layout *layout, const tsr_group *group, tsr_row_table **out)
{
    void *memory;
    TSR_TRY(tsr_allocate_zeroed(layout->context, sizeof(tsr_row_table), &memory));
    tsr_row_table *const table = memory;
    table->layout = tsr_layout_retain((tsr_layout *)layout);
    table->group = group;
    const tsr_status status = fill_table(table);
    if (status != TSR_OK) {
        tsr_row_table_destroy(table);
        return status;
    }
    *out = table;
    return TSR_OK;
}

void tsr_row_table_destroy(tsr_row_table *table)
{
    if (!table)
        return;
    tsr_layout *const layout = table->layout;
    tsr_context *const context = layout->context;
    void *const arrays[] = {table->rows.positions,
                            table->columns.positions,
                            table->replicas.positions,
                            table->ranks,
                            table->parts,
                            table->segments,
                            table->turns,
                            (void *)table->bases,
                            table->strides};
    for (size_t i = 0; i < sizeof arrays / sizeof *arrays; i++)
        tsr_release(context, arrays[i]);
    tsr_row_finder_close(&table->finder);
    tsr_release(context, table);
    tsr_layout_destroy(layout);
}
