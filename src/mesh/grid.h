/** The rank at each coordinate of an n-d grid. Pure integers; thread-safe. */
#ifndef TSR_MESH_GRID_H
#define TSR_MESH_GRID_H

#include <tessera/api.h>

#include <stdbool.h>
#include <stdint.h>

/** All ranks are below this number, so that positions and ranks fit 32 bits. */
#define TSR_GRID_RANKS INT32_MAX

/**
 * A regular grid needs no list: its ranks are first + the sum of coordinate * stride, and its
 * strides nest: each stride is larger than the sum that all smaller strides can reach together. A
 * grid that can be regular always is, so equal grids have equal fields; dims of size 1 have stride
 * 0.
 */
typedef struct tsr_grid {
    int ndim;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
    int64_t count;
    int64_t first;           /**< the rank at coordinate 0 */
    int64_t lowest;          /**< the smallest rank of a regular grid */
    int varying;             /**< how many dims have a size > 1 */
    int order[TSR_MAX_DIMS]; /**< the dims of size > 1, largest stride first */
    const int32_t *list;     /**< the ranks, row-major; NULL for a regular grid */
    const int32_t *sorted;   /**< row-major positions by ascending rank; NULL for a regular grid */
} tsr_grid;

/** Completes a grid whose ndim, shape and count are set: its ranks become first, first + 1, .. */
void tsr_grid_number(tsr_grid *grid, int64_t first);

/** Completes a grid whose ndim, shape, count, first and strides are set; false if the strides do
 * not nest. */
bool tsr_grid_nest(tsr_grid *grid);

/** Completes a grid whose ndim, shape and count are set from its ranks, row-major, each from 0 to
 * below TSR_GRID_RANKS. False: the grid is not regular and needs tsr_grid_list(). */
bool tsr_grid_fit(tsr_grid *grid, const int64_t *ranks);

/** Gives a grid that tsr_grid_fit() refused a copy of its ranks, in `list` and `sorted` (count
 * numbers each, borrowed). False if a rank stands twice: at positions twice[0] < twice[1]. */
bool tsr_grid_list(tsr_grid *grid, const int64_t *ranks, int32_t *list, int32_t *sorted, int64_t twice[2]);

/** The rank at a coordinate in range. */
int64_t tsr_grid_rank(const tsr_grid *grid, const int64_t *coordinate);

/** True, with the coordinate, if `rank` is in the grid. */
bool tsr_grid_locate(const tsr_grid *grid, int64_t rank, int64_t *coordinate);

/** The coordinate at row-major position `position`, from 0 up. */
void tsr_grid_coordinate(const tsr_grid *grid, int64_t position, int64_t *coordinate);

/** The lowest rank of the grid that is at least `rank`; INT64_MAX: there is none. */
int64_t tsr_grid_from(const tsr_grid *grid, int64_t rank);

/** The lowest and the highest rank. */
void tsr_grid_ends(const tsr_grid *grid, int64_t *lowest, int64_t *highest);

/** Moves to the next coordinate in row-major order. False after the last one: `coordinate` is all 0
 * again. */
bool tsr_grid_next(const tsr_grid *grid, int64_t *coordinate);

/** True if the ranks are first, first + 1, .. in row-major order. */
bool tsr_grid_is_numbered(const tsr_grid *grid);

/** Compares as tsr_mesh_equal() does. */
bool tsr_grid_equal(const tsr_grid *a, const tsr_grid *b);

/** A fingerprint; equal grids have equal fingerprints. */
uint64_t tsr_grid_hash(const tsr_grid *grid);

#endif
