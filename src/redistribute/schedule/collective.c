#include "redistribute/schedule/collective.h"

#include "base/checked.h"
#include "base/memory/memory.h"
#include "base/sort.h"
#include "comm/collectives/collective.h"
#include "comm/core/agree.h"
#include "comm/core/comm.h"
#include "comm/core/traits.h"
#include "mesh/mesh.h"
#include "placement/placement.h"
#include "redistribute/schedule/plan_text.h"
#include "redistribute/schedule/regions.h"
#include "redistribute/schedule/sizes.h"

#include <string.h>

/* The two layouts of a move that adds cuts or removes them: on every tensor dim, inner's cuts begin
 * with all of outer's. */
typedef struct nest {
    const tsr_layout *outer, *inner;
} nest;

static nest nest_of(const tsr_item *item)
{
    const bool scatters = item->native.kind == TSR_NATIVE_REDUCE_SCATTER;
    return (nest){scatters ? item->src : item->dst, scatters ? item->dst : item->src};
}

static tsr_native kind_of(tsr_placement_kind from, tsr_placement_kind to)
{
    if (from == TSR_SHARD && to == TSR_REPLICATE)
        return TSR_NATIVE_ALL_GATHER;
    if (from == TSR_PARTIAL && to != TSR_PARTIAL)
        return to == TSR_SHARD ? TSR_NATIVE_REDUCE_SCATTER : TSR_NATIVE_ALL_REDUCE;
    return TSR_NATIVE_NONE;
}

/* True if the placements that differ all change in one way, which is a collective. Sets the kind,
 * the mesh dims and the ranks of a group. */
static bool find_change(tsr_item *item)
{
    const tsr_side *src = &item->problem.src;
    tsr_native_move *move = &item->native;
    move->ranks = 1;
    for (int i = 0; i < src->ndim; i++) {
        if (src->twin[i] < 0)
            continue;
        const tsr_placement *from = &item->src->placements[i], *to = &item->dst->placements[src->twin[i]];
        if (tsr_placement_same(from, to))
            continue;
        const tsr_native kind = kind_of(from->kind, to->kind);
        if (kind == TSR_NATIVE_NONE || (move->kind != TSR_NATIVE_NONE && move->kind != kind))
            return false;
        move->kind = kind;
        move->varies[i] = true;
        move->ranks *= src->shape[i];
    }
    return move->kind != TSR_NATIVE_NONE;
}

/* True if on every tensor dim the cuts that stay come before those that are added or removed. */
static bool nests(const tsr_item *item)
{
    const tsr_native kind = item->native.kind;
    return (kind == TSR_NATIVE_ALL_GATHER || tsr_problem_cuts_nest(&item->problem, true)) &&
           (kind == TSR_NATIVE_REDUCE_SCATTER || tsr_problem_cuts_nest(&item->problem, false));
}

/* True if all ranks have equally long pieces along `dim`. */
static bool is_even_along(const tsr_layout *layout, int dim)
{
    int64_t length = layout->shape[dim];
    for (int i = 0; i < layout->dims[dim].count; i++) {
        const tsr_cut *cut = &layout->cuts[layout->dims[dim].mesh_dim[i]];
        if (!tsr_cut_is_even(cut, length))
            return false;
        length /= cut->parts;
    }
    return true;
}

/* True if along `dim` the first `kept` cuts are even and the cuts behind them leave everything to
 * one part, whose coordinates are written. */
static bool is_whole_along(const tsr_layout *layout, int dim, int kept, int64_t *coordinate)
{
    int64_t length = layout->shape[dim];
    for (int i = 0; i < layout->dims[dim].count; i++) {
        const int mesh_dim = layout->dims[dim].mesh_dim[i];
        const tsr_cut *cut = &layout->cuts[mesh_dim];
        if (i < kept) {
            if (!tsr_cut_is_even(cut, length))
                return false;
            length /= cut->parts;
            continue;
        }
        coordinate[mesh_dim] = tsr_cut_part(cut, length, 0);
        if (tsr_cut_size(cut, length, coordinate[mesh_dim]) != length)
            return false;
    }
    return true;
}

static bool pieces_are_even(const tsr_item *item)
{
    const nest n = nest_of(item);
    for (int dim = 0; dim < n.inner->ndim; dim++)
        if (n.inner->dims[dim].count > n.outer->dims[dim].count && !is_even_along(n.inner, dim))
            return false;
    return true;
}

static bool finds_root(const tsr_item *item, int64_t *coordinate)
{
    const nest n = nest_of(item);
    for (int dim = 0; dim < n.inner->ndim; dim++) {
        const int kept = n.outer->dims[dim].count;
        if (n.inner->dims[dim].count > kept && !is_whole_along(n.inner, dim, kept, coordinate))
            return false;
    }
    return true;
}

static bool may_reduce(const tsr_item *item, const tsr_plan *plan)
{
    const tsr_problem *problem = &item->problem;
    if (!problem->reduces)
        return true;
    return (tsr_native_is_exact(item->src->dtype) || plan->options.reduction == TSR_REDUCTION_ANY_ORDER) &&
           (problem->divisor == 1 || problem->divisor == problem->terms);
}

/* Finds out whether the move is one collective, and which. `root` becomes the coordinate of a
 * broadcast's root in this rank's group. */
static bool is_one_collective(tsr_item *item, const tsr_plan *plan, int64_t *root)
{
    tsr_native_move *move = &item->native;
    if (plan->options.mode != TSR_MODE_MESSAGE || plan->count > 1 || plan->options.no_split ||
        !item->problem.same_mesh || tsr_shape_is_empty(item->src->ndim, item->src->shape))
        return false;
    if (!find_change(item) || !nests(item) || !may_reduce(item, plan))
        return false;
    move->op = item->problem.divisor > 1 ? TSR_AVG : item->problem.op;
    if (!pieces_are_even(item)) {
        if (move->kind != TSR_NATIVE_ALL_GATHER || !finds_root(item, root))
            return false;
        move->kind = TSR_NATIVE_BROADCAST;
    }
    return true;
}

static int by_peer(const void *a, const void *b, const void *unused)
{
    (void)unused;
    const tsr_transfer *x = a, *y = b;
    return x->peer < y->peer ? -1 : x->peer > y->peer;
}

static tsr_status add_piece(tsr_item *item, const tsr_regions *regions, int64_t peer)
{
    tsr_transfer piece = {.peer = peer};
    TSR_TRY(tsr_regions_append(regions, item, NULL, &piece.first_box, &piece.box_count, &piece.elements));
    return tsr_transfers_append(&item->native.pieces, item, &piece);
}

/* Lists the pieces by a walk over the shard that is gathered or scattered: it meets one piece of
 * each rank of the group. */
static tsr_status list_pieces(tsr_item *item)
{
    const bool gathers = item->native.kind == TSR_NATIVE_ALL_GATHER;
    const tsr_layout *near = gathers ? item->dst : item->src, *far = gathers ? item->src : item->dst;
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, gathers ? item->src_coordinate : item->dst_coordinate, sizeof coordinate);
    tsr_regions regions;
    tsr_status status =
        tsr_regions_begin(&regions, item->meter, near, gathers ? item->dst_coordinate : item->src_coordinate,
                          gathers ? item->dst_shape : item->src_shape, far, !gathers);
    for (; status == TSR_OK && !regions.done; tsr_regions_next(&regions)) {
        tsr_regions_far(&regions, coordinate);
        status = add_piece(item, &regions, tsr_mesh_rank(far->mesh, coordinate));
    }
    tsr_regions_free(&regions);
    tsr_sort_array(item->native.pieces.at, item->native.pieces.count, sizeof(tsr_transfer), by_peer, NULL);
    return status;
}

/* Adds the whole shard as one piece: it lies alike on both sides, whichever part of the tensor it
 * is. */
static tsr_status add_shard(tsr_item *item)
{
    tsr_segment whole[TSR_MAX_DIMS];
    tsr_regions region = {.far = item->dst, .near_is_source = true};
    for (int dim = 0; dim < item->dst_ndim; dim++) {
        whole[dim] = (tsr_segment){.length = item->dst_shape[dim]};
        region.segments[dim] = &whole[dim];
        region.counts[dim] = 1;
        region.shape[dim] = item->dst_shape[dim];
    }
    return add_piece(item, &region, item->rank);
}

tsr_pieces tsr_native_pieces(const tsr_item *item, bool given)
{
    const tsr_native_move *move = &item->native;
    tsr_pieces p = {move->pieces.at, move->pieces.count, given};
    const bool all = given ? move->kind == TSR_NATIVE_REDUCE_SCATTER : move->kind != TSR_NATIVE_REDUCE_SCATTER;
    if (all || p.count == 0)
        return p;
    while (p.at->peer != item->rank)
        p.at++;
    p.count = 1;
    return p;
}

bool tsr_pieces_lie(const tsr_item *item, const tsr_pieces *pieces, const int64_t *strides, int64_t *offset)
{
    *offset = 0;
    for (size_t i = 0; i < pieces->count; i++) {
        const tsr_transfer *piece = &pieces->at[i];
        if (piece->box_count != 1 || !tsr_item_box_is_dense(item, piece->first_box, strides))
            return false;
        const int64_t at = tsr_item_offset(item, piece->first_box, strides, pieces->at_source);
        if (i == 0)
            *offset = at;
        else if (at != *offset + (int64_t)i * piece->elements * (int64_t)item->src->element_bytes)
            return false;
    }
    return true;
}

static bool lies_dense(const tsr_item *item, bool given)
{
    const tsr_pieces pieces = tsr_native_pieces(item, given);
    const tsr_tensor dense = tsr_tensor_contiguous(NULL, item->src->dtype, given ? item->src_ndim : item->dst_ndim,
                                                   given ? item->src_shape : item->dst_shape);
    int64_t offset;
    return tsr_pieces_lie(item, &pieces, dense.strides, &offset);
}

static size_t local_bytes(const tsr_item *item, int ndim, const int64_t *shape)
{
    size_t bytes = item->src->element_bytes;
    for (int dim = 0; dim < ndim; dim++)
        bytes *= (size_t)shape[dim];
    return tsr_mail_line(bytes);
}

/* Sets the workspace: room for what is received, and behind it for what is scattered; all other
 * collectives pack where they receive. None if contiguous tensors need no packing: then tensors
 * with gaps go by mail. */
static void measure_workspace(tsr_item *item, size_t cap)
{
    tsr_native_move *move = &item->native;
    const bool scatters = move->kind == TSR_NATIVE_REDUCE_SCATTER;
    if (lies_dense(item, false) && (!scatters || lies_dense(item, true)))
        return;
    const size_t bytes = local_bytes(item, item->dst_ndim, item->dst_shape) +
                         (scatters ? local_bytes(item, item->src_ndim, item->src_shape) : 0);
    move->is_too_large = cap > 0 && bytes > cap;
    move->workspace_bytes = move->is_too_large ? 0 : bytes;
}

tsr_status tsr_native_build(tsr_item *item, const tsr_plan *plan)
{
    tsr_native_move *move = &item->native;
    int64_t root[TSR_MAX_DIMS];
    memcpy(root, item->src_coordinate, sizeof root);
    if (!is_one_collective(item, plan, root)) {
        *move = (tsr_native_move){.kind = TSR_NATIVE_NONE};
        return TSR_OK;
    }
    if (!item->in_src)
        return TSR_OK;
    move->root = tsr_mesh_rank(item->src->mesh, root);
    const bool cuts = move->kind == TSR_NATIVE_ALL_GATHER || move->kind == TSR_NATIVE_REDUCE_SCATTER;
    TSR_TRY(cuts ? list_pieces(item) : add_shard(item));
    measure_workspace(item, plan->options.max_workspace);
    return TSR_OK;
}

static bool is_at_hand(const tsr_plan *plan, const tsr_comm *comm)
{
    const tsr_native_move *move = &plan->items[0].native;
    return tsr_comm_has_native(comm, move->kind, plan->items[0].src->dtype, move->op) &&
           (move->ranks == tsr_comm_size(comm) || tsr_comm_can_split(comm));
}

/* Lists the ranks of this rank's collective by their positions in the plan's group, ascending. The
 * caller releases `*out`. */
static tsr_status list_members(const tsr_plan *plan, const tsr_group *group, int **out)
{
    const tsr_item *item = &plan->items[0];
    void *memory;
    TSR_TRY(tsr_allocate_array(plan->context, (size_t)group->count, sizeof(int), &memory));
    int *members = memory, count = 0;
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, item->src_coordinate, sizeof coordinate);
    for (int64_t i = 0; i < item->native.ranks; i++) {
        tsr_side_decode_dims(&item->problem.src, item->native.varies, i, coordinate);
        members[tsr_group_position(group, tsr_mesh_rank(item->src->mesh, coordinate))] = 1;
    }
    for (int i = 0; i < group->count; i++)
        if (members[i])
            members[count++] = i;
    *out = members;
    return TSR_OK;
}

/* Makes the group of this rank's collective. `*able` becomes false where a group does not have the
 * collective. */
static tsr_status make_group(const tsr_plan *plan, const tsr_group *group, uint64_t *key, bool *able)
{
    const tsr_item *item = &plan->items[0];
    const tsr_native_move *move = &item->native;
    int *members = NULL;
    const tsr_status local = list_members(plan, group, &members);
    const tsr_rank_set set = {members, local == TSR_OK ? (int)move->ranks : 0};
    const tsr_group_request request = {
        .set = set, .fingerprint = plan->hash, .local = local, .describe = tsr_plan_describe_call, .arg = plan};
    tsr_group_answer answer;
    tsr_status status = tsr_group_prepare(group->comm, &request, &answer);
    if (status == TSR_OK)
        *key = tsr_rank_set_hash(set);
    tsr_release(plan->context, members);
    if (status != TSR_OK || !tsr_native_goes_by_nodes(group->comm, move->kind))
        return status;
    *able = tsr_comm_has_native(answer.group->comm, move->kind, item->src->dtype, move->op);
    status = tsr_native_reserve(answer.group->comm, move->kind, tsr_native_count(move), item->src->dtype);
    return tsr_comm_agree_able(group->comm, plan->hash, status, able, tsr_plan_describe_call, plan);
}

tsr_status tsr_native_prepare(const tsr_plan *plan, const tsr_group *group)
{
    const tsr_native_move *move = &plan->items[0].native;
    if (!group || move->kind == TSR_NATIVE_NONE || !is_at_hand(plan, group->comm))
        return TSR_OK;
    bool able = !move->is_too_large;
    uint64_t key = 0;
    TSR_TRY(tsr_comm_agree_able(group->comm, plan->hash, TSR_OK, &able, tsr_plan_describe_call, plan));
    if (able)
        TSR_TRY(make_group(plan, group, &key, &able));
    __atomic_store_n(&plan->found->native_key, able ? key : 0, __ATOMIC_RELAXED);
    return TSR_OK;
}

bool tsr_native_is_found(const tsr_plan *plan, const tsr_group *group)
{
    return __atomic_load_n(&plan->found->native_key, __ATOMIC_RELAXED) && is_at_hand(plan, group->comm);
}

const tsr_group *tsr_native_group(const tsr_plan *plan, const tsr_group *group)
{
    const tsr_native_move *move = &plan->items[0].native;
    const tsr_dtype dtype = plan->items[0].src->dtype;
    const tsr_group *native = tsr_group_find(group->comm, __atomic_load_n(&plan->found->native_key, __ATOMIC_RELAXED));
    const bool fits = native && tsr_comm_has_native(native->comm, move->kind, dtype, move->op) &&
                      tsr_native_is_reserved(native->comm, move->kind, tsr_native_count(move), dtype);
    return fits ? native : NULL;
}
