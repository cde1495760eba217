#include <string.h>

#include <tessera/sys/status.h>

#include "base/memory.h"
#include "mesh/geometry.h"
#include "redistribute/build.h"
#include "redistribute/turn.h"

/* The destination keys that need each source piece that this rank meets: by tensor dim and group, built when first asked for. */
typedef struct needs {
    tsr_overlap *groups[TSR_MAX_DIMS];
    bool *built[TSR_MAX_DIMS];
} needs;

typedef struct receiver {
    tsr_item *item;
    const tsr_problem *problem;
    tsr_regions regions;
    tsr_homes homes;
    needs needs;
    int64_t src[TSR_MAX_DIMS]; /* the source coordinate of the current region's piece */
} receiver;

static tsr_status prepare_needs(receiver *r)
{
    for (int dim = 0; dim < r->item->dst->ndim; dim++) {
        const size_t count = r->regions.dims[dim].group_count;
        void *memory;
        TSR_TRY(tsr_allocate_array(r->item->context, count, sizeof(tsr_overlap), &memory));
        r->needs.groups[dim] = memory;
        TSR_TRY(tsr_allocate_array(r->item->context, count, sizeof(bool), &memory));
        r->needs.built[dim] = memory;
    }
    return TSR_OK;
}

static void free_needs(receiver *r)
{
    for (int dim = 0; dim < TSR_MAX_DIMS; dim++) {
        for (size_t g = 0; r->needs.built[dim] && g < r->regions.dims[dim].group_count; g++)
            tsr_overlap_free(&r->needs.groups[dim][g], r->item->context);
        tsr_release(r->item->context, r->needs.groups[dim]);
        tsr_release(r->item->context, r->needs.built[dim]);
    }
}

static tsr_status find_needs(receiver *r, const tsr_overlap **dims)
{
    for (int dim = 0; dim < r->item->dst->ndim; dim++) {
        const size_t g = r->regions.group[dim];
        if (!r->needs.built[dim][g])
            TSR_TRY(tsr_overlap_build(&r->needs.groups[dim][g], r->item->src, r->src, r->item->dst, dim));
        r->needs.built[dim][g] = true;
        tsr_turn_prepare(r->problem, r->src, dim, &r->needs.groups[dim][g]);
        dims[dim] = &r->needs.groups[dim][g];
    }
    return TSR_OK;
}

static bool has_own(const receiver *r)
{
    return r->item->in_src && tsr_problem_holds(r->problem, r->item->src_coordinate, r->src);
}

/* The replica that serves this rank: its own copy, else the one whose turn it is. */
static tsr_status pick_source(receiver *r, int64_t *peer)
{
    const tsr_item *item = r->item;
    if (has_own(r)) {
        *peer = item->rank;
        return TSR_OK;
    }
    int64_t replica = 0;
    if (r->problem->replicas > 1) {
        const tsr_overlap *dims[TSR_MAX_DIMS];
        TSR_TRY(find_needs(r, dims));
        const tsr_piece piece = {r->src, dims};
        replica = tsr_turn(r->problem, &piece, item->dst_coordinate) % r->problem->replicas;
    }
    tsr_side_decode(&r->problem->src, TSR_ROLE_FREE, replica, r->src);
    *peer = tsr_mesh_rank(item->src->mesh, r->src);
    return TSR_OK;
}

static tsr_status add_move(receiver *r)
{
    if (r->problem->shortcut && !has_own(r))
        return TSR_OK;
    tsr_transfer move = {0};
    TSR_TRY(pick_source(r, &move.peer));
    TSR_TRY(tsr_regions_append(&r->regions, r->item, NULL, &move.first_box, &move.box_count, &move.elements));
    return tsr_transfers_append(&r->item->moves, r->item, &move);
}

/* `remote`: how many of them are other ranks. */
static tsr_status add_contributors(receiver *r, int64_t home, int64_t *remote)
{
    tsr_item *item = r->item;
    void *memory = item->contributors;
    const tsr_status status = tsr_reserve(item->context, &memory, &item->contributor_capacity,
                                          item->contributor_count + (size_t)r->problem->terms, sizeof(int64_t));
    item->contributors = memory;
    TSR_TRY(status);
    for (int64_t term = 0; term < r->problem->terms; term++) {
        int64_t contributor[TSR_MAX_DIMS];
        tsr_homes_contributor(&r->homes, r->problem, r->src, home, term, contributor);
        const int64_t rank = tsr_mesh_rank(item->src->mesh, contributor);
        item->contributors[item->contributor_count++] = rank;
        *remote += rank != item->rank;
    }
    return TSR_OK;
}

/* To whom results go. All owners hold the same destination piece, whatever region they share. */
static tsr_status note_owners(receiver *r)
{
    tsr_item *item = r->item;
    const int64_t count = r->problem->each ? 1 : tsr_side_count(&r->problem->dst, TSR_ROLE_FREE);
    void *memory;
    TSR_TRY(tsr_allocate_array(item->context, (size_t)count, sizeof(int64_t), &memory));
    item->owners = memory;
    int64_t coordinate[TSR_MAX_DIMS];
    memcpy(coordinate, item->dst_coordinate, sizeof coordinate);
    for (int64_t i = 0; i < count; i++) {
        if (!r->problem->each)
            tsr_side_decode(&r->problem->dst, TSR_ROLE_FREE, i, coordinate);
        item->owners[i] = tsr_mesh_rank(item->dst->mesh, coordinate);
    }
    item->owner_count = (size_t)count;
    return TSR_OK;
}

/* One transfer an owner: what it is given in the second phase. */
static tsr_status give(tsr_item *item, const tsr_reduction *reduction)
{
    for (size_t i = 0; i < item->owner_count; i++) {
        const tsr_transfer gift = {item->owners[i], reduction->first_box, reduction->box_count, reduction->elements};
        if (gift.peer != item->rank)
            TSR_TRY(tsr_transfers_append(&item->gives, item, &gift));
    }
    return TSR_OK;
}

static tsr_status add_reduction(receiver *r, int64_t home, const tsr_part *part)
{
    tsr_item *item = r->item;
    tsr_reduction reduction = {.first_term = item->contributor_count};
    TSR_TRY(tsr_regions_append(&r->regions, item, part, &reduction.first_box, &reduction.box_count, &reduction.elements));
    if (reduction.elements == 0)
        return TSR_OK;
    if (!item->owners)
        TSR_TRY(note_owners(r));
    void *memory = item->reductions;
    const tsr_status status = tsr_reserve(item->context, &memory, &item->reduction_capacity, item->reduction_count + 1, sizeof reduction);
    item->reductions = memory;
    TSR_TRY(status);
    int64_t remote = 0;
    TSR_TRY(add_contributors(r, home, &remote));
    item->reductions[item->reduction_count++] = reduction;
    TSR_TRY(tsr_item_add(item, &item->term_elements, reduction.elements, remote));
    return give(item, &reduction);
}

static tsr_status add_shared(receiver *r)
{
    tsr_item *item = r->item;
    TSR_TRY(tsr_homes_find(&r->homes, r->problem, r->src, item->dst_coordinate));
    for (int64_t home = 0; home < r->homes.count; home++) {
        const int64_t rank = tsr_homes_rank(&r->homes, r->problem, home);
        if (r->problem->each && rank != item->rank)
            continue;
        const tsr_part part = tsr_regions_part(&r->regions, r->problem, home, r->homes.count);
        if (rank == item->rank) {
            TSR_TRY(add_reduction(r, home, &part));
            continue;
        }
        tsr_transfer gift = {.peer = rank};
        TSR_TRY(tsr_regions_append(&r->regions, item, &part, &gift.first_box, &gift.box_count, &gift.elements));
        TSR_TRY(tsr_transfers_append(&item->given, item, &gift));
    }
    return TSR_OK;
}

static tsr_status walk(receiver *r)
{
    tsr_item *item = r->item;
    TSR_TRY(tsr_regions_begin(&r->regions, item->dst, item->dst_coordinate, item->src, false));
    if (r->problem->replicas > 1 && !r->problem->reduces)
        TSR_TRY(prepare_needs(r));
    for (int i = 0; i < r->problem->src.ndim; i++)
        if (r->problem->src.roles[i] == TSR_ROLE_KEPT)
            r->src[i] = item->dst_coordinate[r->problem->src.twin[i]];
    for (; !r->regions.done; tsr_regions_next(&r->regions)) {
        tsr_regions_far(&r->regions, r->src);
        TSR_TRY(r->problem->reduces ? add_shared(r) : add_move(r));
    }
    return TSR_OK;
}

tsr_status tsr_build_receives(tsr_item *item)
{
    if (!item->in_dst)
        return TSR_OK;
    item->fills = item->problem.shortcut || !tsr_problem_has_value(&item->problem, item->dst_coordinate);
    if (item->fills && !item->problem.shortcut)
        return TSR_OK;
    receiver r = {.item = item, .problem = &item->problem};
    r.regions.far = item->src;
    const tsr_status status = walk(&r);
    free_needs(&r);
    tsr_homes_free(&r.homes, item->context);
    tsr_regions_free(&r.regions);
    return status;
}
