/**
 * @file
 * A sharded tensor: a layout and this rank's local tensor. PyTorch's DTensor, JAX's sharded Array.
 *
 * Reference-counted. Its layout never changes except by tsr_redistribute_in_place(). Calls marked
 * collective are made by every rank of the mesh's communicator, also by ranks outside the mesh, for
 * which they do nothing on empty shards.
 *
 * @par Streams
 * On a device with streams, a dtensor's values are ready in the order of the stream that wrote
 * them; calls without a stream work on the default one.
 *
 * @par After the communicator's end
 * After tsr_comm_destroy(), dtensors over the communicator can be read, retained and destroyed.
 * Calls that communicate over it, or make another dtensor on it, return TSR_ERROR_STATE.
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

/** An uninitialised dtensor on `device`, as a destination for tsr_redistribute_into(). The layout
 * is retained; its mesh must have a communicator. Does not communicate. */
TSR_API tsr_status tsr_dtensor_create(const tsr_layout *layout, tsr_device device,
                                      tsr_dtensor **out);

/** Options of tsr_distribute_tensor(). */
typedef struct tsr_distribute_options {
    size_t size;     /**< sizeof(tsr_distribute_options) */
    int source_rank; /**< -1: every rank gives `global` with the same values, and nothing is
                          communicated; else the rank whose `global` is read */
} tsr_distribute_options;

/** Every rank has the global tensor; nothing is communicated. */
#define TSR_DISTRIBUTE_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_distribute_options), -1                                                         \
    }

/**
 * Distributes a global tensor over `mesh`. `placements` must have as many entries as the mesh has
 * dims: the array's length is not checked. Every rank keeps a copy of its own shard. `global` may
 * be strided. It must be ready when the call is made and is the caller's again on return, on a
 * device with streams too. With a source rank (of the mesh's communicator) the call is collective:
 * all ranks give shape and dtype, and `data` is read on that rank alone.
 *
 * A Partial placement holds terms that reduce to the global value. For sum, coordinate 0 holds the
 * value and the others -0.0 (0 for integers); for prod, the others hold 1; for avg, min and max,
 * all hold the value.
 */
TSR_API tsr_status tsr_distribute_tensor(const tsr_tensor *global, const tsr_mesh *mesh,
                                         const tsr_placement *placements,
                                         const tsr_distribute_options *options, tsr_dtensor **out);

/**
 * tsr_distribute_tensor() with the placements as text (placement.h), one per mesh dim: "R,S(0)".
 * Here the number is checked: a text with more or fewer placements than the mesh has dims is
 * refused. Every rank has `global`; nothing is communicated. Errors as for tsr_distribute_tensor();
 * errors in the text point at the character.
 */
TSR_API tsr_status tsr_distribute(const tsr_tensor *global, const tsr_mesh *mesh,
                                  const char *placements, tsr_dtensor **out);

/**
 * tsr_distribute_tensor() of a tensor in a file: row-major at byte `offset` of `path`, stored as
 * `dtype`, little-endian. Each rank reads only the bytes that its layout owns. Where the layout's
 * dtype differs, floating types are converted, rounding once. `*bytes_read`, where not NULL, gets
 * the number of bytes that this rank read. Does not communicate. TSR_ERROR_IO: the file cannot be
 * read or is too short. TSR_ERROR_UNSUPPORTED: a conversion other than between f64, f32, f16, bf16,
 * f8e4m3 and f8e5m2.
 */
TSR_API tsr_status tsr_distribute_file(const char *path, int64_t offset, tsr_dtype dtype,
                                       const tsr_layout *layout, int64_t *bytes_read,
                                       tsr_dtensor **out);

/** A part of a tensor that lies in files. */
typedef struct tsr_file_part {
    const char *path;
    int64_t offset;  /**< of its first byte in the file */
    tsr_dtype dtype; /**< how it is stored, little-endian */
    int64_t count;   /**< of its elements; 0 is fine */
} tsr_file_part;

/**
 * tsr_distribute_file() of a tensor whose elements, in row-major order, are those of `count` parts,
 * one part behind the other: in one file or in several, and in any dtypes. A model whose layers or
 * experts are stored one by one is so read as a stack of them. Each rank reads only the bytes that
 * its layout owns; all files are opened, to see that they have their parts. Errors as for
 * tsr_distribute_file(). TSR_ERROR_ARGUMENT: the parts have more or fewer elements than the layout.
 */
TSR_API tsr_status tsr_distribute_file_parts(size_t count, const tsr_file_part *parts,
                                             const tsr_layout *layout, int64_t *bytes_read,
                                             tsr_dtensor **out);

/**
 * tsr_distribute_file() into a dtensor that exists, such as a table or an optimizer's state: its
 * local tensor may be strided, which takes memory to pack it, and may lie on a device, whose
 * default stream the call waits for. Does not communicate. After TSR_ERROR_IO, TSR_ERROR_MEMORY and
 * TSR_ERROR_DEVICE its elements are undefined. TSR_ERROR_ARGUMENT: also if elements of `out` share
 * memory.
 */
TSR_API tsr_status tsr_distribute_file_into(const char *path, int64_t offset, tsr_dtype dtype,
                                            int64_t *bytes_read, tsr_dtensor *out);

/** A box of a tensor that lies in a file. */
typedef struct tsr_file_box {
    const char *path;
    int64_t offset;                /**< of its first element's first byte in the file */
    tsr_dtype dtype;               /**< how it is stored, little-endian */
    int64_t begin[TSR_MAX_DIMS];   /**< its first index in the tensor */
    int64_t shape[TSR_MAX_DIMS];   /**< one number per dim of the tensor */
    int64_t strides[TSR_MAX_DIMS]; /**< of its elements in the file, in elements; 0 or more */
} tsr_file_box;

/** Checks that `count` boxes make up a tensor of the layout, as tsr_distribute_file_boxes_into()
 * does, without looking at files. Pure. */
TSR_API tsr_status tsr_file_boxes_check(size_t count, const tsr_file_box *boxes,
                                        const tsr_layout *layout);

/**
 * tsr_distribute_file_into() of a tensor that lies in `count` boxes: in one file or in several, in
 * any dtypes and order. Checkpoints whose ranks wrote their shards are read so, and parts of stored
 * tensors. Each rank reads only the elements that its layout owns, and opens only files that it
 * reads. Short runs that are less than a page (4096 bytes) apart are read in one call, with what
 * lies between them, which `*bytes_read` leaves out. Does not communicate. Errors as there.
 * TSR_ERROR_ARGUMENT: the boxes do not make up the tensor, which every rank finds before it changes
 * an element: two of them overlap, one is not within the tensor, or elements are in no box; the
 * sentence has the first box that is missing.
 */
TSR_API tsr_status tsr_distribute_file_boxes_into(size_t count, const tsr_file_box *boxes,
                                                  int64_t *bytes_read, tsr_dtensor *out);

/**
 * Collective, and the twin of tsr_distribute_file(): writes the global tensor of `x` to the file at
 * `path` from byte `offset` on, row-major, in x's dtype, little-endian. All ranks give the same
 * arguments.
 *
 * Every element is written once: replicas of a large shard divide it among themselves, the first
 * replica writes a small one. Terms of a Partial are reduced first, in new memory. A local tensor
 * may be strided, which takes memory to pack it, and may lie on a device, whose default stream the
 * call waits for.
 *
 * If there is no such file, rank 0 of the communicator creates it. Bytes before and behind the
 * tensor stay as they were, so several tensors and a header can be written into one file. The file
 * grows as far as the tensor needs; an empty tensor leaves its size. On return the system has the
 * bytes; fsync() brings them to the disk.
 *
 * A failure of one rank, such as a full disk, is told to all: every rank gets a status that is not
 * TSR_OK. Before anything is written, all ranks' arguments are compared and rank 0 opens the file.
 * A failure after that leaves the tensor's bytes in the file undefined, and its size between the
 * former one and the full one: write to another name and rename it (new_file.h does) where readers
 * must not see a part. TSR_ERROR_IO: the file cannot be opened or written. TSR_ERROR_ARGUMENT:
 * `path` is NULL, or `offset` is negative or too large. A rank whose `x` is NULL returns alone.
 */
TSR_API tsr_status tsr_dtensor_write(const tsr_dtensor *x, const char *path, int64_t offset);

/**
 * Collective: tsr_dtensor_write() that stores elements as `dtype`. Where x's dtype differs,
 * floating types are converted, rounding once; a Partial is reduced in x's dtype before.
 * `*bytes_written`, where not NULL, gets the number of bytes that this rank wrote.
 * TSR_ERROR_UNSUPPORTED: a conversion other than between f64, f32, f16, bf16, f8e4m3 and f8e5m2.
 */
TSR_API tsr_status tsr_dtensor_write_as(const tsr_dtensor *x, const char *path, int64_t offset,
                                        tsr_dtype dtype, int64_t *bytes_written);

/** Is told of `count` bytes that lie in the stored tensor, row-major, from byte `at` on. They are
 * valid during the call. */
typedef tsr_status tsr_visit_bytes(void *arg, int64_t at, const void *bytes, size_t count);

/**
 * Tells `visit` the bytes that this rank would write in tsr_dtensor_write_as(), for writers of
 * other kinds, such as one that keeps them in memory. Together the ranks visit each byte once.
 * `whole`: 0: replicas divide a large shard among themselves; 1: the first replica visits all of
 * its shard. Bytes come in the order of the shard's elements. Stops when `visit` fails, and returns
 * its status. `visit` may be NULL. `*bytes`, where not NULL, gets the number of bytes. Does not
 * communicate. TSR_ERROR_ARGUMENT: a Partial.
 */
TSR_API tsr_status tsr_dtensor_visit_bytes(const tsr_dtensor *x, tsr_dtype dtype, int whole,
                                           tsr_visit_bytes *visit, void *arg, int64_t *bytes);

/** Options of tsr_dtensor_from_local(). */
typedef struct tsr_from_local_options {
    size_t size; /**< sizeof(tsr_from_local_options) */
    int check;   /**< 1: collective; compares layouts across ranks, and if any differ the call
                      fails on every rank */
} tsr_from_local_options;

/** Nothing is compared across ranks. */
#define TSR_FROM_LOCAL_OPTIONS_INIT                                                                \
    {                                                                                              \
        sizeof(tsr_from_local_options), 0                                                          \
    }

/**
 * A dtensor over the caller's memory, which is borrowed and must outlive it. Strides are free, but
 * where they make elements overlap (tsr_tensor_overlaps()) the dtensor can only be read.
 * TSR_ERROR_ARGUMENT: `local` does not fit the layout's part for this rank (the sentence says what
 * would).
 */
TSR_API tsr_status tsr_dtensor_from_local(const tsr_tensor *local, const tsr_layout *layout,
                                          const tsr_from_local_options *options, tsr_dtensor **out);

/**
 * A dtensor over a part of another one's memory: a view, such as a transpose or every second column
 * of `parent`. `local` says which elements of the parent's local tensor are this rank's part by
 * `layout`, as data and strides; strides of 0 repeat elements. The layout is retained; its mesh is
 * over the parent's communicator. Does not communicate, and compares nothing across ranks.
 *
 * @par Ownership
 * The view holds a reference to the dtensor whose memory it is, so it stays valid after
 * tsr_dtensor_destroy() of the parent. Memory that the caller lent to the parent
 * (tsr_dtensor_from_local()) must outlive the view too. A view of a view refers to the same memory.
 *
 * @par Writing
 * What is written to a view is written to its parent, and the other way round. A view whose
 * elements overlap (tsr_tensor_overlaps()) can only be read. tsr_redistribute_in_place() of the
 * parent changes what the elements mean, which the view does not follow.
 *
 * TSR_ERROR_ARGUMENT: `local` does not fit the layout's part for this rank, is on another device or
 * of another dtype than the parent, or has elements outside of the parent's local tensor.
 */
TSR_API tsr_status tsr_dtensor_view(const tsr_dtensor *parent, const tsr_tensor *local,
                                    const tsr_layout *layout, tsr_dtensor **out);

/** Adds a reference and returns `dtensor`. Does not communicate. */
TSR_API tsr_dtensor *tsr_dtensor_retain(tsr_dtensor *dtensor);

/**
 * Gives one reference back; NULL is fine. Does not communicate. The last one frees the memory,
 * unless it is the caller's. On the host it goes to the context, which keeps large blocks for new
 * dtensors (tsr_context_options.kept_bytes); on a device it is freed once the device has done all
 * its work.
 */
TSR_API void tsr_dtensor_destroy(tsr_dtensor *dtensor);

/** The layout; borrowed. */
TSR_API const tsr_layout *tsr_dtensor_layout(const tsr_dtensor *dtensor);

/** This rank's local tensor as a view: borrowed, valid as long as the dtensor. A rank outside the
 * mesh gets shape {0} and no data. */
TSR_API tsr_tensor tsr_dtensor_to_local(const tsr_dtensor *dtensor);

/*
 * Errors of redistributions. If one rank's arguments are wrong, its peers get TSR_ERROR_PEER with
 * that rank and its sentence, and the communicator stays usable. There are two exceptions, in which
 * the rank returns alone and its peers are not told:
 *
 * - Its `x` (`dy`, x[0]) is NULL: it has no communicator to tell them over.
 * - It cannot say where to move to (any other argument but `out` is bad), and the mesh keeps a plan
 *   from x's layout by which ranks do not meet over the whole communicator. Such a plan moves
 *   nothing between ranks, or its mesh has only some of the ranks, or its executions tell peers
 *   nothing (TSR_COMM_UNCHECKED in sys/comm.h; messages of tensors on a device).
 */

/** Collective: the same tensor under other placements, in new contiguous memory. `placements` must
 * have as many entries as the mesh has dims: the array's length is not checked. Built on
 * tsr_redistribute_into(). The caller owns `*out`. */
TSR_API tsr_status tsr_redistribute(const tsr_dtensor *x, const tsr_placement *placements,
                                    tsr_dtensor **out);

/** Collective: tsr_redistribute() with the placements as text (placement.h), one per mesh dim:
 * "S(0),R". A text with more or fewer placements is refused, and so is one with more than 1024
 * numbers in its lists of sizes and blocks; errors in the text point at the character. */
TSR_API tsr_status tsr_redistribute_to(const tsr_dtensor *x, const char *placements,
                                       tsr_dtensor **out);

/**
 * Collective: writes `x` into `y`. Their layouts have the same global shape and dtype. On one mesh
 * they may share memory where tsr_plan_in_place() would allow it.
 *
 * The first call for a pair of layouts and a device plans, prepares, and keeps plan and workspace
 * in a bounded cache of the mesh; later calls allocate and plan nothing. Ranks change to another
 * device together. The kept workspace serves one stream after the other. To capture a graph, use
 * tsr_plan_execute(): what the mesh keeps may be evicted before the graph is replayed.
 *
 * @par Between meshes
 * x and y may be on different meshes, over one communicator or over several that were split off
 * one. The call is then collective over their nearest common communicator, which also keeps the
 * plans (tsr_comm_cache_statistics()) until tsr_comm_destroy(); all its ranks make the call, those
 * outside both meshes too. A rank that does not have the communicator of a mesh describes the mesh
 * over the common one, with the rank numbers there, and makes its dtensor, which is empty, on that.
 * Errors as above, with the common communicator in place of the mesh; a rank whose `y` is NULL does
 * not know it, and tells the ranks of x's communicator.
 */
TSR_API tsr_status tsr_redistribute_into(const tsr_dtensor *x, tsr_dtensor *y, tsr_stream stream);

/** Collective: tsr_redistribute_into() for `count` tensors that share one exchange, such as a
 * model's parameters: x[i] into y[i], all on one mesh and device. Shapes and dtypes may differ. The
 * plan is kept for these layouts in this order. No y may overlap another tensor. */
TSR_API tsr_status tsr_redistribute_batch(size_t count, const tsr_dtensor *const *x,
                                          tsr_dtensor *const *y, tsr_stream stream);

/** Collective: changes `x` itself to other placements, one per mesh dim, in its own memory.
 * TSR_ERROR_UNSUPPORTED: tsr_plan_in_place() is 0 for the move's plan. */
TSR_API tsr_status tsr_redistribute_in_place(tsr_dtensor *x, const tsr_placement *placements,
                                             tsr_stream stream);

/** Collective: the backward of tsr_redistribute(). Moves `dy`, in the gradient layout of the
 * forward's result, to the gradient layout of `x_layout` (tsr_layout_gradient()). The caller owns
 * `*dx`. */
TSR_API tsr_status tsr_redistribute_backward(const tsr_dtensor *dy, const tsr_layout *x_layout,
                                             tsr_dtensor **dx);

/** Collective: the whole tensor on every rank of the mesh: redistributes to Replicate on every mesh
 * dim. Read it with tsr_dtensor_to_local(). The caller owns `*out`. */
TSR_API tsr_status tsr_full_tensor(const tsr_dtensor *x, tsr_dtensor **out);

/**
 * Figures of a mesh's plan cache: calls that found their plan, calls that planned, plans held now.
 */
typedef struct tsr_cache_statistics {
    int64_t hits, misses, entries;
} tsr_cache_statistics;

/** This rank's figures since the mesh was made. Does not communicate. */
TSR_API tsr_cache_statistics tsr_mesh_cache_statistics(const tsr_mesh *mesh);

/** The same for the plans between meshes that a communicator keeps for tsr_redistribute_into(). */
TSR_API tsr_cache_statistics tsr_comm_cache_statistics(const tsr_comm *comm);

#ifdef __cplusplus
}
#endif

#endif
