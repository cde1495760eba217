#include "collective_oracle.h"

#include <stdlib.h>
#include <string.h>

static bool same_numbers(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count)
{
    return a_count == b_count && (a_count == 0 || memcmp(a, b, a_count * sizeof *a) == 0);
}

static int64_t at_least_one(int64_t value)
{
    return value > 0 ? value : 1;
}

/* Whether two placements are equal in all fields but `order`. */
static bool alike(const tsr_placement *a, const tsr_placement *b)
{
    if (a->kind != b->kind)
        return false;
    if (a->kind == TSR_PARTIAL)
        return a->op == b->op;
    return a->kind == TSR_REPLICATE || (a->dim == b->dim && a->balanced == b->balanced &&
                                        at_least_one(a->interleave) == at_least_one(b->interleave) &&
                                        at_least_one(a->unit) == at_least_one(b->unit) &&
                                        same_numbers(a->sizes, a->size_count, b->sizes, b->size_count) &&
                                        same_numbers(a->blocks, a->block_count, b->blocks, b->block_count));
}

static collective change(const tsr_placement *from, const tsr_placement *to)
{
    if (from->kind == TSR_SHARD && to->kind == TSR_REPLICATE)
        return ALL_GATHER;
    if (from->kind == TSR_PARTIAL && to->kind == TSR_SHARD)
        return REDUCE_SCATTER;
    return from->kind == TSR_PARTIAL && to->kind == TSR_REPLICATE ? ALL_REDUCE : NO_COLLECTIVE;
}

/* The collective of all mesh dims whose placements change; NO_COLLECTIVE where they need different
 * ones. */
static collective common_change(const oracle_move *move)
{
    collective found = NO_COLLECTIVE;
    for (int m = 0; m < move->src.mesh.ndim; m++) {
        const tsr_placement *from = &move->src.placements[m], *to = &move->dst.placements[m];
        if (alike(from, to))
            continue;
        const collective here = change(from, to);
        if (here == NO_COLLECTIVE || (found != NO_COLLECTIVE && found != here))
            return NO_COLLECTIVE;
        found = here;
    }
    return found;
}

/* Whether the first cuts of `inner` along every tensor dim are the cuts of `outer`. */
static bool begins_with(const oracle_layout *inner, const oracle_layout *outer)
{
    for (int d = 0; d < inner->ndim; d++) {
        int a[TSR_MAX_DIMS], b[TSR_MAX_DIMS];
        const int count = oracle_cuts_of(outer, d, b);
        if (oracle_cuts_of(inner, d, a) < count || memcmp(a, b, (size_t)count * sizeof *a) != 0)
            return false;
    }
    return true;
}

static int64_t length_of(const oracle_layout *layout, int64_t position, int dim)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t *indices = malloc((size_t)(layout->shape[dim] + 1) * sizeof *indices);
    oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    const int64_t count = oracle_owned(layout, coordinate, dim, indices);
    free(indices);
    return count;
}

static bool is_cut_further(const oracle_layout *inner, const oracle_layout *outer, int dim)
{
    int cuts[TSR_MAX_DIMS];
    return oracle_cuts_of(inner, dim, cuts) > oracle_cuts_of(outer, dim, cuts);
}

/* Whether all ranks have equal lengths of every tensor dim that `inner` cuts further. */
static bool is_even(const oracle_layout *inner, const oracle_layout *outer)
{
    for (int d = 0; d < inner->ndim; d++)
        for (int64_t p = 0; is_cut_further(inner, outer, d) && p < oracle_mesh_count(&inner->mesh); p++)
            if (length_of(inner, p, d) != length_of(inner, 0, d))
                return false;
    return true;
}

/* Whether, along `dim`, all of each piece of `outer` is on one rank of `inner`, at the same
 * coordinates everywhere. */
static bool is_on_one(const oracle_layout *inner, const oracle_layout *outer, int dim)
{
    int64_t holder[TSR_MAX_DIMS], coordinate[TSR_MAX_DIMS];
    bool found = false;
    for (int64_t p = 0; p < oracle_mesh_count(&inner->mesh); p++) {
        const int64_t all = length_of(outer, p, dim), own = length_of(inner, p, dim);
        if (all != length_of(outer, 0, dim) || (own != 0 && own != all))
            return false;
        if (own == 0)
            continue;
        oracle_mesh_coordinate(&inner->mesh, p, coordinate);
        for (int m = 0; found && m < inner->mesh.ndim; m++)
            if (inner->placements[m].kind == TSR_SHARD && inner->placements[m].dim == dim &&
                outer->placements[m].kind != TSR_SHARD && coordinate[m] != holder[m])
                return false;
        memcpy(holder, coordinate, sizeof holder);
        found = true;
    }
    return found;
}

static bool is_broadcast(const oracle_move *move)
{
    for (int d = 0; d < move->src.ndim; d++)
        if (is_cut_further(&move->src, &move->dst, d) && !is_on_one(&move->src, &move->dst, d))
            return false;
    return true;
}

static bool may_reduce(const oracle_move *move, tsr_reduction_order order)
{
    static const tsr_dtype exact[] = {TSR_I64, TSR_I32, TSR_I16, TSR_I8, TSR_U64, TSR_U32, TSR_U16, TSR_U8, TSR_BOOL};
    bool is_exact = false;
    for (size_t i = 0; i < sizeof exact / sizeof exact[0]; i++)
        is_exact = is_exact || exact[i] == move->src.dtype;
    return (is_exact || order == TSR_REDUCTION_ANY_ORDER) &&
           (move->divisor == 1 || move->divisor == move->reduced_terms);
}

collective oracle_collective(const oracle_move *move, tsr_reduction_order order)
{
    if (!move->same_mesh || oracle_count(&move->src) == 0)
        return NO_COLLECTIVE;
    const collective kind = common_change(move);
    const bool gathers = begins_with(&move->src, &move->dst), scatters = begins_with(&move->dst, &move->src);
    switch (kind) {
    case ALL_GATHER:
        if (!gathers)
            return NO_COLLECTIVE;
        return is_even(&move->src, &move->dst) ? ALL_GATHER : is_broadcast(move) ? BROADCAST : NO_COLLECTIVE;
    case REDUCE_SCATTER:
        return scatters && is_even(&move->dst, &move->src) && may_reduce(move, order) ? REDUCE_SCATTER : NO_COLLECTIVE;
    case ALL_REDUCE:
        return gathers && scatters && may_reduce(move, order) ? ALL_REDUCE : NO_COLLECTIVE;
    default:
        return NO_COLLECTIVE;
    }
}

static bool has_elements(const oracle_layout *layout, int64_t rank)
{
    const int64_t position = oracle_mesh_position(&layout->mesh, rank);
    if (position < 0)
        return false;
    for (int d = 0; d < layout->ndim; d++)
        if (length_of(layout, position, d) == 0)
            return false;
    return true;
}

message_engine_tally oracle_collective_calls(const oracle_move *move, tsr_reduction_order order, int64_t rank)
{
    const int here = has_elements(&move->dst, rank);
    message_engine_tally calls = {0, 0, 0, 0};
    switch (oracle_collective(move, order)) {
    case ALL_GATHER:
        calls.all_gathers = here;
        break;
    case REDUCE_SCATTER:
        calls.reduce_scatters = here;
        break;
    case ALL_REDUCE:
        calls.all_reduces = here;
        break;
    case BROADCAST:
        calls.broadcasts = here;
        break;
    default:
        break;
    }
    return calls;
}

const char *collective_name(collective kind)
{
    static const char *const names[] = {"none", "all_gather", "reduce_scatter", "all_reduce", "broadcast"};
    return names[kind];
}
