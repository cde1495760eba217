#include "tensor/rows/finder.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"

#include <tessera/sys/status.h>

/* The most runs that are listed, and the most buckets: some MiB. */
#define MOST_RUNS    65536
#define MOST_BUCKETS ((int64_t)1 << 18)

/* About as many buckets for each run, so that most of them have rows of one run alone. */
#define BUCKETS_PER_RUN 16

static bool cuts_rows(const tsr_layout *layout, int mesh_dim)
{
    return tsr_layout_kind(layout, mesh_dim) == TSR_SHARD && layout->placements[mesh_dim].dim == 0;
}

int64_t tsr_row_parts(const tsr_layout *layout)
{
    int64_t parts = 1;
    for (int i = 0; i < layout->mesh_ndim; i++)
        parts *= cuts_rows(layout, i) ? tsr_mesh_shape(layout->mesh)[i] : 1;
    return parts;
}

static int64_t number_part(const tsr_layout *layout, const int64_t *coordinate)
{
    int64_t part = 0;
    for (int i = 0; i < layout->mesh_ndim; i++)
        if (cuts_rows(layout, i))
            part = part * tsr_mesh_shape(layout->mesh)[i] + coordinate[i];
    return part;
}

static tsr_cut_run run_at(tsr_row_finder *finder, int64_t row)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    tsr_cut_run run = tsr_owner_walk_at(&finder->walk, row, coordinate);
    run.part = number_part(finder->layout, coordinate);
    return run;
}

tsr_row_place tsr_row_walk(tsr_row_finder *finder, int64_t row)
{
    const tsr_cut_run run = run_at(finder, row);
    return (tsr_row_place){run.part, run.local};
}

/* Lists the runs; those that follow one another in one part become one. `*count` becomes their
 * number; with more than MOST_RUNS the list is not complete. */
static tsr_status list_runs(tsr_row_finder *finder, size_t *count)
{
    const int64_t rows = finder->layout->shape[0];
    void *memory = NULL;
    size_t capacity = 0;
    tsr_status status = tsr_reserve(finder->layout->context, &memory, &capacity, 2, sizeof(tsr_row_run));
    tsr_row_run *runs = memory;
    *count = 0;
    for (int64_t row = 0; row < rows && status == TSR_OK && *count <= MOST_RUNS;) {
        const tsr_cut_run run = run_at(finder, row);
        const tsr_row_run *last = *count > 0 ? &runs[*count - 1] : NULL;
        if (!last || last->part != run.part || last->local + (row - last->begin) != run.local)
            runs[(*count)++] = (tsr_row_run){row, run.local, run.part};
        row += run.length;
        status = tsr_reserve(finder->layout->context, &memory, &capacity, *count + 2, sizeof(tsr_row_run));
        runs = memory;
    }
    finder->runs = runs;
    if (status == TSR_OK)
        runs[*count] = (tsr_row_run){.begin = rows};
    return status;
}

static tsr_status fill_buckets(tsr_row_finder *finder, size_t count)
{
    const int64_t rows = finder->layout->shape[0], wanted = tsr_min_i64(MOST_BUCKETS, (int64_t)count * BUCKETS_PER_RUN);
    void *memory;
    while (rows >> finder->shift > wanted)
        finder->shift++;
    const size_t buckets = (size_t)(rows >> finder->shift) + 1;
    TSR_TRY(tsr_allocate_array(finder->layout->context, buckets, sizeof(uint32_t), &memory));
    finder->buckets = memory;
    size_t run = 0;
    for (size_t i = 0; i < buckets; i++) {
        while (run + 1 < count && finder->runs[run + 1].begin <= (int64_t)(i << finder->shift))
            run++;
        finder->buckets[i] = (uint32_t)run;
    }
    return TSR_OK;
}

tsr_status tsr_row_finder_open(tsr_row_finder *finder, const tsr_layout *layout)
{
    size_t count;
    *finder = (tsr_row_finder){.layout = layout};
    TSR_TRY(tsr_owner_walk_begin(&finder->walk, layout, 0));
    TSR_TRY(list_runs(finder, &count));
    if (count <= MOST_RUNS)
        return fill_buckets(finder, count);
    tsr_release(layout->context, finder->runs);
    finder->runs = NULL;
    return TSR_OK;
}

void tsr_row_finder_close(tsr_row_finder *finder)
{
    if (!finder->layout)
        return;
    tsr_owner_walk_end(&finder->walk);
    tsr_release(finder->layout->context, finder->runs);
    tsr_release(finder->layout->context, finder->buckets);
    *finder = (tsr_row_finder){0};
}
