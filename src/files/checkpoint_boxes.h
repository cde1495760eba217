/** The tensors of a checkpoint's files, and which boxes of them make up a dtensor. */
#ifndef TSR_FILES_CHECKPOINT_BOXES_H
#define TSR_FILES_CHECKPOINT_BOXES_H

#include <tessera/checkpoint.h>

#include <stdbool.h>

/** What says the shape of a tensor in files: the dtensor's layout, or a view. */
typedef struct tsr_stored_shape {
    int ndim;
    const int64_t *sizes; /**< borrowed */
} tsr_stored_shape;

/** Sets `*out` to the shape under which the dtensor `name` is stored. TSR_ERROR_ARGUMENT: its view
 * does not fit. `call` begins sentences. */
tsr_status tsr_checkpoint_shape(const char *call, size_t count, const tsr_checkpoint_view *views, const char *name,
                                const tsr_layout *layout, tsr_stored_shape *out);

/** Refuses views when the list is NULL, and a view of none of `names`, which `name_of` gives. */
tsr_status tsr_checkpoint_check_views(const char *call, size_t view_count, const tsr_checkpoint_view *views,
                                      size_t count, const char *(*name_of)(const void *user, size_t index),
                                      const void *user);

/** A box of a tensor in a file. */
typedef struct tsr_stored_box {
    const tsr_safetensors_entry *entry; /**< borrowed; its shape is the box's */
    bool part;                          /**< the tensor may have others, so that its shape is not known */
    int64_t begin[TSR_MAX_DIMS];        /**< in the tensor */
} tsr_stored_box;

/** The headers of a checkpoint. */
typedef struct tsr_catalog {
    const char *call;   /**< the public call, for error sentences */
    const char *folder; /**< borrowed */
    size_t file_count;
    tsr_safetensors **files; /**< one for an index */
    size_t count;
    tsr_stored_box *boxes; /**< sorted by name */
} tsr_catalog;

/** Reads the headers. tsr_catalog_close() follows, also after an error. */
tsr_status tsr_catalog_open(const char *call, const char *folder, tsr_catalog *out);

/** Frees what was read; a zeroed one is fine. */
void tsr_catalog_close(tsr_catalog *catalog);

/** The metadata's text for `key`; NULL: the metadata lacks the key. */
const char *tsr_catalog_metadata(const tsr_catalog *catalog, const char *key);

/** The boxes that make up the dtensor of a target, which is stored under `shape`, by `map`, or by
 * its name if that is NULL. They are checked. The caller frees `*out`. */
tsr_status tsr_catalog_find(const tsr_catalog *catalog, const tsr_safetensors_target *target,
                            const tsr_stored_shape *shape, const tsr_checkpoint_map *map, size_t *count,
                            tsr_file_box **out);

#endif
