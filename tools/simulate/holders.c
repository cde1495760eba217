#include "simulate/holders.h"

#include <string.h>

#define MOST_ROWS (INT64_C(1) << 20)

/*
 * Visits the coordinates of the holders, mesh dims nested in an order in which each cut comes after
 * the cuts whose pieces it divides.
 *
 * Given the coordinates of the dims before a dim, and part 0 in the dims after it, the parts along
 * the dim that hold an element then come first: part 0 of a piece is empty only if the piece is,
 * and all parts after an empty part are empty. With given sizes they are the parts of size above 0.
 */
typedef struct walk {
    const holders *of;
    int order[TSR_MAX_DIMS], ndim;
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t rows, count; /* rows (of the innermost dim) and holders so far */
    int64_t *ranks;      /* where holders_spread() writes; NULL: only count */
    int64_t taken, wanted, all;
} walk;

static bool holds(const tsr_layout *layout, const int64_t *coordinate)
{
    int64_t shape[TSR_MAX_DIMS] = {0};
    if (tsr_layout_local(layout, coordinate, shape, NULL) != TSR_OK)
        return false;
    for (int d = 0; d < tsr_layout_ndim(layout); d++)
        if (shape[d] == 0)
            return false;
    return true;
}

static bool either_holds(const holders *h, const int64_t *coordinate)
{
    return holds(h->from, coordinate) || holds(h->to, coordinate);
}

bool holders_include(const holders *h, int64_t rank)
{
    int64_t coordinate[TSR_MAX_DIMS];
    int inside = 0;
    return tsr_mesh_coordinate_of(h->mesh, rank, coordinate, &inside) == TSR_OK && inside != 0 &&
           either_holds(h, coordinate);
}

static int turn_of(const tsr_placement *placements, int dim)
{
    return placements[dim].kind != TSR_SHARD || placements[dim].order == TSR_ORDER_DEFAULT ? dim
                                                                                           : placements[dim].order;
}

/* Sorts the mesh dims by the order of the layout's cuts. */
static void order_dims(const tsr_layout *layout, int ndim, int *order)
{
    const tsr_placement *const p = tsr_layout_placements(layout);
    for (int d = 0; d < ndim; d++) {
        int at = d;
        for (; at > 0 && turn_of(p, order[at - 1]) > turn_of(p, d); at--)
            order[at] = order[at - 1];
        order[at] = d;
    }
}

static bool fits(const tsr_layout *layout, const int *order, int ndim)
{
    const tsr_placement *const p = tsr_layout_placements(layout);
    for (int late = 1; late < ndim; late++)
        for (int early = 0; early < late; early++) {
            const int a = order[early], b = order[late];
            if (p[a].kind == TSR_SHARD && p[b].kind == TSR_SHARD && p[a].dim == p[b].dim &&
                turn_of(p, a) > turn_of(p, b))
                return false;
        }
    return true;
}

static bool has_sizes(const tsr_layout *layout, int dim)
{
    const tsr_placement *const p = &tsr_layout_placements(layout)[dim];
    return p->kind == TSR_SHARD && p->sizes;
}

/* Begins a walk; false if the two layouts cannot be walked together. */
static bool begin_walk(const holders *h, walk *w)
{
    const int ndim = tsr_mesh_ndim(h->mesh);
    *w = (walk){.of = h, .ndim = ndim};
    order_dims(h->from, ndim, w->order);
    if (h->from == h->to)
        return true;
    for (int d = 0; d < ndim; d++)
        if (has_sizes(h->from, d) || has_sizes(h->to, d))
            return false;
    if (fits(h->to, w->order, ndim))
        return true;
    order_dims(h->to, ndim, w->order);
    return fits(h->from, w->order, ndim);
}

/* The given sizes along a mesh dim, NULL for none; only a walk of a single layout has them. */
static const int64_t *sizes_along(const walk *w, int dim)
{
    return has_sizes(w->of->from, dim) ? tsr_layout_placements(w->of->from)[dim].sizes : NULL;
}

/* The coordinate of part `number` among the parts along `dim` that hold an element. */
static int64_t part_at(const walk *w, int dim, int64_t number)
{
    const int64_t *const sizes = sizes_along(w, dim);
    const int64_t last = tsr_mesh_size(w->of->mesh, dim) - 1;
    int64_t part = 0;
    for (int64_t before = 0; sizes && part < last; part++)
        if (sizes[part] > 0 && before++ == number)
            break;
    return sizes ? part : number;
}

static int64_t count_sizes(const int64_t *sizes, int64_t parts)
{
    int64_t count = 0;
    for (int64_t part = 0; part < parts; part++)
        count += sizes[part] > 0;
    return count;
}

/* Moves every dim to its first part that holds an element. */
static void go_to_first(walk *w)
{
    for (int d = 0; d < w->ndim; d++)
        w->coordinate[d] = part_at(w, d, 0);
}

/* The number of parts along `dim` that hold an element, given the coordinates of the dims before
 * it; the dims after it are at their first parts. */
static int64_t count_parts(walk *w, int dim)
{
    const int64_t here = w->coordinate[dim], *const sizes = sizes_along(w, dim);
    int64_t least = 0, most = tsr_mesh_size(w->of->mesh, dim);
    if (sizes)
        return either_holds(w->of, w->coordinate) ? count_sizes(sizes, most) : 0;
    while (least < most) {
        const int64_t middle = least + (most - least) / 2;
        w->coordinate[dim] = middle;
        if (either_holds(w->of, w->coordinate))
            least = middle + 1;
        else
            most = middle;
    }
    w->coordinate[dim] = here;
    return least;
}

static int64_t next_wanted(const walk *w)
{
    return (2 * w->taken + 1) * w->all / (2 * w->wanted);
}

static int64_t rank_here(const walk *w)
{
    int64_t rank = 0;
    tsr_mesh_rank_at(w->of->mesh, w->coordinate, &rank);
    return rank;
}

static void add_row(walk *w, int dim, int64_t parts)
{
    w->rows++;
    for (; w->ranks && w->taken < w->wanted && next_wanted(w) < w->count + parts; w->taken++) {
        w->coordinate[dim] = part_at(w, dim, next_wanted(w) - w->count);
        w->ranks[w->taken] = rank_here(w);
    }
    w->coordinate[dim] = part_at(w, dim, 0);
    w->count += parts;
}

/* Visits all coordinates that begin with those of the first `depth` dims in order; false once
 * there are too many rows. */
static bool walk_from(walk *w, int depth)
{
    const int dim = w->order[depth];
    const int64_t parts = count_parts(w, dim);
    if (depth == w->ndim - 1) {
        add_row(w, dim, parts);
        return w->rows <= MOST_ROWS;
    }
    bool few = true;
    for (int64_t i = 0; i < parts && few; i++) {
        w->coordinate[dim] = part_at(w, dim, i);
        few = walk_from(w, depth + 1);
    }
    w->coordinate[dim] = part_at(w, dim, 0);
    return few;
}

int64_t holders_count(const holders *h)
{
    walk w;
    if (!begin_walk(h, &w))
        return -1;
    go_to_first(&w);
    return walk_from(&w, 0) ? w.count : -1;
}

void holders_spread(const holders *h, int64_t count, int64_t wanted, int64_t *ranks)
{
    walk w;
    if (!begin_walk(h, &w))
        return;
    go_to_first(&w);
    w.ranks = ranks;
    w.wanted = wanted;
    w.all = count;
    walk_from(&w, 0);
}

static bool has_shape(const walk *w, const int64_t *shape)
{
    int64_t local[TSR_MAX_DIMS] = {0};
    return tsr_layout_local(w->of->from, w->coordinate, local, NULL) == TSR_OK &&
           memcmp(local, shape, sizeof local) == 0;
}

/* The first of `parts` along `dim` whose size differs from part 0's, or `parts` if none does:
 * along a dim sizes never grow. With given sizes, the part after the largest. */
static int64_t find_change(walk *w, int dim, int64_t parts)
{
    const int64_t *const sizes = sizes_along(w, dim);
    int64_t shape[TSR_MAX_DIMS] = {0}, least = 1, most = parts, largest = 0;
    for (int64_t i = 0; sizes && i < parts; i++)
        largest = sizes[part_at(w, dim, i)] > sizes[part_at(w, dim, largest)] ? i : largest;
    if (sizes || tsr_layout_local(w->of->from, w->coordinate, shape, NULL) != TSR_OK)
        return largest + 1;
    while (least < most) {
        const int64_t middle = least + (most - least) / 2;
        w->coordinate[dim] = middle;
        if (has_shape(w, shape))
            least = middle + 1;
        else
            most = middle;
    }
    w->coordinate[dim] = 0;
    return least;
}

/* Adds the edges along one dim, with all other dims at their first parts. */
static int add_edges(walk *w, int dim, int64_t *ranks)
{
    const int64_t parts = count_parts(w, dim), change = find_change(w, dim, parts);
    const int64_t numbers[] = {0, change - 1, change, parts - 1};
    int count = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++) {
        if (numbers[i] < 0 || numbers[i] >= parts)
            continue;
        w->coordinate[dim] = part_at(w, dim, numbers[i]);
        ranks[count++] = rank_here(w);
    }
    w->coordinate[dim] = part_at(w, dim, 0);
    return count;
}

static int edges_of(const tsr_mesh *mesh, const tsr_layout *layout, int64_t *ranks)
{
    const holders alone = {mesh, layout, layout};
    walk w;
    int count = 0;
    begin_walk(&alone, &w);
    go_to_first(&w);
    if (!holds(layout, w.coordinate))
        return 0;
    for (int d = 0; d < w.ndim; d++)
        count += add_edges(&w, d, ranks + count);
    for (int depth = 0; depth < w.ndim; depth++)
        w.coordinate[w.order[depth]] = part_at(&w, w.order[depth], count_parts(&w, w.order[depth]) - 1);
    ranks[count++] = rank_here(&w);
    return count;
}

int holders_edges(const holders *h, int64_t ranks[HOLDERS_EDGES])
{
    const int count = edges_of(h->mesh, h->from, ranks);
    return count + edges_of(h->mesh, h->to, ranks + count);
}
