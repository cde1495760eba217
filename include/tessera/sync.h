/**
 * @file
 * Weights from one mesh to another, again and again: the parameters of a trainer to a server, which
 * has other ranks, layouts, dtypes and names. All tensors share one exchange, in which each byte
 * goes from a rank that has it to a rank that wants it; no rank gathers a tensor.
 * docs/howto/sync.md has a program.
 *
 * @par What a sync does
 * Each destination gets the elements of its source, as tsr_redistribute_into() would move them,
 * converted to its dtype with one rounding to nearest even; equal dtypes keep every bit. A dtype
 * that is not wider than the source's is taken before elements are sent, so that fewer bytes
 * travel; a wider one after they have arrived. A source with Partial is reduced in its own dtype
 * first, and converted after it has arrived.
 *
 * @par Ranks
 * A rank may be in meshes of sources, of destinations, of both, or of none. Calls marked collective
 * are made by all ranks of the communicator that tsr_sync_create() is given.
 */
#ifndef TESSERA_SYNC_H
#define TESSERA_SYNC_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A sync, kept for many runs. One thread uses it at a time. */
typedef struct tsr_sync tsr_sync;

/** A source or destination. A plain value; both are borrowed. */
typedef struct tsr_sync_tensor {
    const char *name; /**< 1 to 255 characters, once among the sources or the destinations */
    const tsr_layout *layout;
} tsr_sync_tensor;

/**
 * A rule of names: the destination called `to` gets the source called `from`. Each `*` stands for
 * one or more characters, dots too, as few as it can from the left. Both have the same number of
 * them, and the first `*` of `from` is the text of the first of `to`. {"model.*", "*"} takes a
 * prefix off. Texts are borrowed, 1 to 255 characters.
 */
typedef struct tsr_sync_rule {
    const char *from, *to;
} tsr_sync_rule;

/** Options of tsr_sync_create(). */
typedef struct tsr_sync_options {
    size_t size;                /**< sizeof(tsr_sync_options) */
    size_t rule_count;          /**< of `rules`; 0: names are equal on both sides */
    const tsr_sync_rule *rules; /**< the first whose `to` matches the name of a destination says its
                                     source; without one, the source has the same name */
    tsr_device device;          /**< on which this rank's tensors lie */
    tsr_mode mode;              /**< as in tsr_plan_options */
    size_t max_workspace;       /**< as in tsr_plan_options; memory in which elements are converted
                                     comes on top (tsr_sync_memory()) */
} tsr_sync_options;

/** The same names on both sides, on the host, in direct mode where the engine has it. */
#define TSR_SYNC_OPTIONS_INIT                                                                      \
    {                                                                                              \
        sizeof(tsr_sync_options), 0, TSR_NULL, {TSR_NULL, 0}, TSR_MODE_DIRECT, 0                   \
    }

/**
 * Collective over `comm`, the nearest communicator from which those of all meshes descend: pairs
 * the `destination_count` destinations with sources by name, plans, and allocates what runs need.
 * One source may serve several destinations; one that serves none is left alone. The layouts are
 * retained, and names and arrays are read during the call. All ranks give the same names, shapes,
 * dtypes and rules; a rank without a mesh's own communicator describes the mesh over `comm`, as for
 * tsr_redistribute_into(). `options` may be NULL. The caller owns `*out`.
 *
 * @par Errors
 * All ranks get one; that of a rank that alone is at fault is TSR_ERROR_PEER on the others.
 * TSR_ERROR_ARGUMENT: there is no destination; a name comes twice, or is empty or too long; a rule
 * has other stars on its sides; a destination has no source; or shapes differ.
 * TSR_ERROR_UNSUPPORTED: dtypes differ and are not both among f64, f32, f16, bf16, f8e4m3 and
 * f8e5m2. Otherwise as tsr_plan_create() and tsr_plan_prepare(). A rank whose `comm` is NULL
 * returns alone.
 */
TSR_API tsr_status tsr_sync_create(tsr_comm *comm, size_t source_count,
                                   const tsr_sync_tensor *sources, size_t destination_count,
                                   const tsr_sync_tensor *destinations,
                                   const tsr_sync_options *options, tsr_sync **out);

/** Frees a sync, with what it retains; NULL is fine. Not collective. Runs must be finished, on a
 * device its streams too. */
TSR_API void tsr_sync_destroy(tsr_sync *sync);

/** The number of the source, in the list of tsr_sync_create(), that destination `destination` gets.
 * TSR_ERROR_ARGUMENT: there is no such destination. */
TSR_API tsr_status tsr_sync_source_of(const tsr_sync *sync, size_t destination, size_t *source);

/** The plan of the exchange, a move for each destination; borrowed. It tells the bytes that this
 * rank sends and receives, and explains itself (explain.h). */
TSR_API const tsr_plan *tsr_sync_plan(const tsr_sync *sync);

/** Bytes of this rank's memory that the sync keeps: for elements that are converted, and the plan's
 * workspace. */
TSR_API size_t tsr_sync_memory(const tsr_sync *sync);

/**
 * Collective over the ranks of all meshes, which give the same sync: writes the sources into the
 * destinations, in the order of `stream`. Both arrays are in the order of the lists of
 * tsr_sync_create(), and dtensors have layouts equal to those there. An entry may be NULL on a rank
 * outside its mesh, and where no destination wants the source; an array may be NULL where all of
 * its entries may. Ranks outside all meshes return at once. Strides are free; tensors that are
 * converted along gaps take a call of the device for each part without gaps. No destination may
 * overlap another tensor. It allocates and plans nothing. Runs use one stream, or the caller orders
 * them.
 *
 * If one rank's arguments are wrong, its peers get TSR_ERROR_PEER, under the conditions of
 * tsr_plan_execute(). TSR_ERROR_ARGUMENT: a tensor is missing, or has another layout or device;
 * otherwise as for tsr_plan_execute(). After an error destinations are undefined.
 */
TSR_API tsr_status tsr_sync_run(tsr_sync *sync, const tsr_dtensor *const *sources,
                                tsr_dtensor *const *destinations, tsr_stream stream);

/**
 * The first half of tsr_sync_run(); tsr_sync_finish() is the second. In between, `comm` serves no
 * other call, sources must not be written, and destinations are not to be touched; both must exist.
 * Other communicators serve, such as those of the meshes (tsr_mesh_split()). Peers may call both
 * halves or tsr_sync_run(). A rank that is refused here meets its peers first, to tell them, and
 * has nothing to finish. TSR_ERROR_STATE: the sync is already started.
 */
TSR_API tsr_status tsr_sync_start(tsr_sync *sync, const tsr_dtensor *const *sources,
                                  tsr_dtensor *const *destinations, tsr_stream stream);

/** The second half of tsr_sync_start(). TSR_ERROR_STATE: the sync was not started. */
TSR_API tsr_status tsr_sync_finish(tsr_sync *sync);

#ifdef __cplusplus
}
#endif

#endif
