/** Which rank stands at which coordinate of an n-d grid. Pure integers; thread-safe. */
#ifndef TSR_MESH_GRID_H
#define TSR_MESH_GRID_H

#include <stdbool.h>
#include <stdint.h>
#include <tessera/api.h>

/** Ranks are below this, so that positions and ranks fit 32 bits. */
#define TSR_GRID_RANKS INT32_MAX

/**
 * A grid is regular, and then needs no list, if its ranks are first + the sum of coordinate * stride, and the strides nest: each is larger
 * than all that the smaller ones together can add. Every grid that can be written so is, so equal grids have equal fields; dims of size 1
 * have stride 0.
 */
typedef struct tsr_grid {
    int ndim;
    int64_t shape[TSR_MAX_DIMS], strides[TSR_MAX_DIMS];
    int64_t count;
    int64_t first;           /**< the rank at coordinate 0 */
    int64_t lowest;          /**< the smallest rank of a regular grid */
    int varying;             /**< dims of size > 1 */
    int order[TSR_MAX_DIMS]; /**< these dims, largest stride first */
    const int32_t *list;     /**< the ranks, row-major; NULL for a regular grid */
    const int32_t *sorted;   /**< with a list: row-major positions by ascending rank */
} tsr_grid;

/** Completes a grid whose ndim, shape and count are set with ranks first, first + 1, .. */
void tsr_grid_number(tsr_grid *grid, int64_t first);

/** Completes one whose first and strides are set as well; false if the strides do not nest. */
bool tsr_grid_nest(tsr_grid *grid);

/** Completes one from its ranks, row-major, each from 0 to below TSR_GRID_RANKS; false, and `grid` needs tsr_grid_list(), if they are not
 * regular. */
bool tsr_grid_fit(tsr_grid *grid, const int64_t *ranks);

/** Gives a grid that tsr_grid_fit() refused a copy of its ranks, in `list` and `sorted` (count numbers each, borrowed). False if a rank
 * stands twice: at positions twice[0] < twice[1]. */
bool tsr_grid_list(tsr_grid *grid, const int64_t *ranks, int32_t *list, int32_t *sorted, int64_t twice[2]);

int64_t tsr_grid_rank(const tsr_grid *grid, const int64_t *coordinate);
bool tsr_grid_locate(const tsr_grid *grid, int64_t rank, int64_t *coordinate);

/** The coordinate at row-major position `position`, from 0 up. */
void tsr_grid_coordinate(const tsr_grid *grid, int64_t position, int64_t *coordinate);

/** The lowest rank from `rank` up, or INT64_MAX. */
int64_t tsr_grid_from(const tsr_grid *grid, int64_t rank);

/** The lowest and the highest rank. */
void tsr_grid_ends(const tsr_grid *grid, int64_t *lowest, int64_t *highest);

/** The next coordinate in row-major order; false, back at the first, after the last. */
bool tsr_grid_next(const tsr_grid *grid, int64_t *coordinate);

/** Equality as tsr_mesh_equal() has it, and a fingerprint that agrees with it. */
bool tsr_grid_equal(const tsr_grid *a, const tsr_grid *b);
uint64_t tsr_grid_hash(const tsr_grid *grid);

#endif
