/* The least bytes to receive, found without a plan: from what ranks own before and after. */
#include "redistribute/explain/bound.h"

#include "base/checked.h"
#include "mesh/mesh.h"
#include "placement/ownership.h"
#include "placement/walk.h"
#include "redistribute/schedule/regions.h"

#include <tessera/sys/status.h>

bool tsr_bound_is_exact(const tsr_item *item)
{
    const tsr_side *dst = &item->problem.dst;
    for (int i = 0; i < dst->ndim; i++)
        if (tsr_layout_kind(dst->layout, i) == TSR_PARTIAL && dst->roles[i] != TSR_ROLE_KEPT)
            return false;
    return !item->problem.reduces;
}

/* How many positions of `dim` the item's rank owns on both sides. */
static tsr_status find_common(const tsr_item *item, int dim, tsr_meter *meter, int64_t *common)
{
    tsr_shard_walk src, dst;
    const int64_t src_length = tsr_shard_walk_begin(&src, item->src, dim, item->src_coordinate), begun = meter->used;
    const int64_t dst_length = tsr_shard_walk_begin(&dst, item->dst, dim, item->dst_coordinate);
    *common = 0;
    for (int64_t s = 0, d = 0; s < src_length && d < dst_length;) {
        const tsr_cut_run a = tsr_shard_walk_at(&src, s), b = tsr_shard_walk_at(&dst, d);
        const int64_t a_end = a.begin + a.length, b_end = b.begin + b.length;
        TSR_TRY(tsr_meter_take_on_way(meter, 1, begun, s + d, src_length + dst_length));
        *common += tsr_max_i64(0, tsr_min_i64(a_end, b_end) - tsr_max_i64(a.begin, b.begin));
        if (a_end <= b_end)
            s += a.length;
        else
            d += b.length;
    }
    return TSR_OK;
}

tsr_status tsr_bound_of_rank(const tsr_item *item, tsr_meter *meter, int64_t *bytes)
{
    int64_t wanted = 1, had = item->in_src;
    if (!item->in_dst)
        return TSR_OK;
    for (int dim = 0; dim < item->dst->ndim; dim++) {
        int64_t common = 1;
        wanted *= item->dst_shape[dim];
        if (had > 0)
            TSR_TRY(find_common(item, dim, meter, &common));
        had *= common;
    }
    *bytes += (wanted - had) * (int64_t)item->dst->element_bytes;
    return TSR_OK;
}

/* Of the ranks whose destination holds the value at `dst`, how many have a contribution of the
 * source piece at `src`.
 */
static int64_t count_holders(const tsr_problem *problem, const int64_t *src, int64_t *dst)
{
    const int64_t owners = tsr_side_count(&problem->dst, TSR_ROLE_FREE);
    int64_t holders = 0;
    for (int64_t i = 0; i < owners; i++) {
        int64_t own[TSR_MAX_DIMS];
        tsr_side_decode(&problem->dst, TSR_ROLE_FREE, i, dst);
        if (tsr_mesh_locate(problem->src.layout->mesh, tsr_mesh_rank(problem->dst.layout->mesh, dst), own))
            holders += tsr_problem_holds(problem, own, src);
    }
    tsr_side_decode(&problem->dst, TSR_ROLE_FREE, 0, dst);
    return holders;
}

/* How often each element of a region must be received: with several terms, to reduce it once and to
 * give it to all other owners; with one, by each owner that does not hold it. */
static int64_t least_times(const tsr_problem *problem, const int64_t *src, int64_t *dst)
{
    const int64_t owners = tsr_side_count(&problem->dst, TSR_ROLE_FREE), holders = count_holders(problem, src, dst);
    return problem->terms > 1 ? problem->terms + owners - 1 - (holders > 0) : owners - holders;
}

static tsr_status add_bytes(const tsr_item *item, const int64_t *shape, int64_t times, int64_t *total)
{
    int64_t bytes = (int64_t)item->src->element_bytes;
    bool fits = true;
    for (int dim = 0; dim < item->src->ndim; dim++)
        fits = fits && tsr_multiply(bytes, shape[dim], &bytes);
    if (fits && tsr_multiply(bytes, times, &bytes) && tsr_add_sizes(*total, bytes, total))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "tsr_plan_survey_of: all ranks together must receive more than 2^63 - 1 bytes");
}

/* Adds the bytes of all regions of the destination piece at `dst`. */
static tsr_status add_piece(const tsr_item *item, tsr_meter *meter, int64_t *dst, int64_t *total)
{
    const tsr_problem *problem = &item->problem;
    int64_t src[TSR_MAX_DIMS] = {0};
    for (int i = 0; i < problem->src.ndim; i++)
        if (problem->src.roles[i] == TSR_ROLE_KEPT)
            src[i] = dst[problem->src.twin[i]];
    int64_t shape[TSR_MAX_DIMS];
    tsr_layout_local_shape(item->dst, dst, shape);
    tsr_regions regions;
    tsr_status status = tsr_regions_begin(&regions, meter, item->dst, dst, shape, item->src, false);
    for (; status == TSR_OK && !regions.done; tsr_regions_next(&regions)) {
        tsr_regions_far(&regions, src);
        status = tsr_meter_take(meter, tsr_side_count(&problem->dst, TSR_ROLE_FREE));
        if (status == TSR_OK)
            status = add_bytes(item, regions.shape, least_times(problem, src, dst), total);
    }
    tsr_regions_free(&regions);
    return status;
}

tsr_status tsr_bound_add_total(const tsr_item *item, tsr_meter *meter, int64_t *total)
{
    const tsr_side *side = &item->problem.dst;
    const int64_t pieces = tsr_side_count(side, TSR_ROLE_CUT), kept = tsr_side_count(side, TSR_ROLE_KEPT);
    int64_t dst[TSR_MAX_DIMS] = {0};
    if (item->problem.shortcut)
        return TSR_OK;
    TSR_TRY(tsr_meter_take_times(meter, pieces, kept));
    for (int64_t k = 0; k < kept; k++) {
        tsr_side_decode(side, TSR_ROLE_KEPT, k, dst);
        for (int64_t piece = 0; piece < pieces; piece++) {
            tsr_side_decode(side, TSR_ROLE_CUT, piece, dst);
            TSR_TRY(add_piece(item, meter, dst, total));
        }
    }
    return TSR_OK;
}

int64_t tsr_add_saturated(int64_t a, int64_t b)
{
    int64_t sum;
    return tsr_add_sizes(a, b, &sum) ? sum : INT64_MAX;
}

/* Bytes that a rank receives in a ring's all-reduce of `bytes` over n ranks: floor(2 (n - 1) bytes
 * / n) = 2 bytes - ceil(2 bytes / n), in numbers that do not overflow. */
static int64_t ring_bytes(int64_t n, int64_t bytes)
{
    const uint64_t twice = 2 * (uint64_t)bytes, least = twice / (uint64_t)n + (twice % (uint64_t)n != 0);
    return twice - least > INT64_MAX ? INT64_MAX : (int64_t)(twice - least);
}

int64_t tsr_gather_and_slice(const tsr_item *item)
{
    const tsr_layout *src = item->src;
    int64_t total = (int64_t)src->element_bytes, own = item->in_src ? (int64_t)src->element_bytes : 0;
    if (!item->in_dst)
        return 0;
    for (int dim = 0; dim < src->ndim; dim++) {
        total *= src->shape[dim];
        own *= item->in_src ? item->src_shape[dim] : 1;
    }
    total -= own;
    for (int i = 0; i < src->mesh_ndim && item->in_src; i++)
        if (tsr_layout_kind(src, i) == TSR_PARTIAL)
            total = tsr_add_saturated(total, ring_bytes(tsr_mesh_shape(src->mesh)[i], own));
    return total;
}
