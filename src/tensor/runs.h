/** The runs of a rank's shard that are contiguous in the whole tensor, as files hold it. */
#ifndef TSR_TENSOR_RUNS_H
#define TSR_TENSOR_RUNS_H

#include "placement/layout.h"

/** Told of `count` elements that are contiguous in the row-major tensor, from its element `first`
 * on. */
typedef tsr_status tsr_visit_run(void *arg, int64_t first, int64_t count);

/** Calls `visit` for each run of the shard at `coordinate`, in the order of the shard's elements,
 * until it fails; returns its status. Runs may be empty. */
tsr_status tsr_visit_runs(const tsr_layout *layout, const int64_t *coordinate, tsr_visit_run *visit, void *arg);

/** tsr_visit_runs() of the elements that the rank at `coordinate` has of each row, an index of dim
 * 0: runs within one row, from its element `first` on. The layout has a dim. */
tsr_status tsr_visit_row_runs(const tsr_layout *layout, const int64_t *coordinate, tsr_visit_run *visit, void *arg);

/** Sets `*out` to the byte behind a tensor of the layout's shape, of elements of `element_bytes`,
 * that begins at byte `offset`. False: it is beyond 2^63 - 1. */
bool tsr_file_end(const tsr_layout *layout, size_t element_bytes, int64_t offset, int64_t *out);

/** True if files of `from` are read as `to`: if they are equal, or both are floating types. */
bool tsr_file_converts(tsr_dtype from, tsr_dtype to);

#endif
