/** Ids: integers in an operand that name positions along a dim of a table, which may be cut. */
#ifndef TSR_OPS_KERNELS_INDEXING_IDS_H
#define TSR_OPS_KERNELS_INDEXING_IDS_H

#include "ops/kernels/call.h"

#include <stdbool.h>

/** Places of ids that this rank does not have. */
#define TSR_ID_ELSEWHERE (-1)
#define TSR_ID_SKIPPED   (-2)
#define TSR_ID_BEYOND    (-3) /**< no rank has it */

/** The most ids that are read at a time. */
#define TSR_IDS_CHUNK 256

/** The ids of one operand. A plain value; set what follows `part` after the functions below. */
typedef struct tsr_ids {
    const tsr_kernel_call *call;
    const char *name; /**< the operand's, for errors */
    const tsr_tensor *tensor;
    const tsr_layout *layout; /**< the operand's */
    const tsr_layout *table;  /**< NULL: positions are those of a dim that is whole */
    int dim;                  /**< of the table */
    int64_t size;             /**< of this dim: ids are below it */
    bool is_cut;
    int64_t part;    /**< this rank's, as tsr_layout_owners() numbers them */
    bool skips;      /**< an id may be `skipped` */
    int64_t skipped; /**< the id that stands for none */
    bool passes;     /**< ids from `size` on are TSR_ID_BEYOND */
} tsr_ids;

/** The ids of operand `operand` in dim `dim` of `table`. */
tsr_ids tsr_ids_of_table(const tsr_kernel_call *call, int operand, const char *name, const tsr_layout *table, int dim);

/** The ids of operand `operand`, below `size`, in a dim that is whole. */
tsr_ids tsr_ids_below(const tsr_kernel_call *call, int operand, const char *name, int64_t size);

/** The number of ids in this rank's local tensor. */
int64_t tsr_ids_count(const tsr_ids *ids);

/** Places in the local table of `count` ids, TSR_IDS_CHUNK at most, from `first` on in row-major
 * order of the local operand. TSR_ERROR_ARGUMENT: an id is out of range; the sentence names it, the
 * rank and the id's index in the whole operand. */
tsr_status tsr_ids_read(const tsr_ids *ids, int64_t first, int64_t count, int64_t *places);

/** Indices in the whole tensor of all `count` positions that this rank has along a dim. */
tsr_status tsr_ids_positions(const tsr_layout *layout, const int64_t *coordinate, int dim, int64_t count, int64_t *to);

#endif
