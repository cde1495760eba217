#include "placement/check.h"

#include "base/checked.h"
#include "base/text/text.h"
#include "placement/placement.h"
#include "placement/print.h"

#include <tessera/sys/status.h>

/* The arguments of a layout, which errors quote. */
typedef struct subject {
    const tsr_mesh *mesh;
    const tsr_placement *placements;
    int count, ndim;
    const int64_t *shape;
    tsr_dtype dtype;
} subject;

typedef struct quote {
    char placements[256], shape[TSR_SHAPE_TEXT];
} quote;

static quote quote_of(const subject *s)
{
    quote q;
    tsr_placements_print(s->placements, s->count, q.placements, sizeof q.placements);
    tsr_shape_print(s->ndim, s->shape, q.shape);
    return q;
}

static tsr_status check_shape(int ndim, const int64_t *shape, tsr_dtype dtype)
{
    if (ndim < 0 || ndim > TSR_MAX_DIMS)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "a tensor of %d dims: 0 to %d are possible", ndim, TSR_MAX_DIMS);
    if (ndim > 0 && !shape)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "shape is NULL, but the tensor has %d dims", ndim);
    if (!tsr_dtype_get(dtype))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%d is not a dtype: use TSR_F32 or another constant of tsr_dtype",
                              (int)dtype);
    char text[TSR_SHAPE_TEXT];
    int64_t bytes = (int64_t)tsr_dtype_bytes(dtype);
    for (int i = 0; i < ndim; i++) {
        if (shape[i] < 0)
            return tsr_status_set(TSR_ERROR_ARGUMENT, "shape %s: size %lld of dim %d is negative",
                                  tsr_shape_print(ndim, shape, text), (long long)shape[i], i);
        if (shape[i] > 0 && !tsr_multiply(bytes, shape[i], &bytes))
            return tsr_status_set(TSR_ERROR_ARGUMENT, "shape %s of %s has more than 2^63 - 1 bytes",
                                  tsr_shape_print(ndim, shape, text), tsr_dtype_name(dtype));
    }
    return TSR_OK;
}

static tsr_status check_dim(const subject *s, const tsr_placement *p)
{
    if (p->dim >= 0 && p->dim < s->ndim)
        return TSR_OK;
    const quote q = quote_of(s);
    if (s->ndim == 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "placements \"%s\" shard dim %d, but the tensor is a scalar: use R or P", q.placements,
                              p->dim);
    if (s->ndim == 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "placements \"%s\" shard dim %d, but the tensor %s has 1 dim (0)",
                              q.placements, p->dim, q.shape);
    return tsr_status_set(TSR_ERROR_ARGUMENT, "placements \"%s\" shard dim %d, but the tensor %s has %d dims (0 to %d)",
                          q.placements, p->dim, q.shape, s->ndim, s->ndim - 1);
}

static tsr_status check_numbers(const subject *s, const char *name, const int64_t *numbers, size_t count)
{
    if ((!numbers) != (count == 0))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "a placement's count of %s is %zu, but their address is %s", name,
                              count, numbers ? "not NULL" : "NULL");
    int64_t sum = 0;
    for (size_t i = 0; i < count; i++)
        if (numbers[i] < 0 || !tsr_add_sizes(sum, numbers[i], &sum))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "placements \"%s\": number %zu of %s is %lld; numbers are at least 0, and their sum "
                                  "is at most 2^63 - 1",
                                  quote_of(s).placements, i, name, (long long)numbers[i]);
    return TSR_OK;
}

static tsr_status check_modifiers(const subject *s, int mesh_dim)
{
    const tsr_placement *p = &s->placements[mesh_dim];
    if (p->interleave < 0 || p->unit < 0 || p->order < TSR_ORDER_DEFAULT)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the Shard(%d) of mesh dim %d has interleave %lld, unit %lld, order %d: only order "
                              "TSR_ORDER_DEFAULT may be negative",
                              p->dim, mesh_dim, (long long)p->interleave, (long long)p->unit, p->order);
    TSR_TRY(check_numbers(s, "sizes", p->sizes, p->size_count));
    TSR_TRY(check_numbers(s, "blocks", p->blocks, p->block_count));
    if (p->sizes && (p->balanced || p->interleave || p->blocks || p->unit))
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "placements \"%s\" combine sizes= with another modifier: sizes stand alone",
                              quote_of(s).placements);
    if (p->interleave && p->blocks)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "placements \"%s\" combine interleave= with blocks=: use one of them",
                              quote_of(s).placements);
    const int64_t parts = tsr_mesh_size(s->mesh, mesh_dim);
    if (p->sizes && (int64_t)p->size_count != parts)
        return tsr_status_set(
            TSR_ERROR_ARGUMENT,
            "placements \"%s\" give %zu sizes, but mesh dim %d has size %lld: exactly as many are needed",
            quote_of(s).placements, p->size_count, mesh_dim, (long long)parts);
    return TSR_OK;
}

static tsr_status check_order_differs(const subject *s, int dim, int a, int b)
{
    const int order = tsr_placement_order(s->placements, b);
    if (tsr_placement_order(s->placements, a) != order)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "the cuts of tensor dim %d by mesh dims %d and %d both have order [%d] (by default the "
                          "number of the mesh dim): "
                          "each needs its own",
                          dim, a < b ? a : b, a < b ? b : a, order);
}

static tsr_status check_orders(const subject *s)
{
    for (int dim = 0; dim < s->ndim; dim++) {
        int sorted[TSR_MAX_DIMS];
        const int cuts = tsr_placements_order(s->placements, s->count, dim, sorted, NULL);
        for (int i = 1; i < cuts; i++)
            TSR_TRY(check_order_differs(s, dim, sorted[i - 1], sorted[i]));
    }
    return TSR_OK;
}

static bool ops_combine(tsr_reduce_op a, tsr_reduce_op b)
{
    return a == b || ((a == TSR_SUM || a == TSR_AVG) && (b == TSR_SUM || b == TSR_AVG));
}

static tsr_status check_partial(const subject *s, int mesh_dim)
{
    const tsr_reduce_op op = s->placements[mesh_dim].op;
    const tsr_dtype_info *info = tsr_dtype_get(s->dtype);
    if ((int)op < 0 || op >= TSR_REDUCE_OP_END)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the Partial of mesh dim %d has op %d, which is not one of sum, avg, min, max and prod",
                              mesh_dim, (int)op);
    if (!(info->reduce_ops & 1u << op))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "placements \"%s\": %s has no %s%s", quote_of(s).placements,
                              info->name, tsr_reduce_op_name(op),
                              info->kind == TSR_CLASS_BOOL      ? "; min and max are possible"
                              : info->kind == TSR_CLASS_COMPLEX ? "; sum, avg and prod are possible"
                              : op == TSR_AVG                   ? "; use sum, or a floating dtype"
                                                                : "");
    for (int i = 0; i < mesh_dim; i++)
        if (s->placements[i].kind == TSR_PARTIAL && !ops_combine(s->placements[i].op, op))
            return tsr_status_set(TSR_ERROR_ARGUMENT,
                                  "placements \"%s\" mix Partial ops %s and %s: the result would depend on their "
                                  "order; only sum with avg is possible",
                                  quote_of(s).placements, tsr_reduce_op_name(s->placements[i].op),
                                  tsr_reduce_op_name(op));
    return TSR_OK;
}

static tsr_status check_placement(const subject *s, int mesh_dim)
{
    const tsr_placement *p = &s->placements[mesh_dim];
    if (p->kind == TSR_SHARD) {
        TSR_TRY(check_modifiers(s, mesh_dim));
        return check_dim(s, p);
    }
    if (p->kind == TSR_PARTIAL)
        return check_partial(s, mesh_dim);
    if (p->kind != TSR_REPLICATE)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "the placement of mesh dim %d has kind %d, which is not a tsr_placement_kind", mesh_dim,
                              (int)p->kind);
    return TSR_OK;
}

tsr_status tsr_layout_check(const tsr_mesh *mesh, const tsr_placement *placements, int ndim, const int64_t *shape,
                            tsr_dtype dtype, bool has_out)
{
    if (!mesh || !placements || !has_out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "a layout needs a mesh, placements and out: %s is NULL",
                              !mesh         ? "mesh"
                              : !placements ? "placements"
                                            : "out");
    TSR_TRY(check_shape(ndim, shape, dtype));
    const subject s = {mesh, placements, tsr_mesh_ndim(mesh), ndim, shape, dtype};
    for (int i = 0; i < s.count; i++)
        TSR_TRY(check_placement(&s, i));
    return check_orders(&s);
}

typedef struct chain {
    const tsr_layout *layout;
    int dim, count;
    int mesh_dim[TSR_MAX_DIMS]; /* the mesh dims that cut tensor dim `dim`, outermost first, also those of size 1 */
} chain;

static bool is_explicit(const chain *c, int level)
{
    const tsr_cut *cut = &c->layout->cuts[c->mesh_dim[level]];
    return cut->size_starts || cut->block_starts;
}

static tsr_status check_sum(const chain *c, int level, int64_t length)
{
    const tsr_layout *layout = c->layout;
    const tsr_cut *cut = &layout->cuts[c->mesh_dim[level]];
    const bool sizes = cut->size_starts != NULL;
    const int64_t sum = sizes ? cut->size_starts[cut->parts] : cut->block_starts[cut->block_count];
    if (sum == length)
        return TSR_OK;
    char placements[256];
    tsr_layout_print(layout, placements, sizeof placements);
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "placements \"%s\": the %s of mesh dim %d sum to %lld, but the piece of tensor dim %d that "
                          "they cut has length %lld",
                          placements, sizes ? "sizes" : "blocks", c->mesh_dim[level], (long long)sum, c->dim,
                          (long long)length);
}

/* The first part after `part` with another size. Without listed sizes, sizes never grow from part
 * to part, so a binary search skips equal ones; a mesh dim may have 2^31 parts. */
static int64_t next_size(const tsr_cut *cut, int64_t length, int64_t part)
{
    const int64_t size = tsr_cut_size(cut, length, part);
    int64_t low = part + 1, high = cut->parts;
    while (cut->size_starts && low < high && tsr_cut_size(cut, length, low) == size)
        low++;
    if (cut->size_starts)
        return low;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (tsr_cut_size(cut, length, middle) == size)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Checks one piece of each length that occurs; there are seldom more than three lengths. */
static tsr_status check_level(const chain *c, int level, int64_t length)
{
    if (is_explicit(c, level))
        TSR_TRY(check_sum(c, level, length));
    bool more = false;
    for (int i = level + 1; i < c->count; i++)
        more |= is_explicit(c, i);
    if (!more)
        return TSR_OK;
    const tsr_cut *cut = &c->layout->cuts[c->mesh_dim[level]];
    for (int64_t part = 0; part < cut->parts; part = next_size(cut, length, part))
        TSR_TRY(check_level(c, level + 1, tsr_cut_size(cut, length, part)));
    return TSR_OK;
}

tsr_status tsr_layout_check_pieces(const tsr_layout *layout)
{
    for (int dim = 0; dim < layout->ndim; dim++) {
        chain c = {layout, dim, 0, {0}};
        c.count = tsr_placements_order(layout->placements, layout->mesh_ndim, dim, c.mesh_dim, NULL);
        if (c.count > 0)
            TSR_TRY(check_level(&c, 0, layout->shape[dim]));
    }
    return TSR_OK;
}
