/** Layouts of results from layouts of operands, by a rule. Pure. */
#ifndef TSR_OPS_RULES_PROPAGATE_H
#define TSR_OPS_RULES_PROPAGATE_H

#include "ops/rules/form.h"

#include <tessera/context.h>

/** True if two meshes have the same ranks and dims, dims of size 1 too, over one communicator; an
 * abstract mesh goes with any. */
bool tsr_op_are_on_one_mesh(const tsr_mesh *a, const tsr_mesh *b);

/** True if two layouts are equal, on one mesh. */
bool tsr_op_are_layouts_equal(const tsr_layout *a, const tsr_layout *b);

/** What a rule gives for operands. */
typedef struct tsr_op_inferred {
    tsr_layout *results[TSR_OP_RESULTS]; /**< the caller owns each; NULL past the last */
    unsigned exchanged;                  /**< mesh dims, by bits, along which ranks meet inside the op */
} tsr_op_inferred;

/**
 * The layouts of a rule's results. Operands are one for each of the rule's; NULL: it is left out.
 *
 * TSR_ERROR_ARGUMENT: meshes, numbers of dims or sizes do not match; or the placements do not fit:
 * the sentence names op, operands and mesh dim, and layouts of operands that were tried and fit.
 */
tsr_status tsr_op_propagate_rule(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_op_shaping *shaping,
                                 const tsr_layout *const *operands, tsr_op_inferred *out);

/** What layouts of operands should be good for. */
typedef struct tsr_op_wish {
    const tsr_placement *const *results; /**< NULL, or for each result NULL or what it is moved to */
    tsr_policy policy;
    int64_t bytes;
} tsr_op_wish;

/** tsr_op_find_cheapest() for a rule; operands are as for tsr_op_propagate_rule(). */
tsr_status tsr_op_settle_rule(const tsr_op_rule *rule, const tsr_op_names *names, const tsr_op_shaping *shaping,
                              const tsr_layout *const *operands, const tsr_op_wish *wish,
                              tsr_layout *out[TSR_OP_OPERANDS], bool *found);

/** Frees the layouts, and makes them NULL. */
void tsr_op_inferred_clear(tsr_op_inferred *inferred);

#endif
