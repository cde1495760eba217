/** Shapes under which dtensors of one dim are stored. */
#ifndef TSR_FILES_CHECKPOINT_VIEWS_H
#define TSR_FILES_CHECKPOINT_VIEWS_H

#include <tessera/checkpoint.h>

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

#endif
