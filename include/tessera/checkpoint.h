/**
 * @file
 * Checkpoints that any mesh can read: a folder of safetensors files with an index, as models are
 * published. In libtessera-files (`pkg-config tessera-files`).
 *
 * Each rank writes the bytes that it owns, in any layout, and a load on other ranks, meshes and
 * layouts reads the bytes that it needs. A model's parameters, the states of its optimizer and
 * numbers such as the step are saved together.
 *
 * A folder has one checkpoint. A save writes new files beside those that are there, brings them to
 * the disk, and then renames a new index to model.safetensors.index.json, by which they become the
 * checkpoint; files of older checkpoints are removed last. So a crash at any moment leaves the last
 * checkpoint whole; what it left of a new one is removed by the next save. All ranks' paths lead to
 * the same folder, and one save at a time uses it.
 */
#ifndef TESSERA_CHECKPOINT_H
#define TESSERA_CHECKPOINT_H

#include <tessera/safetensors.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A number of a checkpoint, such as a step, a seed or a word of a random key (cast to int64_t). It
 * is stored as text in the metadata. */
typedef struct tsr_checkpoint_number {
    const char *key; /**< UTF-8 */
    int64_t value;   /**< tsr_checkpoint_load() sets it */
} tsr_checkpoint_number;

/** The shape under which a dtensor of one dim is stored: it holds the elements of a tensor, in
 * row-major order, and may be cut in the midst of rows. */
typedef struct tsr_checkpoint_view {
    const char *name;     /**< of the dtensor */
    int ndim;             /**< at least 1 */
    const int64_t *shape; /**< `ndim` sizes, with as many elements */
} tsr_checkpoint_view;

/**
 * Options of tsr_checkpoint_save() and tsr_checkpoint_start(). What they point to is borrowed for
 * the call.
 *
 * With `dcp`, the files are those of PyTorch's torch.distributed.checkpoint, by its
 * HuggingFaceStorageWriter with save_distributed: one file a rank, with the rank's boxes, and no
 * index. The folder must be new or empty, and each shard one box.
 */
typedef struct tsr_checkpoint_save_options {
    size_t size;         /**< sizeof(tsr_checkpoint_save_options) */
    int64_t shard_bytes; /**< a file holds tensors of at most so many bytes, or one larger tensor;
                              0: 5 GB */
    size_t metadata_count;
    const tsr_safetensors_text *metadata; /**< texts, in the metadata of each file */
    size_t number_count;
    const tsr_checkpoint_number *numbers; /**< their keys differ from those of the texts */
    int dcp;                              /**< 1: PyTorch's form; else 0 */
    size_t view_count;
    const tsr_checkpoint_view *views; /**< of dtensors that hold tensors of another shape; not with
                                           `dcp` */
} tsr_checkpoint_save_options;

/** Files of 5 GB, no metadata. */
#define TSR_CHECKPOINT_SAVE_OPTIONS_INIT                                                           \
    {                                                                                              \
        sizeof(tsr_checkpoint_save_options), 0, 0, NULL, 0, NULL, 0, 0, NULL                       \
    }

/**
 * Collective over `comm`: saves `count` dtensors, at least one, all over `comm`, to `folder`, which
 * is made if it is not there. Each rank writes what it owns (tsr_dtensor_write_as()), so that any
 * layout can be saved. Of tensors that ranks have in short runs they exchange parts first, so that
 * each writes long runs; terms of a Partial are reduced first. Both take new memory, of one tensor
 * at a time. `options` may be NULL.
 *
 * All ranks give the same arguments, in any order of the tensors. A failure of one rank is told to
 * all, and leaves the folder's checkpoint as it was; or the new one is there, whole, if only
 * bringing its name to the disk failed. TSR_ERROR_ARGUMENT: a name or key comes twice or is not
 * UTF-8, ranks differ, a dtensor is over another communicator, a view does not fit; for `dcp` also
 * a view, and a shard that is not one box. TSR_ERROR_UNSUPPORTED: the format lacks a dtype, or a
 * conversion as of tsr_dtensor_write_as(). TSR_ERROR_IO: a file cannot be written, or the folder
 * has a model.safetensors, which readers prefer to an index. A rank whose `comm` is NULL returns
 * alone.
 */
TSR_API tsr_status tsr_checkpoint_save(tsr_comm *comm, const char *folder, size_t count,
                                       const tsr_safetensors_tensor *tensors,
                                       const tsr_checkpoint_save_options *options);

/** A save that goes on. */
typedef struct tsr_checkpoint_saving tsr_checkpoint_saving;

/**
 * Collective: tsr_checkpoint_save() that returns when what this rank writes is copied to memory. A
 * thread writes it, and brings it to the disk, without communication, while the caller changes the
 * dtensors and communicates. `*out` is for tsr_checkpoint_finish(), before which there is no new
 * checkpoint; `comm` must live until then. Errors as there; after one, nothing is to be finished.
 */
TSR_API tsr_status tsr_checkpoint_start(tsr_comm *comm, const char *folder, size_t count,
                                        const tsr_safetensors_tensor *tensors,
                                        const tsr_checkpoint_save_options *options,
                                        tsr_checkpoint_saving **out);

/** Collective: sets `*written` to 1, on all ranks, if all ranks' threads have written or failed to,
 * so that tsr_checkpoint_finish() does not wait for them; else to 0. Does not wait for them itself.
 * NULL as `saving` is refused on this rank alone. */
TSR_API tsr_status tsr_checkpoint_test(const tsr_checkpoint_saving *saving, int *written);

/** Collective: waits for the thread, makes what it wrote the folder's checkpoint, and frees
 * `saving`, also after an error. Any rank's error, of its thread too, is told to all and leaves the
 * last checkpoint. NULL is refused on this rank alone. */
TSR_API tsr_status tsr_checkpoint_finish(tsr_checkpoint_saving *saving);

/** Elements of a dtensor that are to come from a tensor of a checkpoint. */
typedef struct tsr_checkpoint_source {
    /** Of the stored tensor. With one `*`, which stands for the index along dim 0 of the dtensor,
     * there is one for each index, with one dim less: "experts.*.up.weight". */
    const char *name;
    int64_t begin, end; /**< the indices along the map's `dim` to read; both 0: all */
    int64_t slice;      /**< if the stored tensor has one dim more than it should: the index along
                             its dim 0 to read */
} tsr_checkpoint_source;

/** How a dtensor is made of stored tensors with other names: fused, split, stacked or unstacked. */
typedef struct tsr_checkpoint_map {
    const char *name; /**< of a target */
    int dim;          /**< of the dtensor, along which the sources follow one another */
    size_t count;
    const tsr_checkpoint_source *sources;
} tsr_checkpoint_map;

/** Options of tsr_checkpoint_load(). What they point to is borrowed for the call. */
typedef struct tsr_checkpoint_load_options {
    size_t size; /**< sizeof(tsr_checkpoint_load_options) */
    size_t map_count;
    const tsr_checkpoint_map *map; /**< of targets that the files have under other names */
    size_t number_count;
    tsr_checkpoint_number *numbers; /**< each key's value is set */
    int64_t *bytes_read; /**< where not NULL, gets the bytes of elements that this rank read */
    size_t view_count;
    const tsr_checkpoint_view *views; /**< of targets that hold tensors of another shape, to which
                                           `map` then refers */
} tsr_checkpoint_load_options;

/** Names as they are, no numbers. */
#define TSR_CHECKPOINT_LOAD_OPTIONS_INIT                                                           \
    {                                                                                              \
        sizeof(tsr_checkpoint_load_options), 0, NULL, 0, NULL, NULL, 0, NULL                       \
    }

/**
 * Collective over `comm`: reads tensors of a checkpoint into `count` dtensors that exist, all over
 * `comm`, of any mesh and layout. `folder` has an index, a model.safetensors, or safetensors files
 * alone, such as PyTorch's torch.distributed.checkpoint writes with its boxes (DCP_SHARDING_INFO);
 * it may also be a file. Each rank reads only what it owns, as tsr_distribute_file_boxes_into()
 * does, and floating types are converted, rounding once. `options` may be NULL.
 *
 * Before any element is changed, all ranks check that each element of each dtensor lies in a file,
 * exactly once, and that all ranks see the same files. A failure of one rank is told to all; if a
 * file cannot be read later, the dtensors' elements are undefined. TSR_ERROR_ARGUMENT: the files
 * lack a tensor, a part of it, or a number; a shape differs; a view does not fit; what
 * tsr_safetensors_open() refuses. TSR_ERROR_UNSUPPORTED: the folder has `.distcp` files of PyTorch,
 * which are Python pickles; or a conversion as of tsr_distribute_file(). A rank whose `comm` is
 * NULL returns alone.
 */
TSR_API tsr_status tsr_checkpoint_load(tsr_comm *comm, const char *folder, size_t count,
                                       const tsr_safetensors_target *targets,
                                       const tsr_checkpoint_load_options *options);

#ifdef __cplusplus
}
#endif

#endif
