#include "holders.h"

#define MOST_ROWS (INT64_C(1) << 20)

/** Rows are those of the innermost mesh dim. */
typedef struct walk {
    const holders *of;
    int64_t coordinate[TSR_MAX_DIMS];
    int64_t rows, count; /**< so far */
    int64_t *ranks;      /**< NULL: only to be counted */
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
    return tsr_mesh_coordinate_of(h->mesh, rank, coordinate, &inside) == TSR_OK && inside != 0 && either_holds(h, coordinate);
}

/** The first part of a piece is empty only if the piece is, and so are all parts after one that is. */
static bool is_regular(const tsr_layout *layout)
{
    const tsr_placement *const p = tsr_layout_placements(layout);
    const int ndim = tsr_mesh_ndim(tsr_layout_mesh(layout));
    for (int m = 0; m < ndim; m++) {
        if (p[m].kind != TSR_SHARD)
            continue;
        if (p[m].sizes != NULL)
            return false;
        for (int inner = m + 1; inner < ndim; inner++)
            if (p[inner].kind == TSR_SHARD && p[inner].dim == p[m].dim &&
                (p[m].order == TSR_ORDER_DEFAULT ? m : p[m].order) > (p[inner].order == TSR_ORDER_DEFAULT ? inner : p[inner].order))
                return false;
    }
    return true;
}

/** How many parts along `dim` hold anything, given the coordinates before it; those after it are 0. They are the first ones. */
static int64_t count_parts(walk *w, int dim)
{
    int64_t least = 0, most = tsr_mesh_size(w->of->mesh, dim);
    while (least < most) {
        const int64_t middle = least + (most - least) / 2;
        w->coordinate[dim] = middle;
        if (either_holds(w->of, w->coordinate))
            least = middle + 1;
        else
            most = middle;
    }
    w->coordinate[dim] = 0;
    return least;
}

static int64_t next_wanted(const walk *w)
{
    return w->wanted > 1 ? w->taken * (w->all - 1) / (w->wanted - 1) : w->all / 2;
}

static void add_row(walk *w, int64_t parts)
{
    int64_t first = 0;
    w->rows++;
    if (w->ranks != NULL && tsr_mesh_rank_at(w->of->mesh, w->coordinate, &first) == TSR_OK)
        for (; w->taken < w->wanted && next_wanted(w) < w->count + parts; w->taken++)
            w->ranks[w->taken] = first + next_wanted(w) - w->count;
    w->count += parts;
}

/** Goes through what follows the coordinates before `dim`; false once there are too many rows. */
static bool walk_from(walk *w, int dim)
{
    const int64_t parts = count_parts(w, dim);
    if (dim == tsr_mesh_ndim(w->of->mesh) - 1) {
        add_row(w, parts);
        return w->rows <= MOST_ROWS;
    }
    bool few = true;
    for (int64_t i = 0; i < parts && few; i++) {
        w->coordinate[dim] = i;
        few = walk_from(w, dim + 1);
    }
    w->coordinate[dim] = 0;
    return few;
}

int64_t holders_count(const holders *h)
{
    walk w = {.of = h};
    return is_regular(h->from) && is_regular(h->to) && walk_from(&w, 0) ? w.count : -1;
}

void holders_spread(const holders *h, int64_t count, int64_t wanted, int64_t *ranks)
{
    walk w = {.of = h, .ranks = ranks, .wanted = wanted, .all = count};
    walk_from(&w, 0);
}
