/** A grid of devices that XLA writes for a tensor: one device, or a group that holds the same, for
 * each tile. Matched with a mesh, it gives the axes that cut the tensor. */
#ifndef TSR_SHARDING_FORM_DEVICE_GRID_H
#define TSR_SHARDING_FORM_DEVICE_GRID_H

#include "sharding/form/form.h"

/** Tiles, and the groups in each tile: at most one dim of groups that hold the same, and one of
 * groups that hold terms of a sum. */
enum { TSR_GRID_MOST = TSR_MAX_DIMS + 2 };

typedef struct tsr_device_grid {
    int ndim; /**< of the grid */
    int64_t shape[TSR_GRID_MOST];
    int tensor_dims; /**< the first dims of the grid are the tensor's */
    int summed;      /**< the dim of the grid along which terms of a sum lie; -1: none */
    int64_t count;   /**< devices */
    int64_t *device; /**< row-major, `count` of them */
} tsr_device_grid;

/** The product of `count` sizes; -1: more than ranks can be. */
int64_t tsr_device_grid_count(const int64_t *shape, int count);

/** TSR_ERROR_ARGUMENT unless the grid has one device for each rank of the mesh. */
tsr_status tsr_device_grid_check(const tsr_device_grid *grid, const tsr_mesh *mesh);

/**
 * Lists `0, 1, .., count - 1` as an array of `shape`, its dims in the order of `order` (NULL: as
 * they are): XLA's `<=[shape]T(order)`.
 */
void tsr_device_grid_list(int ndim, const int64_t *shape, const int *order, int64_t *device);

/**
 * Finds the axes of `form`'s mesh that cut the tensor as the grid does, which
 * tsr_device_grid_check() accepted. TSR_ERROR_ARGUMENT: the grid's devices are not the mesh's
 * ranks. TSR_ERROR_UNSUPPORTED: axes of this mesh do not cut so.
 */
tsr_status tsr_device_grid_match(const tsr_device_grid *grid, tsr_sharding_form *form);

#endif
