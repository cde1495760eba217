/** What a mesh dim may do to the operands of a rule: the candidates of the cheapest layouts. Pure.
 * */
#ifndef TSR_OPS_RULES_CHOICES_H
#define TSR_OPS_RULES_CHOICES_H

#include "ops/rules/fitted.h"

typedef enum tsr_choice_kind {
    TSR_CHOICE_KEEP = 0,  /**< each operand has its own placement */
    TSR_CHOICE_REPLICATE, /**< all are Replicate */
    TSR_CHOICE_CUT,       /**< those that have the factor, or compound, are cut so */
    TSR_CHOICE_PASS       /**< some are Partial, the others Replicate */
} tsr_choice_kind;

typedef struct tsr_choice {
    tsr_choice_kind kind;
    int factor;
    tsr_placement placement; /**< of the factor as dim 0; or Partial */
    unsigned operands;       /**< by bits, those that are Partial */
} tsr_choice;

#define TSR_CHOICES 48

/** The choices of a mesh dim, in the order of preference; their number. */
int tsr_choices_list(const tsr_op_form *form, const tsr_layout *const *operands, int mesh_dim,
                     tsr_choice choices[TSR_CHOICES]);

/** The placements of an operand by a choice for each mesh dim. `*sayable` false: none says it. */
tsr_status tsr_choices_place(const tsr_op_form *form, const tsr_layout *const *operands, int operand,
                             const tsr_choice *const *chosen, tsr_cut_lists *lists, tsr_placement *out, bool *sayable);

#endif
