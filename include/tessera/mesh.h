/**
 * @file
 * An n-d grid of ranks with optional names for its dims: PyTorch's DeviceMesh, JAX's Mesh, MPI's
 * Cartesian topology.
 *
 * Immutable and reference-counted. A mesh over a communicator lets dtensors communicate; an
 * abstract one only plans. Geometry and equality ignore the communicator. None of these calls
 * communicates.
 */
#ifndef TESSERA_MESH_H
#define TESSERA_MESH_H

#include <stddef.h>
#include <stdint.h>
#include <tessera/comm.h>
#include <tessera/context.h>
#include <tessera/nodes.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A grid of ranks. */
typedef struct tsr_mesh tsr_mesh;

/**
 * A mesh of `ndim` (1 to TSR_MAX_DIMS) dims over ranks of `comm`, which stays the caller's: after
 * tsr_comm_destroy() the mesh can be read and destroyed. `names` has ndim distinct names (letters,
 * digits and underscores, not a digit first) or is NULL. `ranks` lists the communicator's rank at
 * each row-major coordinate, or is NULL for 0, 1, 2, ..; every rank at most once. The mesh may hold
 * fewer ranks than the communicator. Copies what it is given. TSR_ERROR_ARGUMENT: a size below 1,
 * more ranks than the communicator has, a rank twice or out of range, a bad or repeated name.
 */
TSR_API tsr_status tsr_mesh_create(tsr_comm *comm, int ndim, const int64_t *shape,
                                   const char *const *names, const int64_t *ranks, tsr_mesh **out);

/** The same without a communicator: for planning. Up to 2^31 - 1 ranks, in memory that does not
 * grow with them where `ranks` is NULL. */
TSR_API tsr_status tsr_mesh_create_abstract(tsr_context *context, int ndim, const int64_t *shape,
                                            const char *const *names, const int64_t *ranks,
                                            tsr_mesh **out);

/** A mesh from text: `2x4` or `dp=2,tp=4`, then optionally `@8` (the first rank) or `@[3,1,0,2]`
 * (all, row-major). Over `comm`, or abstract (in `context`) where `comm` is NULL. The sentence of a
 * TSR_ERROR_ARGUMENT points at the character that is wrong. */
TSR_API tsr_status tsr_mesh_parse(tsr_comm *comm, tsr_context *context, const char *text,
                                  tsr_mesh **out);

/** Prints the mesh as tsr_mesh_parse() reads it, in the manner of snprintf(): returns the length of
 * the whole text. */
TSR_API size_t tsr_mesh_print(const tsr_mesh *mesh, char *text, size_t capacity);

/** The sub-mesh of the named dims ("tp", or "dp,tp": in mesh order) through this rank's coordinate,
 * or through coordinate 0 for an abstract mesh or a rank outside it. Unnamed dims are given by
 * index ("1"). It keeps the parent's communicator. */
TSR_API tsr_status tsr_mesh_slice(const tsr_mesh *mesh, const char *dims, tsr_mesh **out);

/**
 * The mesh with the named dims ("dp,tp", adjacent, in mesh order) made one, called by their names
 * joined with "_"; "" flattens all dims. Unnamed dims are given by index ("0,1") and stay unnamed.
 */
TSR_API tsr_status tsr_mesh_flatten(const tsr_mesh *mesh, const char *dims, tsr_mesh **out);

/** The mesh with dim `dim` (its name, or its index as text) split row-major into `shape`, whose
 * product is its size; `names` as in tsr_mesh_create(), NULL exactly for an unnamed mesh, of which
 * a 1-d one may get names here. */
TSR_API tsr_status tsr_mesh_unflatten(const tsr_mesh *mesh, const char *dim, int ndim,
                                      const int64_t *shape, const char *const *names,
                                      tsr_mesh **out);

/**
 * The mesh, knowing how ranks lie on nodes; not knowing it where `nodes` is NULL or all zero. Plans
 * between its layouts then count links between nodes apart (tsr_plan_options.nodes overrides). What
 * is derived from the mesh knows the same. Ranks are the communicator's, so that a list may be of
 * more than the mesh has. TSR_ERROR_ARGUMENT: a negative number, both forms of tsr_nodes at once,
 * or a list that leaves out a rank of the mesh. Copies what it is given. The caller owns `*out`.
 */
TSR_API tsr_status tsr_mesh_with_nodes(const tsr_mesh *mesh, const tsr_nodes *nodes,
                                       tsr_mesh **out);

/** One reference more, and one back (NULL is fine). Any thread. */
TSR_API tsr_mesh *tsr_mesh_retain(tsr_mesh *mesh);
TSR_API void tsr_mesh_destroy(tsr_mesh *mesh); /**< gives one reference back */

TSR_API int tsr_mesh_ndim(const tsr_mesh *mesh);                  /**< how many dims */
/** ranks along `dim`; 0 if there is no such dim */
TSR_API int64_t tsr_mesh_size(const tsr_mesh *mesh, int dim);
TSR_API int64_t tsr_mesh_count(const tsr_mesh *mesh);             /**< ranks in all */
/** NULL for an unnamed mesh; borrowed */
TSR_API const char *tsr_mesh_name(const tsr_mesh *mesh, int dim);
/** NULL for an abstract mesh; borrowed, also after its end */
TSR_API tsr_comm *tsr_mesh_comm(const tsr_mesh *mesh);
TSR_API tsr_context *tsr_mesh_context(const tsr_mesh *mesh);      /**< borrowed, never NULL */

/** How ranks lie on nodes, in one form: nodes that ranks_per_node tells are not listed, and listed
 * ones are numbered from 0 in the order of their lowest ranks. All zero: not known. The list is
 * borrowed. */
TSR_API tsr_nodes tsr_mesh_nodes(const tsr_mesh *mesh);

/** The dim with that name. TSR_ERROR_ARGUMENT names the dims that there are. */
TSR_API tsr_status tsr_mesh_find(const tsr_mesh *mesh, const char *name, int *dim);

/** The rank at a coordinate (ndim numbers). TSR_ERROR_ARGUMENT: out of range. */
TSR_API tsr_status tsr_mesh_rank_at(const tsr_mesh *mesh, const int64_t *coordinate, int64_t *rank);

/** The coordinate of `rank`, and 1 in `*inside`; a rank outside the mesh gets 0 there and
 * `coordinate` is left alone. */
TSR_API tsr_status tsr_mesh_coordinate_of(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate,
                                          int *inside);

/** tsr_mesh_coordinate_of() for the communicator's own rank; for an abstract mesh nothing is
 * inside. */
TSR_API tsr_status tsr_mesh_coordinate(const tsr_mesh *mesh, int64_t *coordinate, int *inside);

/** 1 if both have the same sizes, ignoring dims of size 1, and the same ranks in the same places.
 * Names, communicators and nodes do not count. */
TSR_API int tsr_mesh_equal(const tsr_mesh *a, const tsr_mesh *b);

/** 1 if they are equal and their ranks the same ones: tsr_comm_congruent() holds for their
 * communicators, or one mesh is abstract. Plans and tsr_layout_relabel() take such meshes as one;
 * layers and tsr_redistribute_into() want one communicator. */
TSR_API int tsr_mesh_congruent(const tsr_mesh *a, const tsr_mesh *b);

#ifdef __cplusplus
}
#endif

#endif
