/** Operands' placements by factor: what each mesh dim cuts, compounds divided. Pure. */
#ifndef TSR_OPS_RULES_EXPAND_H
#define TSR_OPS_RULES_EXPAND_H

#include "ops/rules/compound.h"
#include "ops/rules/fitted.h"

/** One operand's placements. On mesh dims of size 1 all is Replicate. */
typedef struct tsr_op_expanded {
    tsr_placement cut[TSR_MAX_DIMS]; /**< of a Shard: of the factor, or compound, as dim 0 */
    int factor[TSR_MAX_DIMS];        /**< of a Shard; TSR_OP_ONE: it cuts a dim that is repeated */
} tsr_op_expanded;

/**
 * Expands the placements of operands. A mesh dim that cuts a compound cuts one of its factors, or
 * the compound itself: where no tensor has a part of it and its factors have the same marks; or
 * where it is "positional", operands that have only a part are not cut along this mesh dim, results
 * that have only a part reduce or exchange the others, and the cuts of factors come first. Misfits:
 * TSR_OP_CUT_ACROSS.
 */
tsr_status tsr_op_expand_form(const tsr_op_form *form, const tsr_mesh *mesh, const tsr_op_placements operands,
                              tsr_cut_lists *lists, tsr_op_expanded out[TSR_OP_OPERANDS], tsr_op_misfit *misfit);

/** The marks of what `dims` lacks of a factor or compound; `*same` false: its factors differ in
 * them. */
tsr_op_marks tsr_op_lost_marks(const tsr_op_form *form, const tsr_op_dims *dims, int factor, bool *same);

/** A compound as a dim of a mesh. */
tsr_compound_dim tsr_op_compound_dim(const tsr_op_form *form, const tsr_mesh *mesh, int compound);

#endif
