/**
 * @file
 * A layout: mesh + placements + global shape + dtype. It says where every element of a tensor lies.
 * PyTorch's DTensorSpec, JAX's NamedSharding.
 *
 * Immutable, reference-counted, shared freely between threads. Along a tensor dim a rank owns an
 * ascending list of half-open intervals; its shard is the Cartesian product of these lists, stored
 * contiguously in row-major order. None of these calls communicates.
 */
#ifndef TESSERA_LAYOUT_H
#define TESSERA_LAYOUT_H

#include <tessera/mesh.h>
#include <tessera/placement.h>

#ifdef __cplusplus
extern "C" {
#endif

/** Where every element of a tensor lies. */
typedef struct tsr_layout tsr_layout;

/** The indices i with begin <= i < end. */
typedef struct tsr_interval {
    int64_t begin, end;
} tsr_interval;

/**
 * A layout of a tensor of `ndim` (0 to TSR_MAX_DIMS) dims over `mesh`, which is retained.
 * `placements` is copied. It must have as many entries as the mesh has dims: the array's length is
 * not checked (tsr_layout_parse() checks it). The caller owns `*out`.
 *
 * TSR_ERROR_ARGUMENT: a negative or overflowing shape; a sharded dim out of range; sizes or blocks
 * that do not sum to a piece that they cut; equal orders; Partial ops that differ (except sum with
 * avg) or that the dtype does not have. The sentence names the placement and what would work.
 */
TSR_API tsr_status tsr_layout_create(const tsr_mesh *mesh, const tsr_placement *placements,
                                     int ndim, const int64_t *shape, tsr_dtype dtype,
                                     tsr_layout **out);

/** tsr_layout_create() with the placements as text (placement.h), one per mesh dim; a text with
 * more or fewer placements is refused. */
TSR_API tsr_status tsr_layout_parse(const tsr_mesh *mesh, const char *placements, int ndim,
                                    const int64_t *shape, tsr_dtype dtype, tsr_layout **out);

/** Adds a reference and returns `layout`. Any thread. */
TSR_API tsr_layout *tsr_layout_retain(tsr_layout *layout);

/** Gives one reference back; NULL is fine. Any thread. */
TSR_API void tsr_layout_destroy(tsr_layout *layout);

TSR_API const tsr_mesh *tsr_layout_mesh(const tsr_layout *layout); /**< borrowed */
TSR_API int tsr_layout_ndim(const tsr_layout *layout);             /**< dims of the tensor */
TSR_API const int64_t *tsr_layout_shape(const tsr_layout *layout); /**< ndim numbers; borrowed */
TSR_API tsr_dtype tsr_layout_dtype(const tsr_layout *layout);      /**< dtype of the elements */

/** The placements, one per mesh dim; borrowed. */
TSR_API const tsr_placement *tsr_layout_placements(const tsr_layout *layout);

/** Prints the placements as tsr_placements_print() does, like snprintf(): returns the length of the
 * whole text. */
TSR_API size_t tsr_layout_print(const tsr_layout *layout, char *text, size_t capacity);

/**
 * Local shape and global offset (either may be NULL) at a mesh coordinate; NULL: the mesh's own
 * rank. The offset is the first owned index, or the dim's size where nothing is owned. A rank
 * outside the mesh has shape 0 and the offset at the end in every dim. TSR_ERROR_ARGUMENT: the
 * coordinate is out of range.
 */
TSR_API tsr_status tsr_layout_local(const tsr_layout *layout, const int64_t *coordinate,
                                    int64_t *shape, int64_t *offset);

/**
 * The intervals that a coordinate (NULL: the mesh's own rank) owns along `dim`: ascending, touching
 * ones merged, in the order in which they lie in its memory. `*count` gets their full number; at
 * most `capacity` are written. TSR_ERROR_ARGUMENT: the coordinate or dim is out of range, or there
 * are more than tsr_context_options.plan_entries.
 */
TSR_API tsr_status tsr_layout_intervals(const tsr_layout *layout, const int64_t *coordinate,
                                        int dim, tsr_interval *buffer, size_t capacity,
                                        size_t *count);

/** Where one element of a tensor lies (tsr_layout_owner()). */
typedef struct tsr_owner {
    int64_t rank;                     /**< its owner, as the mesh numbers ranks */
    int64_t coordinate[TSR_MAX_DIMS]; /**< the owner's, in the mesh */
    int64_t local[TSR_MAX_DIMS];      /**< the element's index in the owner's local tensor */
    int64_t holders;                  /**< the number of ranks that hold it, the owner among them */
} tsr_owner;

/**
 * Finds the owner of the element at global `index`, one number per dim (NULL: a scalar's), and its
 * index in the local tensor there. Along a mesh dim that does not cut the tensor, Replicate or
 * Partial, every rank holds the element, or a term of it, at the same local index. The owner is the
 * one at coordinate 0 of all such mesh dims; to get the others, change these entries of
 * `coordinate` and ask tsr_mesh_rank_at(). TSR_ERROR_ARGUMENT: the index is out of range. Pure.
 */
TSR_API tsr_status tsr_layout_owner(const tsr_layout *layout, const int64_t *index,
                                    tsr_owner *owner);

/**
 * Owners of `count` global positions along tensor dim `dim`, in any order, such as the rows of an
 * embedding or the nodes of a graph: parts[i] has positions[i], at position locals[i] of its local
 * tensors. `parts` or `locals` may be NULL, and one of them may be `positions` itself.
 *
 * A part is a coordinate in the mesh dims that cut `dim`: with one such mesh dim, its coordinate;
 * with several, the row-major number in ascending order of mesh dims, whichever cuts first; with
 * none, 0. On a mesh of one dim whose ranks count from 0, a part is a rank.
 *
 * A position that continues the one before it takes a few instructions, another one a search.
 * Listed blocks (`blocks=`) are gone through once if positions ascend; each position that goes back
 * begins anew. TSR_ERROR_ARGUMENT: `dim` or a position is out of range. TSR_ERROR_MEMORY: there is
 * no memory for sums over listed blocks; other splits take none.
 */
TSR_API tsr_status tsr_layout_owners(const tsr_layout *layout, int dim, size_t count,
                                     const int64_t *positions, int64_t *parts, int64_t *locals);

/** Bytes of the shard at a coordinate (NULL: the mesh's own rank). */
TSR_API tsr_status tsr_layout_local_bytes(const tsr_layout *layout, const int64_t *coordinate,
                                          size_t *bytes);

/** 1 if both place the same shape and dtype in the same way on equal meshes, else 0; mesh dims of
 * size 1 do not count. */
TSR_API int tsr_layout_equal(const tsr_layout *a, const tsr_layout *b);

/** The same tensor under other placements, as many as the mesh has dims. The caller owns `*out`.
 * Errors as for tsr_layout_create(). */
TSR_API tsr_status tsr_layout_with(const tsr_layout *layout, const tsr_placement *placements,
                                   tsr_layout **out);

/**
 * The layout of gradients: Replicate where `layout` has Partial, unchanged elsewhere. It is the
 * gradient of the logical tensor; the gradient of a local Partial(avg) term is that gradient
 * divided by the size of its mesh dims. The caller owns `*out`. TSR_ERROR_UNSUPPORTED: Partial of
 * min, max or prod.
 */
TSR_API tsr_status tsr_layout_gradient(const tsr_layout *layout, tsr_layout **out);

#ifdef __cplusplus
}
#endif

#endif
