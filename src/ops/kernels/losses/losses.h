/** The cross-entropy of local logits, and the parts of it that products with logits share. */
#ifndef TSR_OPS_KERNELS_LOSSES_LOSSES_H
#define TSR_OPS_KERNELS_LOSSES_LOSSES_H

#include "ops/kernels/indexing/ids.h"
#include "ops/kernels/losses/losses_kernels.h"

#include <tessera/losses.h>

/** The rows, as `code` of a row names them. */
enum {
    TSR_CROSS_ENTROPY,                /**< logits, targets */
    TSR_CROSS_ENTROPY_GRADIENT,       /**< dout, logits, targets */
    TSR_LINEAR_CROSS_ENTROPY,         /**< x, w, targets */
    TSR_LINEAR_CROSS_ENTROPY_GRADIENT /**< dout, x, w, targets */
};

/** The attributes of all four rows, by place. */
enum { TSR_LOSS_REDUCTION, TSR_LOSS_IGNORE_INDEX, TSR_LOSS_LABEL_SMOOTHING };

/** The times that ranks meet: after the scan of logits, and to add up rows that are kept. */
#define TSR_LOSS_EXCHANGES 2

/** What is known of one row. */
typedef struct tsr_loss_row {
    tsr_loss_sums sums; /**< of this rank's classes, after the exchange of all but for the total */
    double picked;      /**< the logit of the target; 0 on ranks that do not have it */
    int64_t target;     /**< its class in the local logits, TSR_ID_ELSEWHERE or TSR_ID_SKIPPED */
} tsr_loss_row;

/** A call. */
typedef struct tsr_loss {
    const tsr_kernel_call *call;
    const tsr_losses_kernels *kernels;
    tsr_ids targets;
    tsr_loss_reduction reduction; /**< the attribute has its words in this order */
    double smoothing;
    bool counts;                  /**< the mean divides by a number of rows that data decides */
    bool alone;                   /**< this rank has all classes */
    int64_t classes, own_classes; /**< of the whole vocabulary, and of this rank's part */
    int64_t row_count;            /**< of this rank */
    tsr_loss_row *rows;           /**< at the beginning of the workspace */
} tsr_loss;

/** Where the classes of a row are. */
typedef struct tsr_loss_place {
    int operand; /**< the logits, or the weights */
    int targets; /**< the operand with the targets */
    bool first;  /**< classes are its first dim, not its last */
} tsr_loss_place;

/** By `code`. */
const tsr_loss_place *tsr_loss_place_of(int code);

/** The mesh dims, by bits, that cut the classes of a layout whose first or last dim they are. */
unsigned tsr_loss_cuts(const tsr_layout *layout, bool first);

/** True if rows may be ignored, so that the mean divides by a number that data decides. */
bool tsr_loss_counts(const tsr_attribute *attributes);

/** What an op's kernel does with logits: all rows are scanned, or their slopes are made.
 * `rows_kept` is the number by which a mean divides. */
typedef tsr_status tsr_loss_scanner(tsr_loss *loss);
typedef tsr_status tsr_loss_sloper(tsr_loss *loss, double rows_kept);

/** All stages of a loss. */
tsr_status tsr_loss_forward(const tsr_kernel_call *call, tsr_loss_scanner *scan);

/** All stages of a gradient. Where a rank has all classes nothing is scanned before slopes are
 * made, so that each row passes the caches once. */
tsr_status tsr_loss_backward(const tsr_kernel_call *call, tsr_loss_scanner *scan, tsr_loss_sloper *slope);

/** The loss of a call, as tsr_loss_forward() gives it to functions. */
tsr_loss tsr_loss_of(const tsr_kernel_call *call);

/** Scans the logits of a row, without gaps, in f64 or f32. */
void tsr_loss_scan_row(const tsr_loss *loss, int64_t row, const void *logits, tsr_dtype computed);

/** The factor of a row's slopes: its gradient, or that of the whole loss. */
double tsr_loss_scale(const tsr_loss *loss, int64_t row, double rows_kept);

/** Makes slopes of a row's `count` logits from class `first` on: (softmax - the target's
 * distribution) * scale. `to` may be `logits`. */
void tsr_loss_slope_row(const tsr_loss *loss, int64_t row, const void *logits, void *to, int64_t first, int64_t count,
                        double scale, tsr_dtype computed);

/** The ops cross_entropy and cross_entropy_gradient. */
tsr_status tsr_cross_entropy_run(const tsr_kernel_call *call);
tsr_status tsr_cross_entropy_gradient_run(const tsr_kernel_call *call);

/** Bytes of a record, and of the rows in the workspace; for all four rows of losses. */
int64_t tsr_loss_record_bytes(const tsr_kernel_call *call);
int64_t tsr_loss_workspace_bytes(const tsr_kernel_call *call);

#endif
