#include "mesh/grid.h"

#include "base/hash.h"
#include "base/sort.h"

#include <stdlib.h>
#include <string.h>

void tsr_grid_number(tsr_grid *grid, int64_t first)
{
    grid->first = first;
    int64_t stride = 1;
    for (int d = grid->ndim - 1; d >= 0; d--) {
        grid->strides[d] = stride;
        stride *= grid->shape[d];
    }
    tsr_grid_nest(grid);
}

/* Sorts the varying dims by size of stride. False if the strides do not nest. */
static bool order_dims(tsr_grid *grid)
{
    grid->varying = 0;
    for (int d = 0; d < grid->ndim; d++) {
        if (grid->shape[d] == 1)
            continue;
        int at = grid->varying++;
        for (; at > 0 && llabs(grid->strides[grid->order[at - 1]]) < llabs(grid->strides[d]); at--)
            grid->order[at] = grid->order[at - 1];
        grid->order[at] = d;
    }
    int64_t reach = 0;
    for (int i = grid->varying - 1; i >= 0; i--) {
        const int64_t stride = llabs(grid->strides[grid->order[i]]);
        if (stride <= reach)
            return false;
        reach += stride * (grid->shape[grid->order[i]] - 1);
    }
    return true;
}

bool tsr_grid_nest(tsr_grid *grid)
{
    grid->list = NULL;
    grid->sorted = NULL;
    grid->lowest = grid->first;
    for (int d = 0; d < grid->ndim; d++) {
        if (grid->shape[d] == 1)
            grid->strides[d] = 0;
        if (grid->strides[d] < 0)
            grid->lowest += grid->strides[d] * (grid->shape[d] - 1);
    }
    return order_dims(grid);
}

/* The row-major position of a coordinate. */
static int64_t position_of(const tsr_grid *grid, const int64_t *coordinate)
{
    int64_t position = 0;
    for (int d = 0; d < grid->ndim; d++)
        position = position * grid->shape[d] + coordinate[d];
    return position;
}

void tsr_grid_coordinate(const tsr_grid *grid, int64_t position, int64_t *coordinate)
{
    for (int d = grid->ndim - 1; d >= 0; d--) {
        coordinate[d] = position % grid->shape[d];
        position /= grid->shape[d];
    }
}

void tsr_grid_ends(const tsr_grid *grid, int64_t *lowest, int64_t *highest)
{
    *lowest = *highest = grid->list ? grid->list[grid->sorted[0]] : grid->lowest;
    if (grid->list)
        *highest = grid->list[grid->sorted[grid->count - 1]];
    for (int d = 0; !grid->list && d < grid->ndim; d++)
        *highest += (grid->strides[d] < 0 ? -grid->strides[d] : grid->strides[d]) * (grid->shape[d] - 1);
}

bool tsr_grid_next(const tsr_grid *grid, int64_t *coordinate)
{
    for (int d = grid->ndim - 1; d >= 0; d--) {
        if (++coordinate[d] < grid->shape[d])
            return true;
        coordinate[d] = 0;
    }
    return false;
}

bool tsr_grid_is_numbered(const tsr_grid *grid)
{
    tsr_grid plain = *grid;
    if (grid->list)
        return false;
    tsr_grid_number(&plain, grid->first);
    return memcmp(plain.strides, grid->strides, (size_t)grid->ndim * sizeof *grid->strides) == 0;
}

static int64_t regular_rank(const tsr_grid *grid, const int64_t *coordinate)
{
    int64_t rank = grid->first;
    for (int d = 0; d < grid->ndim; d++)
        rank += coordinate[d] * grid->strides[d];
    return rank;
}

bool tsr_grid_fit(tsr_grid *grid, const int64_t *ranks)
{
    grid->first = ranks[0];
    int64_t step = 1;
    for (int d = grid->ndim - 1; d >= 0; d--) {
        grid->strides[d] = grid->shape[d] > 1 ? ranks[step] - ranks[0] : 0;
        step *= grid->shape[d];
    }
    /* No overflow: the sizes multiply to less than 2^31, so coordinates add up to less than 2^31,
     * and strides are below 2^31. */
    int64_t coordinate[TSR_MAX_DIMS] = {0};
    int64_t position = 0;
    do {
        if (regular_rank(grid, coordinate) != ranks[position++])
            return false;
    } while (tsr_grid_next(grid, coordinate));
    return tsr_grid_nest(grid);
}

static int by_rank(const void *a, const void *b, const void *list)
{
    const int32_t *ranks = list, x = ranks[*(const int32_t *)a], y = ranks[*(const int32_t *)b];
    return x < y ? -1 : x > y;
}

bool tsr_grid_list(tsr_grid *grid, const int64_t *ranks, int32_t *list, int32_t *sorted, int64_t twice[2])
{
    for (int64_t i = 0; i < grid->count; i++) {
        list[i] = (int32_t)ranks[i];
        sorted[i] = (int32_t)i;
    }
    tsr_sort_array(sorted, (size_t)grid->count, sizeof *sorted, by_rank, list);
    for (int64_t i = 1; i < grid->count; i++) {
        if (list[sorted[i - 1]] == list[sorted[i]]) {
            const bool ascending = sorted[i - 1] < sorted[i];
            twice[0] = sorted[ascending ? i - 1 : i];
            twice[1] = sorted[ascending ? i : i - 1];
            return false;
        }
    }
    grid->list = list;
    grid->sorted = sorted;
    return true;
}

int64_t tsr_grid_rank(const tsr_grid *grid, const int64_t *coordinate)
{
    return grid->list ? grid->list[position_of(grid, coordinate)] : regular_rank(grid, coordinate);
}

/* The index in `sorted` of the lowest rank that is at least `rank`; the count if there is none. */
static int64_t find_listed(const tsr_grid *grid, int64_t rank)
{
    int64_t low = 0, high = grid->count;
    while (low < high) {
        const int64_t middle = low + (high - low) / 2;
        if (grid->list[grid->sorted[middle]] < rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static bool locate_listed(const tsr_grid *grid, int64_t rank, int64_t *coordinate)
{
    const int64_t low = find_listed(grid, rank);
    if (low == grid->count || grid->list[grid->sorted[low]] != rank)
        return false;
    tsr_grid_coordinate(grid, grid->sorted[low], coordinate);
    return true;
}

/* With nested strides the coordinate consists of the digits of rank - lowest; where a stride is
 * negative, the digit counts backwards. */
static bool locate_regular(const tsr_grid *grid, int64_t rank, int64_t *coordinate)
{
    int64_t rest = rank - grid->lowest;
    int64_t found[TSR_MAX_DIMS] = {0};
    for (int i = 0; i < grid->varying; i++) {
        const int d = grid->order[i];
        const int64_t stride = llabs(grid->strides[d]);
        const int64_t digit = rest / stride;
        if (digit >= grid->shape[d])
            return false;
        found[d] = grid->strides[d] < 0 ? grid->shape[d] - 1 - digit : digit;
        rest -= digit * stride;
    }
    if (rest != 0)
        return false;
    memcpy(coordinate, found, (size_t)grid->ndim * sizeof *coordinate);
    return true;
}

bool tsr_grid_locate(const tsr_grid *grid, int64_t rank, int64_t *coordinate)
{
    if (grid->list)
        return locate_listed(grid, rank, coordinate);
    return rank >= grid->lowest && locate_regular(grid, rank, coordinate);
}

/* tsr_grid_from() of a regular grid. If the rank's digits are a coordinate, the rank itself. Else
 * the last of its valid digits that can grow is increased by one, and the digits behind that become
 * 0. */
static int64_t from_regular(const tsr_grid *grid, int64_t rank)
{
    int64_t rest = rank - grid->lowest, base = grid->lowest, next = INT64_MAX;
    for (int i = 0; i < grid->varying; i++) {
        const int d = grid->order[i];
        const int64_t stride = llabs(grid->strides[d]), digit = rest / stride;
        if (digit >= grid->shape[d])
            return next;
        if (digit + 1 < grid->shape[d])
            next = base + (digit + 1) * stride;
        base += digit * stride;
        rest -= digit * stride;
    }
    return rest == 0 ? base : next;
}

int64_t tsr_grid_from(const tsr_grid *grid, int64_t rank)
{
    if (!grid->list)
        return rank <= grid->lowest ? grid->lowest : from_regular(grid, rank);
    const int64_t at = find_listed(grid, rank);
    return at < grid->count ? grid->list[grid->sorted[at]] : INT64_MAX;
}

/* Sizes and strides of the dims of size > 1, in mesh order; returns their number. Strides of a
 * listed grid count as 0. */
static int condense(const tsr_grid *grid, int64_t *shape, int64_t *strides)
{
    int count = 0;
    for (int d = 0; d < grid->ndim; d++) {
        if (grid->shape[d] == 1)
            continue;
        shape[count] = grid->shape[d];
        strides[count++] = grid->list ? 0 : grid->strides[d];
    }
    return count;
}

bool tsr_grid_equal(const tsr_grid *a, const tsr_grid *b)
{
    int64_t shape[2][TSR_MAX_DIMS], strides[2][TSR_MAX_DIMS];
    const int ndim = condense(a, shape[0], strides[0]);
    const size_t bytes = (size_t)ndim * sizeof(int64_t);
    if (condense(b, shape[1], strides[1]) != ndim || !a->list != !b->list || a->first != b->first)
        return false;
    if (memcmp(shape[0], shape[1], bytes) != 0 || memcmp(strides[0], strides[1], bytes) != 0)
        return false;
    return !a->list || memcmp(a->list, b->list, (size_t)a->count * sizeof *a->list) == 0;
}

uint64_t tsr_grid_hash(const tsr_grid *grid)
{
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
    const size_t ndim = (size_t)condense(grid, shape, strides);
    uint64_t hash = tsr_hash_word(TSR_HASH_SEED, ndim);
    hash = tsr_hash_words(hash, shape, ndim);
    hash = tsr_hash_words(hash, strides, ndim);
    hash = tsr_hash_word(hash, (uint64_t)grid->first);
    for (int64_t i = 0; grid->list && i < grid->count; i++)
        hash = tsr_hash_word(hash, (uint64_t)grid->list[i]);
    return hash;
}
