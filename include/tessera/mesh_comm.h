/**
 * @file
 * What the ranks of a mesh do together: meshes split off with a communicator of their own, and
 * collectives along mesh dims. PyTorch's functional collectives, MPI_Cart_sub.
 *
 * The mesh is over a communicator (tsr_mesh_create()); an abstract mesh is refused. Ranks may bring
 * different slices of one mesh, as tsr_mesh_slice() makes them, or different meshes: of any two
 * ranks, the sets of ranks along the dims are equal, in the same order, or have no rank in common.
 */
#ifndef TESSERA_MESH_COMM_H
#define TESSERA_MESH_COMM_H

#include <tessera/comm.h>
#include <tessera/mesh.h>

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/**
 * Collective over the mesh's communicator: the sub-mesh that tsr_mesh_slice() gives, over a
 * communicator of its ranks alone. `dims` are those of a slice ("tp", or "dp,tp"); NULL or "": all
 * dims. Ranks outside `mesh` take part, and get NULL in `*out`.
 *
 * The ranks of `*out` are 0, 1, .. in row-major order. Names of dims and nodes of ranks come along.
 * Afterwards nothing that is done over `*out` meets ranks outside it. Its communicator descends
 * from that of `mesh`, so plans between the two meshes, and between meshes split off one, are
 * possible (docs/redistribution.md).
 *
 * The mesh owns its communicator, which ends as by tsr_comm_destroy(): with the last reference to
 * `*out`, to a mesh made of it (slice, flatten, unflatten, with nodes), and to what retains one of
 * these (layouts, plans, dtensors). That end is local, and comes in any order with the ends of
 * `mesh` and its communicator. A mesh that tsr_mesh_create() makes over tsr_mesh_comm(*out) only
 * borrows the communicator. The caller owns `*out`.
 *
 * TSR_ERROR_ARGUMENT: a dim that the mesh does not have; ranks' dims or meshes do not fit together.
 * TSR_ERROR_UNSUPPORTED: the communicator is lent and may not be split. No rank gets a mesh if one
 * rank fails.
 */
TSR_API tsr_status tsr_mesh_split(const tsr_mesh *mesh, const char *dims, tsr_mesh **out);

/*
 * Collectives along mesh dims.
 *
 * Each is the tsr_comm_* call of its name (comm.h) among the ranks along `dims` ("tp", or "dp,tp":
 * in mesh order) through this rank; NULL or "": all ranks of the mesh. Parts, counts, roots and
 * sums go by ascending row-major coordinate along `dims`: rank i of a call is the one at position
 * i. Floating sums have the same bits on every rank along `dims`. Buffers are contiguous, on any
 * device, and used in the order of `stream`.
 *
 * The first call with some dims of a mesh object (a slice or copy of a mesh is another object) is
 * collective over the mesh's communicator: ranks outside the mesh make it, too. It makes groups by
 * splitting the communicator, unless they exist, or `dims` are all ranks of the communicator in
 * their own order. The groups are kept as long as the communicator. Later calls with these dims, by
 * any function below, meet the ranks along `dims` alone. On ranks outside the mesh calls do nothing
 * and return TSR_OK.
 *
 * Errors are those of comm.h: ranks that meet hear of one rank's bad argument or failure. There is
 * one more case in which a rank returns at once although its peers wait for it: the mesh does not
 * have the dims, and a call with other dims of the mesh has succeeded before. Then the rank does
 * not know where its peers are. Sentences number ranks as the mesh's communicator does, and roots
 * by position. TSR_ERROR_UNSUPPORTED: the communicator is lent and may not be split, but groups are
 * needed.
 */

/** Reduces the `count` elements of all ranks; every rank gets the result. In place: send ==
 * receive. */
TSR_API tsr_status tsr_mesh_all_reduce(const tsr_mesh *mesh, const char *dims, const void *send,
                                       void *receive, int64_t count, tsr_dtype dtype,
                                       tsr_reduce_op op, tsr_device device, tsr_stream stream);

/** Puts the `counts[i]` elements of every rank i, in order, on every rank. `counts` has one entry
 * per rank along `dims` and is the same on all; NULL: each rank has `count`. `receive` has room for
 * the sum. In place: send == receive + this rank's offset. */
TSR_API tsr_status tsr_mesh_all_gather(const tsr_mesh *mesh, const char *dims, const void *send,
                                       void *receive, int64_t count, const int64_t *counts,
                                       tsr_dtype dtype, tsr_device device, tsr_stream stream);

/** Rank i gets the reduction of part i of every rank's `send`; parts as in tsr_mesh_all_gather().
 */
TSR_API tsr_status tsr_mesh_reduce_scatter(const tsr_mesh *mesh, const char *dims, const void *send,
                                           void *receive, int64_t count, const int64_t *counts,
                                           tsr_dtype dtype, tsr_reduce_op op, tsr_device device,
                                           tsr_stream stream);

/** Part j of rank i's `send` becomes part i of rank j's `receive`. Every part has `count` elements,
 * unless send_counts[j] and receive_counts[i] (where not NULL) say otherwise. Parts have no gaps.
 */
TSR_API tsr_status tsr_mesh_all_to_all(const tsr_mesh *mesh, const char *dims, const void *send,
                                       void *receive, int64_t count, const int64_t *send_counts,
                                       const int64_t *receive_counts, tsr_dtype dtype,
                                       tsr_device device, tsr_stream stream);

/** Copies `buffer` of the rank at position `root` along `dims` to `buffer` of every rank there. */
TSR_API tsr_status tsr_mesh_broadcast(const tsr_mesh *mesh, const char *dims, void *buffer,
                                      int64_t count, tsr_dtype dtype, int root, tsr_device device,
                                      tsr_stream stream);

/** tsr_mesh_all_reduce() of one number on the host, in place, such as a loss. */
TSR_API tsr_status tsr_mesh_all_reduce_f64(const tsr_mesh *mesh, const char *dims, double *value,
                                           tsr_reduce_op op);

/** tsr_mesh_all_reduce_f64() of an integer, such as a count. */
TSR_API tsr_status tsr_mesh_all_reduce_i64(const tsr_mesh *mesh, const char *dims, int64_t *value,
                                           tsr_reduce_op op);

/** tsr_mesh_broadcast() of one number on the host, such as a step size. */
TSR_API tsr_status tsr_mesh_broadcast_f64(const tsr_mesh *mesh, const char *dims, double *value,
                                          int root);

/** tsr_mesh_broadcast_f64() of an integer, such as a token. */
TSR_API tsr_status tsr_mesh_broadcast_i64(const tsr_mesh *mesh, const char *dims, int64_t *value,
                                          int root);

#ifdef __cplusplus
}
#endif

#endif
