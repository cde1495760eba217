/** Whether placements of operands fit a rule, and the placements of results. Pure: it depends on
 * placements, sizes and the mesh alone, so every rank comes to the same answer. */
#ifndef TSR_OPS_RULES_FIT_H
#define TSR_OPS_RULES_FIT_H

#include "ops/rules/form.h"

/** Why operands do not fit. */
typedef enum tsr_op_misfit_kind {
    TSR_OP_FITS = 0,
    TSR_OP_CUT_ONE,        /**< a dim of size 1 is cut, although the operand is repeated along it */
    TSR_OP_CUT_WHOLE,      /**< a factor is cut that must be whole */
    TSR_OP_CUT_UNLIKE,     /**< both operands have the factor that is cut, and cut it in two ways */
    TSR_OP_CUT_ELSEWHERE,  /**< a mesh dim cuts a factor of `other`, and another one of `operand` */
    TSR_OP_PARTIAL_CUT,    /**< `operand` is Partial on a mesh dim that cuts `other` */
    TSR_OP_PARTIAL_ALONE,  /**< no mark lets the Partial of `operand` pass */
    TSR_OP_PARTIAL_BESIDE, /**< `operand` is Partial, but `other`, with which it is linear, is not */
    TSR_OP_PARTIAL_BOTH,   /**< both are Partial, and the op is linear in each by itself */
    TSR_OP_PARTIAL_MIXED,  /**< results would be Partial by ops that do not go together */
    TSR_OP_ADDED,          /**< an added operand is not cut as the result is */
    TSR_OP_UNPLACED        /**< no placement says how a mesh dim cuts the result (place.h) */
} tsr_op_misfit_kind;

typedef struct tsr_op_misfit {
    tsr_op_misfit_kind kind;
    int operand, other;                 /**< other -1: only one operand is concerned */
    int mesh_dim;                       /**< where they do not fit */
    tsr_placement wanted[TSR_MAX_DIMS]; /**< TSR_OP_ADDED: the placements that fit */
} tsr_op_misfit;

/** One operand's placements for each of the rule's operands; NULL: it is left out. */
typedef const tsr_placement *tsr_op_placements[TSR_OP_OPERANDS];

/** Finds the placements of all results, or why there are none (`misfit->kind` is not TSR_OP_FITS).
 * Lists of sizes and blocks are borrowed from `operands`. On mesh dims of size 1 results are
 * Replicate. `*exchanged` gets the mesh dims, by bits, that cut factors marked "exchange". The
 * status is an error only for lack of memory or beyond the context's bounds. */
tsr_status tsr_op_fit(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                      tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS], unsigned *exchanged, tsr_op_misfit *misfit);

#endif
