/**
 * @file
 * A mesh: an n-d grid of ranks with optional names for its dims. PyTorch's DeviceMesh, JAX's Mesh,
 * MPI's Cartesian topology.
 *
 * Immutable and reference-counted. A mesh over a communicator lets dtensors communicate; an
 * abstract one only plans. Geometry and equality ignore the communicator. None of these calls
 * communicates; what ranks of a mesh do together is in mesh_comm.h.
 */
#ifndef TESSERA_MESH_H
#define TESSERA_MESH_H

#include <tessera/comm.h>
#include <tessera/context.h>
#include <tessera/nodes.h>

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A grid of ranks. */
typedef struct tsr_mesh tsr_mesh;

/**
 * A mesh of `ndim` (1 to TSR_MAX_DIMS) dims over ranks of `comm`. `comm` stays the caller's: after
 * tsr_comm_destroy() the mesh can still be read and destroyed. `names` has ndim distinct names
 * (letters, digits and underscores, not a digit first), or is NULL. `ranks` lists the
 * communicator's rank at each row-major coordinate, every rank at most once; NULL: 0, 1, 2, .. The
 * mesh may hold fewer ranks than the communicator. Arguments are copied; the caller owns `*out`.
 * TSR_ERROR_ARGUMENT: a size below 1, more ranks than the communicator has, a rank twice or out of
 * range, a bad or repeated name.
 */
TSR_API tsr_status tsr_mesh_create(tsr_comm *comm, int ndim, const int64_t *shape,
                                   const char *const *names, const int64_t *ranks, tsr_mesh **out);

/** tsr_mesh_create() without a communicator, for planning. At most 2^31 - 1 ranks; where `ranks` is
 * NULL, memory does not grow with their number. */
TSR_API tsr_status tsr_mesh_create_abstract(tsr_context *context, int ndim, const int64_t *shape,
                                            const char *const *names, const int64_t *ranks,
                                            tsr_mesh **out);

/** A mesh from text: `2x4` or `dp=2,tp=4`, then optionally `@8` (the first rank) or `@[3,1,0,2]`
 * (all ranks, row-major). It is over `comm`, whose context it has, or abstract in `context` if
 * `comm` is NULL. The caller owns `*out`. TSR_ERROR_ARGUMENT: the sentence points at the character
 * that is wrong. */
TSR_API tsr_status tsr_mesh_parse(tsr_comm *comm, tsr_context *context, const char *text,
                                  tsr_mesh **out);

/** Prints the mesh in the form that tsr_mesh_parse() reads. Like snprintf(), it returns the length
 * of the whole text. */
TSR_API size_t tsr_mesh_print(const tsr_mesh *mesh, char *text, size_t capacity);

/** The sub-mesh of the named dims ("tp", or "dp,tp": in mesh order) through this rank's coordinate;
 * for an abstract mesh, or a rank outside it, through coordinate 0. Unnamed dims are given by index
 * ("1"). It keeps the parent's communicator; tsr_mesh_split() makes one of its own. The caller owns
 * `*out`. */
TSR_API tsr_status tsr_mesh_slice(const tsr_mesh *mesh, const char *dims, tsr_mesh **out);

/** The mesh with the named dims ("dp,tp", adjacent, in mesh order) made into one dim, whose name is
 * their names joined with "_"; "" flattens all dims. Unnamed dims are given by index ("0,1") and
 * stay unnamed. The caller owns `*out`. */
TSR_API tsr_status tsr_mesh_flatten(const tsr_mesh *mesh, const char *dims, tsr_mesh **out);

/** The mesh with dim `dim` (its name, or its index as text) split row-major into `shape`, whose
 * product is the dim's size. `names` is as in tsr_mesh_create(), and NULL exactly for an unnamed
 * mesh; an unnamed 1-d mesh may get names here. The caller owns `*out`. */
TSR_API tsr_status tsr_mesh_unflatten(const tsr_mesh *mesh, const char *dim, int ndim,
                                      const int64_t *shape, const char *const *names,
                                      tsr_mesh **out);

/**
 * A copy of the mesh that knows how ranks lie on nodes; `nodes` NULL or all zero: unknown. Plans
 * between its layouts then count links between nodes apart (tsr_plan_options.nodes overrides this).
 * Meshes derived from it know the same nodes. The list is indexed by the communicator's ranks, and
 * so may be longer than the mesh. `nodes` is copied; the caller owns `*out`. TSR_ERROR_ARGUMENT: a
 * negative number, both forms of tsr_nodes at once, or a list that leaves out a rank of the mesh.
 */
TSR_API tsr_status tsr_mesh_with_nodes(const tsr_mesh *mesh, const tsr_nodes *nodes,
                                       tsr_mesh **out);

/** Adds a reference and returns `mesh`. Any thread. */
TSR_API tsr_mesh *tsr_mesh_retain(tsr_mesh *mesh);

/** Gives one reference back; NULL is fine. Any thread. With the last one a communicator that the
 * mesh owns (tsr_mesh_split()) ends, as by tsr_comm_destroy(). */
TSR_API void tsr_mesh_destroy(tsr_mesh *mesh);

/** The number of dims. */
TSR_API int tsr_mesh_ndim(const tsr_mesh *mesh);

/** The number of ranks along `dim`; 0 if there is no such dim. */
TSR_API int64_t tsr_mesh_size(const tsr_mesh *mesh, int dim);

/** The number of ranks. */
TSR_API int64_t tsr_mesh_count(const tsr_mesh *mesh);

/** The name of `dim`, borrowed; NULL for an unnamed mesh. */
TSR_API const char *tsr_mesh_name(const tsr_mesh *mesh, int dim);

/** The communicator, borrowed, also after tsr_comm_destroy(); NULL for an abstract mesh. */
TSR_API tsr_comm *tsr_mesh_comm(const tsr_mesh *mesh);

/** The context, borrowed; never NULL. */
TSR_API tsr_context *tsr_mesh_context(const tsr_mesh *mesh);

/** How ranks lie on nodes. Nodes that ranks_per_node can describe are not listed; listed nodes are
 * numbered from 0 in the order of their lowest ranks. All zero: unknown. The list is borrowed. */
TSR_API tsr_nodes tsr_mesh_nodes(const tsr_mesh *mesh);

/** The index of the dim with that name. TSR_ERROR_ARGUMENT: there is no such dim; the sentence
 * lists the names. */
TSR_API tsr_status tsr_mesh_find(const tsr_mesh *mesh, const char *name, int *dim);

/** The rank at a coordinate of ndim numbers. TSR_ERROR_ARGUMENT: the coordinate is out of range. */
TSR_API tsr_status tsr_mesh_rank_at(const tsr_mesh *mesh, const int64_t *coordinate, int64_t *rank);

/** The coordinate of `rank`, and 1 in `*inside`. For a rank outside the mesh `*inside` is 0 and
 * `coordinate` is left alone. */
TSR_API tsr_status tsr_mesh_coordinate_of(const tsr_mesh *mesh, int64_t rank, int64_t *coordinate,
                                          int *inside);

/** tsr_mesh_coordinate_of() for the communicator's own rank; in an abstract mesh `*inside` is 0. */
TSR_API tsr_status tsr_mesh_coordinate(const tsr_mesh *mesh, int64_t *coordinate, int *inside);

/** 1 if both have the same sizes, ignoring dims of size 1, and the same ranks in the same places,
 * else 0. Names, communicators and nodes do not count. */
TSR_API int tsr_mesh_equal(const tsr_mesh *a, const tsr_mesh *b);

/** 1 if the meshes are equal and mean the same ranks: their communicators are congruent
 * (tsr_comm_congruent()), or one mesh is abstract. Plans and tsr_layout_relabel() take congruent
 * meshes as one mesh; layers need the same communicator. */
TSR_API int tsr_mesh_congruent(const tsr_mesh *a, const tsr_mesh *b);

#ifdef __cplusplus
}
#endif

#endif
