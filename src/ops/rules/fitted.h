/** What fitting placements to a rule gives, or why they do not fit. */
#ifndef TSR_OPS_RULES_FITTED_H
#define TSR_OPS_RULES_FITTED_H

#include "ops/rules/express.h"
#include "ops/rules/form.h"

/** Why operands do not fit. */
typedef enum tsr_op_misfit_kind {
    TSR_OP_FITS = 0,
    TSR_OP_CUT_ONE,        /**< a dim of size 1 is cut, although the operand is repeated along it */
    TSR_OP_CUT_WHOLE,      /**< a factor is cut that must be whole */
    TSR_OP_CUT_ACROSS,     /**< a compound is cut otherwise than along one of its factors */
    TSR_OP_CUT_UNLIKE,     /**< both operands have the factor that is cut, and cut it in two ways */
    TSR_OP_CUT_ELSEWHERE,  /**< a mesh dim cuts a factor of `other`, and another one of `operand` */
    TSR_OP_CUT_UNSAYABLE,  /**< no placements can say how dim `dim` of result `result` is cut */
    TSR_OP_PARTIAL_CUT,    /**< `operand` is Partial on a mesh dim that cuts `other` */
    TSR_OP_PARTIAL_ALONE,  /**< no mark lets the Partial of `operand` pass */
    TSR_OP_PARTIAL_BESIDE, /**< `operand` is Partial, but `other`, with which it is linear, is not */
    TSR_OP_PARTIAL_BOTH,   /**< both are Partial, and the op is linear in each by itself */
    TSR_OP_PARTIAL_MIXED,  /**< results would be Partial by ops that do not go together */
    TSR_OP_UNPLACED,       /**< no placement says how a mesh dim cuts the result (place.h) */
    TSR_OP_ADDED           /**< an added operand is not cut as the result is */
} tsr_op_misfit_kind;

typedef struct tsr_op_misfit {
    tsr_op_misfit_kind kind;
    int operand, other;                 /**< other -1: only one operand is concerned */
    int mesh_dim;                       /**< where they do not fit */
    int factor;                         /**< TSR_OP_CUT_UNLIKE: what is cut */
    int result, dim;                    /**< TSR_OP_CUT_UNSAYABLE */
    tsr_placement wanted[TSR_MAX_DIMS]; /**< TSR_OP_ADDED: the placements that fit */
} tsr_op_misfit;

/** One operand's placements for each of the rule's operands; NULL: it is left out. */
typedef const tsr_placement *tsr_op_placements[TSR_OP_OPERANDS];

typedef struct tsr_op_fitted {
    tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS]; /**< lists belong to operands or `lists` */
    unsigned exchanged;                                  /**< mesh dims, by bits, that cut factors marked "exchange" */
    tsr_op_misfit misfit;
    tsr_cut_lists lists;
} tsr_op_fitted;

#endif
