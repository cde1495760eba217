/* The result that a redistribution must give. */
#include "oracle.h"

#include <stdlib.h>
#include <string.h>

/* The layout without mesh dims of size 1, with an explicit order for every cut. */
static oracle_layout squeeze(const oracle_layout *layout)
{
    oracle_layout out = *layout;
    out.mesh.ndim = 0;
    for (int m = 0; m < layout->mesh.ndim; m++) {
        if (layout->mesh.shape[m] == 1)
            continue;
        out.mesh.shape[out.mesh.ndim] = layout->mesh.shape[m];
        out.placements[out.mesh.ndim] = layout->placements[m];
        if (layout->placements[m].order == TSR_ORDER_DEFAULT)
            out.placements[out.mesh.ndim].order = m;
        out.mesh.ndim++;
    }
    return out;
}

static bool equal_meshes(const oracle_mesh *a, const oracle_mesh *b)
{
    if (a->ndim != b->ndim || memcmp(a->shape, b->shape, (size_t)a->ndim * sizeof a->shape[0]) != 0)
        return false;
    const int64_t count = oracle_mesh_count(a);
    return count > ORACLE_MAX_RANKS || memcmp(a->ranks, b->ranks, (size_t)count * sizeof a->ranks[0]) == 0;
}

static int64_t at_least_one(int64_t n)
{
    return n > 1 ? n : 1;
}

static bool equal_numbers(const int64_t *a, size_t a_count, const int64_t *b, size_t b_count)
{
    if (!a || !b)
        return a == b;
    return a_count == b_count && memcmp(a, b, a_count * sizeof *a) == 0;
}

bool oracle_same_cut(const tsr_placement *a, const tsr_placement *b)
{
    return a->dim == b->dim && !a->balanced == !b->balanced && at_least_one(a->unit) == at_least_one(b->unit) &&
           at_least_one(a->interleave) == at_least_one(b->interleave) &&
           equal_numbers(a->sizes, a->size_count, b->sizes, b->size_count) &&
           equal_numbers(a->blocks, a->block_count, b->blocks, b->block_count);
}

/* True if on every tensor dim the cuts by mesh dims that are not in `skip` are equal, in equal
 * order. */
static bool equal_cuts(const oracle_layout *a, const oracle_layout *b, const bool *skip)
{
    for (int d = 0; d < a->ndim; d++) {
        int a_dims[TSR_MAX_DIMS], b_dims[TSR_MAX_DIMS];
        const int a_count = oracle_cuts_of(a, d, a_dims), b_count = oracle_cuts_of(b, d, b_dims);
        int i = 0, j = 0;
        for (;; i++, j++) {
            while (i < a_count && skip[a_dims[i]])
                i++;
            while (j < b_count && skip[b_dims[j]])
                j++;
            if (i == a_count || j == b_count)
                break;
            if (a_dims[i] != b_dims[j] || !oracle_same_cut(&a->placements[a_dims[i]], &b->placements[b_dims[j]]))
                return false;
        }
        if (i != a_count || j != b_count)
            return false;
    }
    return true;
}

/* True if on every tensor dim the cuts by `removed` mesh dims come after all other cuts. */
static bool removed_cuts_are_last(const oracle_layout *layout, const bool *removed)
{
    for (int d = 0; d < layout->ndim; d++) {
        int dims[TSR_MAX_DIMS];
        const int count = oracle_cuts_of(layout, d, dims);
        for (int c = 1; c < count; c++)
            if (removed[dims[c - 1]] && !removed[dims[c]])
                return false;
    }
    return true;
}

/* True if every rank just keeps its elements: Shard -> Partial(sum) on some mesh dims, and equal
 * placements on all other mesh dims. */
static bool shortcut_holds(const oracle_layout *src, const oracle_layout *dst)
{
    bool takes[TSR_MAX_DIMS] = {false}, any = false;
    for (int m = 0; m < src->mesh.ndim; m++) {
        const tsr_placement *a = &src->placements[m], *b = &dst->placements[m];
        takes[m] = a->kind == TSR_SHARD && b->kind == TSR_PARTIAL && b->op == TSR_SUM;
        any = any || takes[m];
        if (!takes[m] && (a->kind != b->kind || (a->kind == TSR_PARTIAL && a->op != b->op)))
            return false;
    }
    return any && equal_cuts(src, dst, takes) && removed_cuts_are_last(src, takes);
}

void oracle_move_make(const oracle_layout *src, const oracle_layout *dst, oracle_move *out)
{
    *out = (oracle_move){.src = squeeze(src), .dst = squeeze(dst), .reduced_terms = 1, .divisor = 1};
    out->same_mesh = equal_meshes(&out->src.mesh, &out->dst.mesh);
    out->shortcut = out->same_mesh && shortcut_holds(&out->src, &out->dst);
    for (int m = 0; m < out->src.mesh.ndim; m++) {
        const tsr_placement *a = &out->src.placements[m], *b = &out->dst.placements[m];
        if (a->kind != TSR_PARTIAL)
            continue;
        out->kept[m] = out->same_mesh && b->kind == TSR_PARTIAL && a->op == b->op;
        if (out->kept[m])
            continue;
        out->reduced_terms *= out->src.mesh.shape[m];
        out->divisor *= a->op == TSR_AVG ? out->src.mesh.shape[m] : 1;
        out->reduced_op = a->op == TSR_AVG ? TSR_SUM : a->op;
    }
}

bool oracle_in_place(const oracle_move *move)
{
    const bool none[TSR_MAX_DIMS] = {false};
    return move->same_mesh && equal_cuts(&move->src, &move->dst, none);
}

void oracle_source_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global,
                         unsigned char *value)
{
    int64_t term = 0;
    for (int m = 0; m < move->src.mesh.ndim; m++)
        if (move->src.placements[m].kind == TSR_PARTIAL)
            term = term * move->src.mesh.shape[m] + coordinate[m];
    oracle_element(move->src.dtype, seed, global, term, value);
}

void oracle_reduced_value(const oracle_move *move, oracle_draw *draw, const void *how, const int64_t *coordinate,
                          int64_t number, unsigned char *value)
{
    oracle_reduction sum = {move->src.dtype, move->reduced_op, move->divisor, 0, 0, 0, 0};
    for (int64_t t = 0; t < move->reduced_terms; t++) {
        int64_t at[TSR_MAX_DIMS] = {0}, rest = t;
        for (int m = move->src.mesh.ndim - 1; m >= 0; m--) {
            const bool reduced = move->src.placements[m].kind == TSR_PARTIAL && !move->kept[m];
            at[m] = reduced ? rest % move->src.mesh.shape[m] : move->kept[m] ? coordinate[m] : 0;
            rest = reduced ? rest / move->src.mesh.shape[m] : rest;
        }
        draw(move, how, at, number, value);
        oracle_reduction_add(&sum, value);
    }
    if (move->reduced_terms > 1)
        oracle_reduction_finish(&sum, value);
}

const tsr_placement *oracle_filled_by(const oracle_move *move, const int64_t *coordinate)
{
    for (int m = 0; m < move->dst.mesh.ndim; m++) {
        const tsr_placement *p = &move->dst.placements[m];
        const bool is_new = p->kind == TSR_PARTIAL && !(move->same_mesh && move->kept[m]);
        if (is_new && coordinate[m] != 0 && (p->op == TSR_SUM || p->op == TSR_PROD))
            return p;
    }
    return NULL;
}

static bool owns(const oracle_layout *layout, const int64_t *coordinate, int64_t global)
{
    bool all = true;
    for (int d = layout->ndim - 1; d >= 0 && all; d--) {
        int64_t *list = calloc((size_t)layout->shape[d] + 1, sizeof *list);
        const int64_t count = oracle_owned(layout, coordinate, d, list);
        all = false;
        for (int64_t i = 0; i < count; i++)
            all = all || list[i] == global % layout->shape[d];
        global /= layout->shape[d];
        free(list);
    }
    return all;
}

/* oracle_source_value() as a draw; `how` is the seed. */
static void draw_from_seed(const oracle_move *move, const void *how, const int64_t *coordinate, int64_t global,
                           unsigned char *value)
{
    oracle_source_value(move, *(const uint64_t *)how, coordinate, global, value);
}

void oracle_expected_value(const oracle_move *move, uint64_t seed, const int64_t *coordinate, int64_t global,
                           unsigned char *value)
{
    if (move->shortcut && owns(&move->src, coordinate, global)) {
        oracle_source_value(move, seed, coordinate, global, value);
        return;
    }
    const tsr_placement *fill = oracle_filled_by(move, coordinate);
    if (move->shortcut)
        oracle_identity(move->src.dtype, TSR_SUM, value);
    else if (fill)
        oracle_identity(move->src.dtype, fill->op, value);
    else
        oracle_reduced_value(move, draw_from_seed, &seed, coordinate, global, value);
}

void oracle_fill(const oracle_move *move, uint64_t seed, bool expected, int64_t rank, unsigned char *out)
{
    const oracle_layout *layout = expected ? &move->dst : &move->src;
    const int64_t position = oracle_mesh_position(&layout->mesh, rank);
    if (position < 0)
        return;
    int64_t coordinate[TSR_MAX_DIMS];
    oracle_mesh_coordinate(&layout->mesh, position, coordinate);
    oracle_shard shard;
    oracle_shard_create(layout, rank, &shard);
    const size_t bytes = oracle_bytes(layout->dtype);
    for (int64_t i = 0; i < shard.count; i++) {
        const int64_t global = oracle_shard_global(&shard, i);
        if (expected)
            oracle_expected_value(move, seed, coordinate, global, out + (size_t)i * bytes);
        else
            oracle_source_value(move, seed, coordinate, global, out + (size_t)i * bytes);
    }
    oracle_shard_destroy(&shard);
}
