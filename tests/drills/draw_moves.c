#include "draw_moves.h"

#include <string.h>

/* Meshes. */

/* Draws up to three dims, some of size 1, whose product is at most `ranks`, and mostly equal to
 * it. */
static void draw_shape(drill_draws *draws, int ranks, rule_mesh *mesh)
{
    int64_t left = drill_one_in(draws, 4) ? 1 + drill_below(draws, ranks) : ranks;
    mesh->ndim = 1 + (int)drill_below(draws, 3);
    for (int d = 0; d < mesh->ndim; d++) {
        int64_t size = d == mesh->ndim - 1 ? left : 1 + drill_below(draws, left);
        while (d < mesh->ndim - 1 && left % size && !drill_one_in(draws, 4))
            size--;
        mesh->shape[d] = size;
        left /= size;
    }
}

static void draw_ranks(drill_draws *draws, int ranks, rule_mesh *mesh)
{
    const int64_t count = rule_mesh_count(mesh), first = drill_below(draws, ranks - count + 1);
    int64_t all[RULE_RANKS];
    for (int r = 0; r < ranks; r++)
        all[r] = r;
    const bool shuffled = drill_one_in(draws, 3);
    for (int r = ranks - 1; shuffled && r > 0; r--) {
        const int64_t other = drill_below(draws, r + 1), kept = all[r];
        all[r] = all[other];
        all[other] = kept;
    }
    memcpy(mesh->ranks, all + (shuffled ? 0 : first), (size_t)count * sizeof *all);
}

static void draw_mesh(drill_draws *draws, int ranks, rule_mesh *mesh)
{
    memset(mesh, 0, sizeof *mesh);
    draw_shape(draws, ranks, mesh);
    draw_ranks(draws, ranks, mesh);
}

void rule_mesh_slice(const rule_mesh *mesh, int slice, int64_t rank, rule_mesh *out)
{
    int64_t through[RULE_DIMS] = {0}, at[RULE_DIMS], count = 0;
    memset(out, 0, sizeof *out);
    rule_mesh_find(mesh, rank, through);
    for (int d = 0; d < mesh->ndim; d++)
        if (slice >> d & 1)
            out->shape[out->ndim++] = mesh->shape[d];
    for (int64_t position = 0; position < rule_mesh_count(mesh); position++) {
        bool inside = true;
        rule_mesh_coordinate(mesh, position, at);
        for (int d = 0; d < mesh->ndim; d++)
            inside = inside && (slice >> d & 1 || at[d] == through[d]);
        if (inside)
            out->ranks[count++] = mesh->ranks[position];
    }
}

/* Tensors and placements. */

static void draw_tensor(drill_draws *draws, int *ndim, int64_t *shape)
{
    static const int64_t lengths[] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11, 12, 13, 16, 17, 23, 24, 31, 48, 64};
    int64_t count = 1;
    *ndim = (int)drill_below(draws, RULE_DIMS + 1);
    for (int d = 0; d < *ndim; d++) {
        do
            shape[d] = lengths[drill_below(draws, sizeof lengths / sizeof *lengths)];
        while (shape[d] == 0 && !drill_one_in(draws, 4));
        while (count * shape[d] > 3000)
            shape[d] = shape[d] / 2;
        count *= shape[d] ? shape[d] : 1;
    }
}

static tsr_reduce_op draw_op(drill_draws *draws, tsr_dtype dtype)
{
    tsr_reduce_op op;
    do
        op = drill_one_in(draws, 2) ? TSR_SUM : (tsr_reduce_op)drill_below(draws, TSR_REDUCE_OP_END);
    while (!rule_has_op(dtype, op));
    return op;
}

/* An op for another Partial mesh dim: the library refuses ops that differ, except sum with avg. */
static tsr_reduce_op other_op(drill_draws *draws, tsr_dtype dtype, tsr_reduce_op op)
{
    const bool mixes = (op == TSR_SUM || op == TSR_AVG) && rule_has_op(dtype, TSR_AVG);
    return mixes && drill_one_in(draws, 3) ? (op == TSR_SUM ? TSR_AVG : TSR_SUM) : op;
}

static void draw_kinds(drill_draws *draws, rule_layout *layout)
{
    const tsr_reduce_op op = draw_op(draws, layout->dtype);
    for (int d = 0; d < layout->mesh.ndim; d++) {
        tsr_placement *p = &layout->placements[d];
        *p = (tsr_placement){.kind = TSR_REPLICATE, .order = TSR_ORDER_DEFAULT};
        const int64_t kind = drill_below(draws, 8);
        if (kind < 5 && layout->ndim > 0) {
            p->kind = TSR_SHARD;
            p->dim = (int)drill_below(draws, layout->ndim);
        } else if (kind < 7) {
            p->kind = TSR_PARTIAL;
            p->op = other_op(draws, layout->dtype, op);
        }
    }
}

static void draw_orders(drill_draws *draws, rule_layout *layout)
{
    int order[RULE_DIMS] = {0, 1, 2, 3};
    for (int d = RULE_DIMS - 1; d > 0; d--) {
        const int other = (int)drill_below(draws, d + 1), kept = order[d];
        order[d] = order[other];
        order[other] = kept;
    }
    for (int d = 0; d < layout->mesh.ndim; d++)
        if (layout->placements[d].kind == TSR_SHARD)
            layout->placements[d].order = order[d];
}

/* The length of the pieces that cut number `cut` of a tensor dim divides; -1 if they differ. */
static int64_t piece_length(const rule_layout *layout, int dim, int cut)
{
    int64_t length = -1, coordinate[RULE_DIMS], owned[RULE_LENGTH];
    for (int64_t position = 0; position < rule_mesh_count(&layout->mesh); position++) {
        rule_mesh_coordinate(&layout->mesh, position, coordinate);
        const int64_t own = rule_owned(layout, coordinate, dim, cut, owned);
        if (length >= 0 && own != length)
            return -1;
        length = own;
    }
    return length;
}

/* Draws `count` numbers, zeros included, with the sum `total`. */
static void draw_sum(drill_draws *draws, int64_t total, int64_t count, int64_t *numbers)
{
    for (int64_t i = 0; i < count; i++) {
        numbers[i] = i == count - 1 ? total : drill_below(draws, total + 1);
        total -= numbers[i];
    }
}

static void draw_split(drill_draws *draws, rule_layout *layout, int mesh_dim, int64_t length)
{
    tsr_placement *p = &layout->placements[mesh_dim];
    const int64_t split = drill_below(draws, 6);
    if (split == 0 && length >= 0) {
        p->size_count = (size_t)layout->mesh.shape[mesh_dim];
        draw_sum(draws, length, layout->mesh.shape[mesh_dim], layout->numbers[mesh_dim]);
    } else if (split == 1 && length >= 0) {
        p->block_count = (size_t)(1 + drill_below(draws, 4));
        draw_sum(draws, length, (int64_t)p->block_count, layout->numbers[mesh_dim]);
    } else if (split == 2) {
        p->interleave = 1 + drill_below(draws, 5);
    }
    if (!p->size_count && drill_one_in(draws, 3))
        p->balanced = 1;
    if (!p->size_count && drill_one_in(draws, 4))
        p->unit = 1 + drill_below(draws, 5);
    rule_layout_bind(layout);
}

static void draw_layout(drill_draws *draws, rule_layout *layout)
{
    int mesh_dims[RULE_DIMS];
    draw_kinds(draws, layout);
    if (drill_one_in(draws, 3))
        draw_orders(draws, layout);
    const bool plain = drill_one_in(draws, 3);
    for (int dim = 0; !plain && dim < layout->ndim; dim++) {
        const int cuts = rule_cuts(layout, dim, mesh_dims);
        for (int cut = 0; cut < cuts; cut++)
            draw_split(draws, layout, mesh_dims[cut], piece_length(layout, dim, cut));
    }
}

/* Makes `to` like `from` on some mesh dims, so that Partial dims stay too. */
static void copy_some(drill_draws *draws, const rule_layout *from, rule_layout *to)
{
    *to = *from;
    rule_layout_bind(to);
    const int changed = (int)drill_below(draws, to->mesh.ndim);
    tsr_placement *p = &to->placements[changed];
    const bool was_last = p->kind == TSR_SHARD;
    if (!was_last && p->kind != TSR_PARTIAL)
        return;
    int mesh_dims[RULE_DIMS];
    const int cuts = was_last ? rule_cuts(to, p->dim, mesh_dims) : 0;
    if (was_last && mesh_dims[cuts - 1] != changed)
        return;
    bool sums = rule_has_op(to->dtype, TSR_SUM);
    for (int d = 0; d < to->mesh.ndim; d++)
        sums = sums && (to->placements[d].kind != TSR_PARTIAL || to->placements[d].op == TSR_SUM);
    *p = (tsr_placement){.kind = was_last && sums && drill_one_in(draws, 2) ? TSR_PARTIAL : TSR_REPLICATE,
                         .order = TSR_ORDER_DEFAULT};
}

static void draw_item(drill_draws *draws, const rule_mesh meshes[2], bool one_mesh, rule_layout *src, rule_layout *dst)
{
    memset(src, 0, sizeof *src);
    src->mesh = meshes[0];
    src->dtype = (tsr_dtype)(1 + drill_below(draws, TSR_DTYPE_END - 1));
    draw_tensor(draws, &src->ndim, src->shape);
    *dst = *src;
    dst->mesh = meshes[1];
    draw_layout(draws, src);
    if (one_mesh && drill_one_in(draws, 4))
        copy_some(draws, src, dst);
    else
        draw_layout(draws, dst);
}

/* Draws a slice of a mesh with several dims; 0: the mesh itself. */
static int draw_slice(drill_draws *draws, const rule_mesh *mesh)
{
    const int all = (1 << mesh->ndim) - 1;
    return mesh->ndim > 1 && drill_one_in(draws, 5) ? 1 + (int)drill_below(draws, all - 1) : 0;
}

static void draw_options(drill_draws *draws, tsr_plan_options *options)
{
    *options = (tsr_plan_options)TSR_PLAN_OPTIONS_INIT;
    options->mode = drill_one_in(draws, 2) ? TSR_MODE_DIRECT : TSR_MODE_MESSAGE;
    options->objective = drill_one_in(draws, 4) ? TSR_OBJECTIVE_TIME : TSR_OBJECTIVE_BYTES;
    options->max_workspace = drill_one_in(draws, 3) ? (size_t)(4096 << drill_below(draws, 4)) : 0;
    options->no_split = drill_one_in(draws, 6);
    if (drill_one_in(draws, 4))
        options->nodes.ranks_per_node = 1 + drill_below(draws, 4);
}

void draw_moves(drill_draws *draws, int ranks, drawn_moves *out)
{
    memset(out, 0, sizeof *out);
    draw_options(draws, &out->options);
    out->way = (drawn_way)drill_below(draws, DRAWN_WAYS);
    out->strided = drill_one_in(draws, 2);
    out->values.seed = drill_draw(draws);
    out->values.drawing = drill_one_in(draws, 2) ? RULE_ANY_BITS : RULE_SMALL_NUMBERS;
    draw_mesh(draws, ranks, &out->meshes[0]);
    out->one_mesh = out->way >= BY_DTENSORS || drill_one_in(draws, 2);
    out->meshes[1] = out->meshes[0];
    if (!out->one_mesh)
        draw_mesh(draws, ranks, &out->meshes[1]);
    out->slice = out->one_mesh ? draw_slice(draws, &out->meshes[0]) : 0;
    out->options.no_split = out->options.no_split && !out->slice; /* slices are made by splitting */
    rule_mesh meshes[2] = {out->meshes[0], out->meshes[1]};
    if (out->slice)
        for (int i = 0; i < 2; i++)
            rule_mesh_slice(&out->meshes[i], out->slice, -1, &meshes[i]);
    out->count = out->way == BY_NEW || out->way == IN_PLACE || drill_one_in(draws, 2)
                     ? 1
                     : 1 + (size_t)drill_below(draws, DRAWN_ITEMS);
    for (size_t i = 0; i < out->count; i++)
        draw_item(draws, meshes, out->one_mesh, &out->src[i], &out->dst[i]);
}
