/** A case without its context's memory: what a rank that has none left still knows of a call. */
#ifndef TSR_OPS_ROWS_SHADOW_H
#define TSR_OPS_ROWS_SHADOW_H

#include "ops/rows/row.h"

/** Copies of a case's layouts, on an abstract mesh of a context of its own, whose memory is the C
 * library's. */
typedef struct tsr_op_shadow {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_layout *copies[TSR_OP_MOST_OPERANDS], *gradient; /**< NULL: left out */
    const tsr_layout *operands[TSR_OP_MOST_OPERANDS];    /**< those of `c` */
    tsr_op_case c;
} tsr_op_shadow;

/** Copies a case, and the layout of a gradient, which may be NULL. The caller clears `out`, also
 * after an error. */
tsr_status tsr_op_shadow_make(const tsr_op_case *c, const tsr_layout *gradient, tsr_op_shadow *out);

void tsr_op_shadow_clear(tsr_op_shadow *shadow);

/** What a call of a case does. */
typedef struct tsr_op_outlook {
    tsr_op_inferred inferred;
    bool settles; /**< operands are redistributed first, and `inferred` is for them */
} tsr_op_outlook;

/** Finds what a call of a case does under its context's policy. Errors are those of the call. The
 * caller clears `out->inferred`, which is empty after an error. */
tsr_status tsr_op_foresee(const tsr_op_case *c, tsr_op_outlook *out);

#endif
