/**
 * @file
 * A sharded tensor: a layout and this rank's local tensor. PyTorch's DTensor, JAX's sharded Array.
 *
 * Reference-counted; its layout never changes but by tsr_redistribute_in_place(). Calls marked
 * collective are made by every rank of the mesh's communicator, ranks outside the mesh included
 * (for them they are no-ops on empty shards). On a device with streams a dtensor is valid in the
 * order of the stream on which it was written; calls without a stream work on the default one.
 * After the communicator's end (tsr_comm_destroy()) dtensors over it can be read, retained and
 * destroyed; calls that communicate over it or make another dtensor on it return TSR_ERROR_STATE.
 */
#ifndef TESSERA_DTENSOR_H
#define TESSERA_DTENSOR_H

#include <tessera/layout.h>
#include <tessera/plan.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A layout and this rank's local tensor. */
typedef struct tsr_dtensor tsr_dtensor;

/** An uninitialised dtensor on `device`: for tsr_redistribute_into(). The layout is retained and
 * its mesh must have a communicator. Does not communicate. */
TSR_API tsr_status tsr_dtensor_create(const tsr_layout *layout, tsr_device device,
                                      tsr_dtensor **out);

/** Options of tsr_distribute_tensor(). */
typedef struct tsr_distribute_options {
    size_t size;     /**< sizeof(tsr_distribute_options) */
    int source_rank; /**< -1: `global` is present, with the same values, on every rank, and
                          nothing is communicated; else only this rank's is read */
} tsr_distribute_options;

/** Every rank has the global tensor; nothing is communicated. */
#define TSR_DISTRIBUTE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_distribute_options), -1                                                         \
    }

/**
 * Distributes a global tensor over `mesh`; `placements` has as many entries as the mesh has dims,
 * which are read unseen. Every rank keeps a copy of its own shard; `global` may be strided and is
 * the caller's again on return, on a device with streams too, where it is ready when the call is
 * made. A Partial placement holds terms that reduce to the global value: for sum the coordinate 0
 * holds it and the others -0.0 (0 for integers), for prod the others hold 1, for avg, min and max
 * all hold it. With a source rank (of the mesh's communicator) the call is collective, all ranks
 * give the shape and dtype, and `data` is read on that rank only.
 */
TSR_API tsr_status tsr_distribute_tensor(const tsr_tensor *global, const tsr_mesh *mesh,
                                         const tsr_placement *placements,
                                         const tsr_distribute_options *options, tsr_dtensor **out);

/**
 * tsr_distribute_tensor() with the placements as text (placement.h), one per mesh dim: "R,S(0)". Of
 * an array nobody can tell how many it has; a text with another number than the mesh has dims is
 * refused. Every rank has `global`; nothing is communicated. Errors as tsr_distribute_tensor();
 * those of the text point at the character.
 */
TSR_API tsr_status tsr_distribute(const tsr_tensor *global, const tsr_mesh *mesh,
                                  const char *placements, tsr_dtensor **out);

/**
 * tsr_distribute_tensor() of a tensor in a file: row-major at byte `offset` of `path`, stored as
 * `dtype`, little-endian. Each rank reads only the bytes that its layout owns, and converts between
 * floating types where the layout's dtype differs, rounding once. `*bytes_read`, where not NULL, is
 * what this rank read. Does not communicate. TSR_ERROR_IO: the file cannot be read or is too short.
 * TSR_ERROR_UNSUPPORTED: a conversion other than between f64, f32, f16, bf16, f8e4m3 and f8e5m2.
 */
TSR_API tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype,
                                       const tsr_layout *layout, int64_t *bytes_read,
                                       tsr_dtensor **out);

/** Options of tsr_dtensor_from_local(). */
typedef struct tsr_from_local_options {
    size_t size; /**< sizeof(tsr_from_local_options) */
    int check;   /**< 1: collective; compares layouts across ranks and fails on all of them where
                      they differ */
} tsr_from_local_options;

/** Nothing is compared across ranks. */
#define TSR_FROM_LOCAL_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_from_local_options), 0                                                          \
    }

/** A dtensor over the caller's memory, which is borrowed and must outlive it; strides are free, but
 * where they make elements overlap (tsr_tensor_overlaps()) it can only be read. TSR_ERROR_ARGUMENT:
 * `local` is not what the layout gives this rank (the sentence says what would be). */
TSR_API tsr_status tsr_dtensor_from_local(const tsr_tensor *local, const tsr_layout *layout,
                                          const tsr_from_local_options *options, tsr_dtensor **out);

/**
 * One reference more, and one back (NULL is fine); the memory goes with the last, unless it is the
 * caller's: on the host to the context, which keeps it for a new dtensor where it is large
 * (tsr_context_options.kept_bytes), on a device when that has done all that it was given. Neither
 * communicates.
 */
TSR_API tsr_dtensor *tsr_dtensor_retain(tsr_dtensor *dtensor);
TSR_API void tsr_dtensor_destroy(tsr_dtensor *dtensor); /**< gives one reference back */

/** The layout; borrowed. */
TSR_API const tsr_layout *tsr_dtensor_layout(const tsr_dtensor *dtensor);

/** This rank's local tensor as a view: borrowed, valid as long as the dtensor. A rank outside the
 * mesh gets shape {0} and no data. */
TSR_API tsr_tensor tsr_dtensor_to_local(const tsr_dtensor *dtensor);

/*
 * Errors of redistributions. A fault of one rank's arguments is told to its peers, which get
 * TSR_ERROR_PEER with that rank and its sentence, and the communicator stays usable. Not told is a
 * rank whose `x` (`dy`, x[0]) is NULL, which has no communicator to tell it over. Nor is one that
 * cannot say where to move to (all other arguments but `out`), if the mesh keeps a plan from x's
 * layout for which ranks do not meet over the whole communicator: a plan by which nothing crosses
 * ranks, on a mesh of some of the ranks, or where executions tell nobody (TSR_COMM_UNCHECKED in
 * sys/comm.h; messages of tensors on a device). That rank returns alone.
 */

/**
 * Collective: the same tensor under other placements, in new contiguous memory. `placements` has as
 * many entries as the mesh has dims, which are read unseen. On top of tsr_redistribute_into().
 */
TSR_API tsr_status tsr_redistribute(const tsr_dtensor *x, const tsr_placement *placements,
                                    tsr_dtensor **out);

/** Collective: tsr_redistribute() with the placements as text (placement.h), one per mesh dim:
 * "S(0),R". Another number of them is refused, as is a text with more than 1024 numbers in lists of
 * sizes and blocks; errors of the text point at the character. */
TSR_API tsr_status tsr_redistribute_to(const tsr_dtensor *x, const char *placements,
                                       tsr_dtensor **out);

/**
 * Collective: writes `x` into `y`, whose layouts are of one global shape and dtype on one mesh. The
 * first call for a pair of layouts (and a device: ranks go over to others together) plans, prepares
 * and keeps plan and workspace in a bounded cache of the mesh; later calls allocate and plan
 * nothing. Memory may be shared where tsr_plan_in_place() would allow it. The kept workspace serves
 * one stream after the other. What a graph holds is tsr_plan_execute(): what is kept here may be
 * evicted before the graph is replayed.
 */
TSR_API tsr_status tsr_redistribute_into(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream);

/** Collective: tsr_redistribute_into() for `count` tensors that share one exchange, as a model's
 * parameters do: x[i] into y[i], all on one mesh and device; shapes and dtypes may differ. The plan
 * is kept for these layouts in this order. No y overlaps another tensor. */
TSR_API tsr_status tsr_redistribute_batch(size_t count, const tsr_dtensor *const *x,
                                          tsr_dtensor *const *y, tsr_stream stream);

/** Collective: changes `x` itself to other placements, one per mesh dim, in its own memory.
 * TSR_ERROR_UNSUPPORTED where the plan is not tsr_plan_in_place(). */
TSR_API tsr_status tsr_redistribute_in_place(tsr_dtensor *x, const tsr_placement *placements,
                                             tsr_stream stream);

/** Collective: the backward of tsr_redistribute(): takes `dy`, in the gradient layout of the
 * result, to the gradient layout of `x_layout` (tsr_layout_gradient()). */
TSR_API tsr_status tsr_redistribute_backward(const tsr_dtensor *dy, const tsr_layout *x_layout,
                                             tsr_dtensor **dx);

/** Collective: the whole tensor on every rank of the mesh: redistributes to Replicate on every mesh
 * dim. Read it with tsr_dtensor_to_local(). */
TSR_API tsr_status tsr_full_tensor(const tsr_dtensor *x, tsr_dtensor **out);

/** How the cache of a mesh did: calls that found their plan, calls that planned, plans held now. */
typedef struct tsr_cache_statistics {
    int64_t hits, misses, entries;
} tsr_cache_statistics;

/** This rank's figures since the mesh was made. Does not communicate. */
TSR_API tsr_cache_statistics tsr_mesh_cache_statistics(const tsr_mesh *mesh);

#ifdef __cplusplus
}
#endif

#endif
