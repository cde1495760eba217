#include "rules.h"

#include <string.h>

int64_t rule_mesh_count(const rule_mesh *mesh)
{
    int64_t count = 1;
    for (int d = 0; d < mesh->ndim; d++)
        count *= mesh->shape[d];
    return count;
}

void rule_mesh_coordinate(const rule_mesh *mesh, int64_t position, int64_t *coordinate)
{
    for (int d = mesh->ndim - 1; d >= 0; d--) {
        coordinate[d] = position % mesh->shape[d];
        position /= mesh->shape[d];
    }
}

bool rule_mesh_find(const rule_mesh *mesh, int64_t rank, int64_t *coordinate)
{
    for (int64_t position = 0; position < rule_mesh_count(mesh); position++)
        if (mesh->ranks[position] == rank) {
            rule_mesh_coordinate(mesh, position, coordinate);
            return true;
        }
    return false;
}

void rule_layout_bind(rule_layout *layout)
{
    for (int d = 0; d < layout->mesh.ndim; d++) {
        tsr_placement *p = &layout->placements[d];
        p->sizes = p->size_count ? layout->numbers[d] : NULL;
        p->blocks = p->block_count ? layout->numbers[d] : NULL;
    }
}

/* The part of element `at`. Chunks have ceil(count / parts) elements; of balanced parts the first
 * count mod parts have one more than the others. */
static int64_t deal(bool balanced, int64_t parts, int64_t count, int64_t at)
{
    if (!balanced)
        return at / ((count + parts - 1) / parts);
    const int64_t less = count / parts, more = count % parts;
    return at < more * (less + 1) ? at / (less + 1) : more + (at - more * (less + 1)) / less;
}

/* The index of the consecutive range, by lengths, that contains `*at`; `*at` becomes the offset in
 * that range. */
static int64_t range_of(const int64_t *lengths, int64_t *at)
{
    int64_t i = 0;
    for (; *at >= lengths[i]; i++)
        *at -= lengths[i];
    return i;
}

int64_t rule_part(const tsr_placement *cut, int64_t parts, int64_t length, int64_t at)
{
    if (cut->size_count)
        return range_of(cut->sizes, &at);
    if (cut->block_count)
        length = cut->blocks[range_of(cut->blocks, &at)];
    if (cut->interleave > 1) {
        const int64_t block = (length + cut->interleave - 1) / cut->interleave, begin = at / block * block;
        length = length - begin < block ? length - begin : block;
        at -= begin;
    }
    const int64_t unit = cut->unit > 1 ? cut->unit : 1;
    return deal(cut->balanced, parts, (length + unit - 1) / unit, at / unit);
}

static int64_t order_of(const rule_layout *layout, int mesh_dim)
{
    const int order = layout->placements[mesh_dim].order;
    return order == TSR_ORDER_DEFAULT ? mesh_dim : order;
}

int rule_cuts(const rule_layout *layout, int dim, int *mesh_dims)
{
    int count = 0;
    for (int d = 0; d < layout->mesh.ndim; d++) {
        if (layout->placements[d].kind != TSR_SHARD || layout->placements[d].dim != dim)
            continue;
        int at = count++;
        for (; at > 0 && order_of(layout, mesh_dims[at - 1]) > order_of(layout, d); at--)
            mesh_dims[at] = mesh_dims[at - 1];
        mesh_dims[at] = d;
    }
    return count;
}

int64_t rule_owned(const rule_layout *layout, const int64_t *coordinate, int dim, int cuts, int64_t *out)
{
    int mesh_dims[RULE_DIMS];
    const int all = rule_cuts(layout, dim, mesh_dims);
    int64_t length = layout->shape[dim];
    for (int64_t i = 0; i < length; i++)
        out[i] = i;
    for (int c = 0; c < all && c < cuts; c++) {
        const int d = mesh_dims[c];
        int64_t left = 0;
        for (int64_t i = 0; i < length; i++)
            if (rule_part(&layout->placements[d], layout->mesh.shape[d], length, i) == coordinate[d])
                out[left++] = out[i];
        length = left;
    }
    return length;
}

/* The layout without mesh dims of size 1; cuts keep their order. */
static void squeeze(const rule_layout *layout, rule_layout *out)
{
    *out = *layout;
    out->mesh.ndim = 0;
    for (int d = 0; d < layout->mesh.ndim; d++) {
        if (layout->mesh.shape[d] == 1)
            continue;
        const int to = out->mesh.ndim++;
        out->mesh.shape[to] = layout->mesh.shape[d];
        out->placements[to] = layout->placements[d];
        out->placements[to].order = (int)order_of(layout, d);
        memcpy(out->numbers[to], layout->numbers[d], sizeof out->numbers[to]);
    }
    rule_layout_bind(out);
}

static bool same_mesh(const rule_mesh *a, const rule_mesh *b)
{
    if (a->ndim != b->ndim)
        return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d])
            return false;
    return memcmp(a->ranks, b->ranks, (size_t)rule_mesh_count(a) * sizeof *a->ranks) == 0;
}

static int64_t or_none(int64_t number)
{
    return number > 1 ? number : 0;
}

static bool same_cut(const tsr_placement *a, const tsr_placement *b)
{
    return a->dim == b->dim && !a->balanced == !b->balanced && or_none(a->interleave) == or_none(b->interleave) &&
           or_none(a->unit) == or_none(b->unit) && a->size_count == b->size_count && a->block_count == b->block_count &&
           (!a->size_count || memcmp(a->sizes, b->sizes, a->size_count * sizeof *a->sizes) == 0) &&
           (!a->block_count || memcmp(a->blocks, b->blocks, a->block_count * sizeof *a->blocks) == 0);
}

static bool same_placement(const tsr_placement *a, const tsr_placement *b)
{
    return a->kind == b->kind && (a->kind != TSR_SHARD || same_cut(a, b)) && (a->kind != TSR_PARTIAL || a->op == b->op);
}

/* True if on every tensor dim the destination's cuts are the first cuts of the source, in the
 * source's order. */
static bool cuts_begin_alike(const rule_layout *src, const rule_layout *dst, bool all)
{
    for (int dim = 0; dim < src->ndim; dim++) {
        int from[RULE_DIMS], to[RULE_DIMS];
        const int count = rule_cuts(src, dim, from), left = rule_cuts(dst, dim, to);
        if (left > count || (all && left != count))
            return false;
        for (int c = 0; c < left; c++)
            if (from[c] != to[c] || !same_cut(&src->placements[from[c]], &dst->placements[to[c]]))
                return false;
    }
    return true;
}

/* True if ranks just keep their elements: Shard -> Partial(sum) on some mesh dims, no change on the
 * others, and the removed cuts come last. */
static bool is_shortcut(const rule_move *move)
{
    bool any = false;
    for (int d = 0; d < move->src.mesh.ndim; d++) {
        const tsr_placement *from = &move->src.placements[d], *to = &move->dst.placements[d];
        const bool taken = from->kind == TSR_SHARD && to->kind == TSR_PARTIAL && to->op == TSR_SUM;
        any = any || taken;
        if (!taken && !same_placement(from, to))
            return false;
    }
    return any && cuts_begin_alike(&move->src, &move->dst, false);
}

void rule_move_make(const rule_layout *src, const rule_layout *dst, rule_move *out)
{
    memset(out, 0, sizeof *out);
    squeeze(src, &out->src);
    squeeze(dst, &out->dst);
    out->same_mesh = same_mesh(&out->src.mesh, &out->dst.mesh);
    for (int d = 0; out->same_mesh && d < out->src.mesh.ndim; d++) {
        const tsr_placement *from = &out->src.placements[d], *to = &out->dst.placements[d];
        out->kept[d] = from->kind == TSR_PARTIAL && to->kind == TSR_PARTIAL && from->op == to->op;
    }
    out->shortcut = out->same_mesh && is_shortcut(out);
}

bool rule_in_place(const rule_move *move)
{
    if (!move->same_mesh || !cuts_begin_alike(&move->src, &move->dst, true))
        return false;
    for (int d = 0; d < move->src.mesh.ndim; d++)
        if ((move->src.placements[d].kind == TSR_SHARD) != (move->dst.placements[d].kind == TSR_SHARD))
            return false;
    return true;
}

/* The number of the term that a coordinate of the source mesh holds; replicas hold one term. */
static int64_t term_at(const rule_layout *src, const int64_t *coordinate)
{
    int64_t term = 0;
    for (int d = 0; d < src->mesh.ndim; d++)
        if (src->placements[d].kind == TSR_PARTIAL)
            term = term * src->mesh.shape[d] + coordinate[d];
    return term;
}

void rule_source_value(const rule_move *move, rule_values values, int64_t rank, int64_t global, unsigned char *out)
{
    int64_t coordinate[RULE_DIMS] = {0};
    rule_mesh_find(&move->src.mesh, rank, coordinate);
    rule_element(move->src.dtype, values, global, term_at(&move->src, coordinate), out);
}

static bool owns(const rule_layout *layout, const int64_t *coordinate, int64_t global)
{
    for (int dim = layout->ndim - 1; dim >= 0; dim--) {
        int64_t owned[RULE_LENGTH], found = 0;
        const int64_t count = rule_owned(layout, coordinate, dim, RULE_DIMS, owned),
                      index = global % layout->shape[dim];
        for (int64_t i = 0; i < count; i++)
            found += owned[i] == index;
        if (!found)
            return false;
        global /= layout->shape[dim];
    }
    return true;
}

/* The op of a new Partial dim in which this coordinate holds the identity; TSR_REDUCE_OP_END if
 * there is none. */
static tsr_reduce_op filled_by(const rule_move *move, const int64_t *coordinate)
{
    for (int d = 0; d < move->dst.mesh.ndim; d++) {
        const tsr_placement *p = &move->dst.placements[d];
        const bool is_new = p->kind == TSR_PARTIAL && !(move->same_mesh && move->kept[d]);
        if (is_new && coordinate[d] > 0 && (p->op == TSR_SUM || p->op == TSR_PROD))
            return p->op;
    }
    return TSR_REDUCE_OP_END;
}

/* Reduces the terms of one element in row-major order of the reduced coordinates; kept dims stay at
 * `at`. */
static void reduce_terms(const rule_move *move, rule_values values, const int64_t *at, int64_t global,
                         unsigned char *out)
{
    const size_t bytes = rule_bytes(move->src.dtype);
    unsigned char terms[RULE_RANKS * RULE_BYTES];
    int64_t count = 0, divisor = 1, coordinate[RULE_DIMS];
    tsr_reduce_op op = TSR_SUM;
    for (int d = 0; d < move->src.mesh.ndim; d++)
        if (move->src.placements[d].kind == TSR_PARTIAL && !move->kept[d]) {
            const tsr_reduce_op own = move->src.placements[d].op;
            divisor *= own == TSR_AVG ? move->src.mesh.shape[d] : 1;
            op = own == TSR_AVG ? TSR_SUM : own; /* avg is a sum that is divided at the end, and mixes with sum alone */
        }
    for (int64_t position = 0; position < rule_mesh_count(&move->src.mesh); position++) {
        bool chosen = true;
        rule_mesh_coordinate(&move->src.mesh, position, coordinate);
        for (int d = 0; d < move->src.mesh.ndim; d++) {
            const bool partial = move->src.placements[d].kind == TSR_PARTIAL;
            chosen = chosen && (partial ? !move->kept[d] || coordinate[d] == at[d] : coordinate[d] == 0);
        }
        if (chosen)
            rule_element(move->src.dtype, values, global, term_at(&move->src, coordinate),
                         terms + (size_t)count++ * bytes);
    }
    if (count == 1)
        memcpy(out, terms, bytes);
    else
        rule_reduce(move->src.dtype, op, divisor, terms, count, out);
}

void rule_expected_value(const rule_move *move, rule_values values, int64_t rank, int64_t global, unsigned char *out)
{
    int64_t at[RULE_DIMS] = {0};
    rule_mesh_find(&move->dst.mesh, rank, at);
    if (move->shortcut && owns(&move->src, at, global)) {
        rule_element(move->src.dtype, values, global, term_at(&move->src, at), out);
        return;
    }
    const tsr_reduce_op fill = move->shortcut ? TSR_SUM : filled_by(move, at);
    if (fill != TSR_REDUCE_OP_END)
        rule_fill(move->dst.dtype, fill, out);
    else
        reduce_terms(move, values, at, global, out);
}
