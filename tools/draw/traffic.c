#include "draw/traffic.h"

#include "cli/order.h"
#include "cli/parse.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

bool traffic_possible(const tsr_layout *from, const tsr_layout *to)
{
    return tsr_mesh_count(tsr_layout_mesh(from)) <= TRAFFIC_RANKS &&
           tsr_mesh_count(tsr_layout_mesh(to)) <= TRAFFIC_RANKS;
}

static tsr_status list_ranks(traffic *t, const tsr_mesh *mesh)
{
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    do
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &t->ranks[t->count++]));
    while (next_coordinate(mesh, coordinate));
    return TSR_OK;
}

static bool mesh_has(const tsr_mesh *mesh, int64_t rank)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    return tsr_mesh_coordinate_of(mesh, rank, coordinate, &inside) == TSR_OK && inside;
}

tsr_status traffic_create(const tsr_layout *from, const tsr_layout *to, size_t steps, traffic *out)
{
    traffic t = {.steps = steps};
    TSR_TRY(list_ranks(&t, tsr_layout_mesh(from)));
    TSR_TRY(list_ranks(&t, tsr_layout_mesh(to)));
    t.count = sort_ranks(t.ranks, t.count);
    for (size_t i = 0; i < t.count; i++) {
        t.source[i] = mesh_has(tsr_layout_mesh(from), t.ranks[i]);
        t.destination[i] = mesh_has(tsr_layout_mesh(to), t.ranks[i]);
    }
    t.bytes = calloc(steps * t.count * t.count + 1, sizeof *t.bytes);
    if (!t.bytes)
        return tsr_status_set(TSR_ERROR_MEMORY, "there is no memory for who sends what to whom");
    *out = t;
    return TSR_OK;
}

void traffic_finish(traffic *t)
{
    free(t->bytes);
    *t = (traffic){0};
}

size_t traffic_place(const traffic *t, int64_t rank)
{
    const int64_t *const found = find_rank(t->ranks, t->count, rank);
    return found ? (size_t)(found - t->ranks) : 0;
}

int64_t *traffic_at(const traffic *t, size_t step, size_t from, size_t to)
{
    return &t->bytes[(step * t->count + from) * t->count + to];
}
