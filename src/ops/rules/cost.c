#include "ops/rules/cost.h"

#include <tessera/explain.h>
#include <tessera/sys/status.h>

/* The most ranks of which each is asked, and how many are asked of more. */
#define ALL  32
#define SOME 16

/* The ranks to be asked: row-major numbers in the mesh, evenly spaced from first to last. */
static tsr_status choose_ranks(const tsr_mesh *mesh, int64_t *ranks, size_t *count)
{
    const int64_t all = tsr_mesh_count(mesh);
    *count = all <= ALL ? (size_t)all : SOME;
    for (size_t i = 0; i < *count; i++) {
        int64_t coordinate[TSR_MAX_DIMS];
        int64_t number = all <= ALL ? (int64_t)i : (int64_t)i * (all - 1) / (SOME - 1);
        for (int k = tsr_mesh_ndim(mesh) - 1; k >= 0; k--) {
            coordinate[k] = number % tsr_mesh_size(mesh, k);
            number /= tsr_mesh_size(mesh, k);
        }
        TSR_TRY(tsr_mesh_rank_at(mesh, coordinate, &ranks[i]));
    }
    return TSR_OK;
}

tsr_status tsr_move_cost_add(const tsr_layout *from, const tsr_layout *to, tsr_move_cost *cost)
{
    int64_t ranks[ALL];
    size_t count;
    tsr_plan *plan;
    tsr_plan_survey survey;
    tsr_plan_options options = TSR_PLAN_OPTIONS_INIT;
    if (tsr_layout_equal(from, to))
        return TSR_OK;
    options.rank = TSR_RANK_NONE;
    TSR_TRY(choose_ranks(tsr_layout_mesh(from), ranks, &count));
    TSR_TRY(tsr_plan_create(from, to, &options, &plan));
    const tsr_status status = tsr_plan_survey_some(plan, ranks, count, &survey);
    tsr_plan_destroy(plan);
    if (status != TSR_OK)
        return status;
    cost->bytes += survey.bytes_received.total;
    cost->busiest += survey.bytes_received.max;
    cost->seconds += survey.seconds;
    cost->moves++;
    return TSR_OK;
}

int tsr_move_cost_compare(const tsr_move_cost *a, const tsr_move_cost *b)
{
    if (a->bytes != b->bytes)
        return a->bytes < b->bytes ? -1 : 1;
    if (a->seconds < b->seconds || a->seconds > b->seconds)
        return a->seconds < b->seconds ? -1 : 1;
    return a->moves - b->moves;
}
