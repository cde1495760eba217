/**
 * Sharding rules as data: what an op's operands may look like on a mesh, and what its result is then.
 *
 * A rule is a factor string in the style of an einsum, "linear: b k, o k + o -> b o": operands apart by commas, one letter a tensor dim,
 * and `b` for all the leading (batch) dims that are left. Factors that the result lacks are contracted, so the op must be linear in each of
 * its operands. An operand after `+` is added to the product. On every mesh dim
 *
 *   - a factor that is sharded must be cut alike in all operands that have it, and shards the result; contracted, it yields Partial(sum);
 *   - a Partial(sum) or Partial(avg) operand among replicated ones passes its Partial on;
 *   - an added operand is cut as the result is, and replicated elsewhere, Partial dims of the result included.
 *
 * Anything else is refused with the layout that would work. All is pure, and decided from the layouts alone, so the same on every rank.
 */
#ifndef TSR_OPS_RULE_H
#define TSR_OPS_RULE_H

#include <stdbool.h>
#include <tessera/layout.h>

/** Operands that a rule may have, added ones included. */
#define TSR_RULE_OPERANDS 3

typedef struct tsr_rule {
    const char *caller;                   /**< what errors begin with: "tsr_linear" */
    const char *factors;                  /**< the factor string */
    const char *names[TSR_RULE_OPERANDS]; /**< what errors call the operands */
    int pivot;                            /**< the operand that stays as it is when others have to be redistributed */
} tsr_rule;

/** The result's layout for as many operands as the rule has; the caller owns `*out`. `dtype` is the result's; NULL: the operands', or f32
 * where these are several of f32, f16 and bf16. TSR_ERROR_ARGUMENT: meshes, dtypes, ranks or sizes that do not match, or placements that
 * the rule does not take. */
tsr_status tsr_rule_apply(const tsr_rule *rule, const tsr_layout *const *operands, const tsr_dtype *dtype, tsr_layout **out);

/** True if the meshes are over one communicator, or one of them is abstract. */
bool tsr_rule_is_of_one_comm(const tsr_mesh *a, const tsr_mesh *b);

/** Operands `first` and `other` are on equal meshes over one communicator. TSR_ERROR_ARGUMENT names both. */
tsr_status tsr_rule_check_mesh(const char *caller, const char *first_name, const tsr_layout *first, const char *name,
                               const tsr_layout *other);

#endif
