#include "oracle_random.h"

#include <stdlib.h>
#include <string.h>

uint64_t oracle_random_next(oracle_random *random)
{
    uint64_t x = random->state += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}

int64_t oracle_random_below(oracle_random *random, int64_t bound)
{
    return (int64_t)(oracle_random_next(random) % (uint64_t)bound);
}

static bool one_in(oracle_random *random, int64_t n)
{
    return oracle_random_below(random, n) == 0;
}

static void shuffle(oracle_random *random, int64_t *numbers, int64_t count)
{
    for (int64_t i = count - 1; i > 0; i--) {
        const int64_t j = oracle_random_below(random, i + 1), swapped = numbers[i];
        numbers[i] = numbers[j];
        numbers[j] = swapped;
    }
}

oracle_mesh oracle_random_mesh(oracle_random *random, int ndim, int64_t most, int64_t world)
{
    int64_t shape[TSR_MAX_DIMS], count = 1, ranks[ORACLE_MAX_RANKS];
    const int dims = 1 + (int)oracle_random_below(random, ndim);
    for (int d = 0; d < dims; d++) {
        const int64_t room = most / count;
        shape[d] = one_in(random, 5) ? 1
                                     : 1 + oracle_random_below(random, room < 4            ? room
                                                                       : one_in(random, 4) ? room
                                                                                           : 4);
        count *= shape[d];
    }
    for (int64_t r = 0; r < world; r++)
        ranks[r] = r;
    if (one_in(random, 2))
        shuffle(random, ranks, world);
    oracle_mesh mesh = oracle_mesh_make(dims, shape, oracle_random_below(random, world - count + 1));
    if (ranks[0] != 0 || one_in(random, 2))
        memcpy(mesh.ranks, ranks, (size_t)count * sizeof *ranks);
    return mesh;
}

void oracle_random_shape(oracle_random *random, int ndim, int64_t most, oracle_layout *layout)
{
    layout->ndim = one_in(random, 20) ? 0 : 1 + (int)oracle_random_below(random, ndim);
    int64_t count = 1;
    for (int d = 0; d < layout->ndim; d++) {
        int64_t largest = most / count;
        if (largest > 40)
            largest = 40;
        if (layout->ndim > 2 && largest > 9)
            largest = 9;
        layout->shape[d] = one_in(random, 25) ? 0 : 1 + oracle_random_below(random, largest);
        count *= layout->shape[d] > 0 ? layout->shape[d] : 1;
    }
}

void oracle_random_nodes(oracle_random *random, int64_t world, int64_t *node)
{
    const int64_t first = oracle_random_below(random, 100) - 50;
    for (int64_t r = 0, number = first; r < world; number += 1 + oracle_random_below(random, 3)) {
        const int64_t end = r + 1 + oracle_random_below(random, 1 + oracle_random_below(random, world));
        for (; r < end && r < world; r++)
            node[r] = number;
    }
    if (one_in(random, 2))
        shuffle(random, node, world);
}

tsr_dtype oracle_random_dtype(oracle_random *random)
{
    return (tsr_dtype)(1 + oracle_random_below(random, TSR_DTYPE_END - 1));
}

/* Draws `parts` numbers, each at least `least`, whose sum is `length`. */
static const int64_t *composition(oracle_random *random, oracle_numbers *numbers, int64_t parts, int64_t length,
                                  int64_t least)
{
    int64_t *out = &numbers->at[numbers->count];
    numbers->count += (size_t)parts;
    for (int64_t p = 0; p < parts; p++)
        out[p] = least;
    for (int64_t rest = length - least * parts; rest > 0;) {
        const int64_t take = 1 + oracle_random_below(random, rest);
        out[oracle_random_below(random, parts)] += take;
        rest -= take;
    }
    return out;
}

/* The length of the pieces that the cut by `mesh_dim` divides; -1 if they differ in length. */
static int64_t common_length(const oracle_layout *layout, int mesh_dim)
{
    oracle_layout before = *layout;
    const int dim = layout->placements[mesh_dim].dim;
    int cuts[TSR_MAX_DIMS], at = 0;
    const int count = oracle_cuts_of(layout, dim, cuts);
    while (cuts[at] != mesh_dim)
        at++;
    for (; at < count; at++)
        before.placements[cuts[at]] = (tsr_placement){.kind = TSR_REPLICATE};
    int64_t *list = calloc((size_t)layout->shape[dim] + 1, sizeof *list), common = -2;
    for (int64_t p = 0; p < oracle_mesh_count(&layout->mesh); p++) {
        int64_t coordinate[TSR_MAX_DIMS];
        oracle_mesh_coordinate(&layout->mesh, p, coordinate);
        const int64_t length = oracle_owned(&before, coordinate, dim, list);
        common = common == -2 || common == length ? length : -1;
    }
    free(list);
    return common;
}

static void random_modifiers(oracle_random *random, oracle_layout *layout, int mesh_dim, oracle_numbers *numbers)
{
    tsr_placement *p = &layout->placements[mesh_dim];
    const int64_t length = common_length(layout, mesh_dim), room = ORACLE_NUMBERS - (int64_t)numbers->count;
    if (length >= 0 && room > layout->mesh.shape[mesh_dim] && one_in(random, 6)) {
        p->sizes = composition(random, numbers, layout->mesh.shape[mesh_dim], length, 0);
        p->size_count = (size_t)layout->mesh.shape[mesh_dim];
        return;
    }
    p->balanced = one_in(random, 3);
    p->unit = one_in(random, 3) ? 1 + oracle_random_below(random, 5) : 0;
    if (one_in(random, 4)) {
        p->interleave = 1 + oracle_random_below(random, 5);
    } else if (length > 0 && room > 5 && one_in(random, 4)) {
        p->block_count = 1 + (size_t)oracle_random_below(random, length < 4 ? length : 4);
        p->blocks = composition(random, numbers, (int64_t)p->block_count, length, 1);
    }
}

static void random_orders(oracle_random *random, oracle_layout *layout)
{
    int64_t orders[TSR_MAX_DIMS];
    for (int m = 0; m < layout->mesh.ndim; m++)
        orders[m] = m;
    shuffle(random, orders, layout->mesh.ndim);
    for (int m = 0; m < layout->mesh.ndim; m++)
        if (layout->placements[m].kind == TSR_SHARD)
            layout->placements[m].order = (int)orders[m];
}

static tsr_reduce_op random_op(oracle_random *random, tsr_dtype dtype)
{
    for (;;) {
        const tsr_reduce_op op = (tsr_reduce_op)oracle_random_below(random, TSR_REDUCE_OP_END);
        if (oracle_has_op(dtype, op))
            return op;
    }
}

static tsr_placement random_placement(oracle_random *random, const oracle_layout *layout, tsr_reduce_op op)
{
    const int64_t choice = oracle_random_below(random, 20);
    tsr_placement p = {.order = TSR_ORDER_DEFAULT};
    if (choice < 11 && layout->ndim > 0) {
        p.kind = TSR_SHARD;
        p.dim = (int)oracle_random_below(random, one_in(random, 2) ? 1 : layout->ndim);
    } else if (choice < 16) {
        p.kind = TSR_PARTIAL;
        p.op = op == TSR_SUM && oracle_has_op(layout->dtype, TSR_AVG) && one_in(random, 4) ? TSR_AVG : op;
    }
    return p;
}

void oracle_random_placements(oracle_random *random, oracle_layout *layout, oracle_numbers *numbers)
{
    const tsr_reduce_op op = random_op(random, layout->dtype);
    for (int m = 0; m < layout->mesh.ndim; m++)
        layout->placements[m] = random_placement(random, layout, op);
    if (one_in(random, 3))
        random_orders(random, layout);
    /* in the order of the cuts, since sizes and blocks depend on the pieces that earlier cuts
     * leave */
    for (int d = 0; d < layout->ndim; d++) {
        int cuts[TSR_MAX_DIMS];
        const int count = oracle_cuts_of(layout, d, cuts);
        for (int c = 0; c < count; c++)
            random_modifiers(random, layout, cuts[c], numbers);
    }
}
