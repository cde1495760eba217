/** Placements of results by a rule and, where the factor marked "permute" is cut, by how a row puts
 * results together along it. */
#ifndef TSR_OPS_RULES_PLACE_H
#define TSR_OPS_RULES_PLACE_H

#include "ops/rules/fit.h"

/**
 * How results lie along the factor marked "permute": pieces of operands lie in a tensor, the
 * result or an operand.
 *
 * slice: one piece of the operand is the whole result. concat: each operand is a piece. The
 * gradient of a slice: a piece of an operand that the result is like (`like`) is the whole first
 * operand (`target`).
 */
typedef struct tsr_op_placing {
    int count;
    struct tsr_op_part {
        int operand; /**< that it comes from; in its dim elements start, start + step, .. below end */
        int64_t size, start, end, step, offset; /**< `size` of its dim; `offset` in the tensor in which it lies */
    } parts[TSR_OP_OPERANDS];
    int64_t size; /**< of the dim in which they lie */
    int target;   /**< the operand in which they lie; -1: the result */
    int like;     /**< the operand whose cuts the result has, if the parts match; -1: they are found */
} tsr_op_placing;

/** tsr_op_fit(), with `placing` NULL or for the only result. Lists of results are borrowed from
 * `operands`, or lie in `*numbers`, which the caller gives to tsr_release() with the mesh's
 * context. */
tsr_status tsr_op_place(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                        const tsr_op_placing *placing, tsr_placement results[TSR_OP_RESULTS][TSR_MAX_DIMS],
                        unsigned *exchanged, int64_t **numbers, tsr_op_misfit *misfit);

#endif
