/** Layouts without their context's memory: what a rank that has none left still knows of a call. */
#ifndef TSR_OPS_ROWS_SHADOW_H
#define TSR_OPS_ROWS_SHADOW_H

#include "ops/rows/row.h"

/** The most layouts of a call: of operands, and a gradient or a result. */
#define TSR_OP_SHADOW_LAYOUTS (TSR_OP_MOST_OPERANDS + 1)

/** Copies of a call's layouts, on an abstract mesh of a context of its own, whose memory is the C
 * library's. */
typedef struct tsr_op_shadow {
    tsr_context *context;
    tsr_mesh *mesh;
    tsr_layout *copies[TSR_OP_SHADOW_LAYOUTS]; /**< NULL: left out */
} tsr_op_shadow;

/** Copies `count` layouts, of which one at least is not NULL. The caller clears `out`, also after
 * an error. TSR_ERROR_ARGUMENT: they are not on one mesh. */
tsr_status tsr_op_shadow_make(int count, const tsr_layout *const *layouts, tsr_op_shadow *out);

/** Copies those of a case's operands, on which `copied` is the case, and behind them, at
 * TSR_OP_MOST_OPERANDS, that of a gradient, which may be NULL. Else as tsr_op_shadow_make(). */
tsr_status tsr_op_shadow_case(const tsr_op_case *c, const tsr_layout *gradient, tsr_op_shadow *out,
                              tsr_op_case *copied);

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
