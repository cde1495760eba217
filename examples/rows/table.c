#include "table.h"

#include "model.h"

#include <tessera/random.h>
#include <tessera/sys/status.h>

#include <stdlib.h>

/* The layout of the table: sizes, one a rank, by which each has whole communities. */
static tsr_status make_layout(const tsr_mesh *mesh, const graph *g, tsr_layout **out)
{
    const int64_t ranks = tsr_mesh_size(mesh, 0), shape[] = {g->nodes, WIDTH};
    tsr_placement placement = tsr_shard(0);
    int64_t *const sizes = malloc((size_t)ranks * sizeof *sizes);
    if (!sizes)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the sizes of %lld parts", (long long)ranks);
    for (int64_t r = 0; r < ranks; r++)
        sizes[r] = graph_first(g, (r + 1) * g->communities / ranks) - graph_first(g, r * g->communities / ranks);
    placement.sizes = sizes;
    placement.size_count = (size_t)ranks;
    const tsr_status status = tsr_layout_create(mesh, &placement, 2, shape, TSR_F32, out);
    free(sizes);
    return status;
}

tsr_status table_create(const tsr_mesh *mesh, const graph *g, uint64_t seed, double rate, int64_t capacity, table *out)
{
    const tsr_random_key key = tsr_random_key_philox(seed, 0);
    tsr_layout *layout;
    TSR_TRY(make_layout(mesh, g, &layout));
    const tsr_status status = tsr_normal(layout, &key, 0, 0.1, &out->rows);
    tsr_layout_destroy(layout);
    TSR_TRY(status);
    TSR_TRY(tsr_rows_plan_create(1, &out->rows, capacity, &out->plan));
    tsr_sparse_options options = TSR_SPARSE_OPTIONS_INIT;
    options.kind = TSR_SPARSE_ADAGRAD;
    options.learning_rate = rate;
    return tsr_sparse_optimizer_create(1, &out->rows, capacity, &options, &out->optimizer);
}

void table_destroy(table *t)
{
    tsr_sparse_optimizer_destroy(t->optimizer);
    tsr_rows_plan_destroy(t->plan);
    tsr_dtensor_destroy(t->rows);
}

tsr_status table_gather(table *t, const tsr_tensor *ids, const tsr_tensor *rows)
{
    return tsr_rows_plan_gather(t->plan, ids, rows);
}

tsr_status table_change(table *t, const tsr_tensor *ids, const tsr_tensor *gradients)
{
    return tsr_sparse_optimizer_step(t->optimizer, ids, gradients);
}
