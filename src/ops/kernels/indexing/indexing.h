/** Ops that read or add elements of a table at positions that ids name. */
#ifndef TSR_OPS_KERNELS_INDEXING_INDEXING_H
#define TSR_OPS_KERNELS_INDEXING_INDEXING_H

#include "ops/kernels/call.h"

/** The ops, as `code` of a row names them. */
enum {
    TSR_EMBEDDING,             /**< weight, ids */
    TSR_EMBEDDING_GRADIENT,    /**< dout, a tensor like weight, ids */
    TSR_INDEX_SELECT,          /**< x, index */
    TSR_INDEX_SELECT_GRADIENT, /**< dout, a tensor like x, index */
    TSR_GATHER,                /**< x, index */
    TSR_GATHER_GRADIENT,       /**< dout, a tensor like x, index */
    TSR_SCATTER_ADD            /**< x, index, source */
};

/** The dim of a table that an op of `code` indexes; -1: the attribute names none. */
int tsr_indexing_dim(int code, const tsr_attribute *attributes, int ndim);

/** Reads whole slices of a table: embedding and index_select. Elements that this rank does not have
 * are -0, of integers 0. */
tsr_status tsr_indexing_read_slices(const tsr_kernel_call *call);

/** Reads one element for each id: gather. */
tsr_status tsr_indexing_read_elements(const tsr_kernel_call *call);

/** Adds slices, in ascending order of the positions of ids: the gradients of embedding and
 * index_select. */
tsr_status tsr_indexing_add_slices(const tsr_kernel_call *call);

/** Adds elements, in ascending order of ids' positions: scatter_add, and the gradient of
 * gather. */
tsr_status tsr_indexing_add_elements(const tsr_kernel_call *call);

/** Bytes for sums in f32 of narrow dtypes, or of a table with gaps, and for the whole index of each
 * position of an index that is shorter than its table. */
int64_t tsr_indexing_workspace_bytes(const tsr_kernel_call *call);

#endif
