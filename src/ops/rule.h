/**
 * Sharding rules as data: which layouts an op's operands may have, and the layout of its result.
 *
 * A rule is a factor string in the style of an einsum, "linear: b k, o k + o -> b o": operands are
 * separated by commas, each letter is a tensor dim, and `b` stands for all leading (batch) dims
 * that have no letter. Factors that the result lacks are contracted, so the op must be linear in
 * each operand. An operand after `+` is added to the product. On every mesh dim:
 *
 *   - a sharded factor must be cut alike in all operands that have it; it shards the result or, if
 *     contracted, yields Partial(sum);
 *   - a Partial(sum) or Partial(avg) operand among replicated ones passes its Partial on;
 *   - an added operand is cut as the result is, and replicated elsewhere, Partial dims of the
 *     result included.
 *
 * Anything else is refused with a sentence that names the layout that would work. All is pure and
 * depends on the layouts alone, so every rank comes to the same result.
 */
#ifndef TSR_OPS_RULE_H
#define TSR_OPS_RULE_H

#include <tessera/layout.h>

#include <stdbool.h>

/** The most operands that a rule has, added ones included. */
#define TSR_RULE_OPERANDS 3

typedef struct tsr_rule {
    const char *factors;                  /**< the factor string */
    const char *names[TSR_RULE_OPERANDS]; /**< the operands' names in errors */
    /** index of the operand, the weight, that errors propose to redistribute only where another one
     * is data-parallel */
    int pivot;
    /** what errors say of a pivot whose two dims look swapped: "a weight is (out_features, ..)";
     * NULL: nothing */
    const char *pivot_form;
} tsr_rule;

/** The result's layout for the rule's operands; the caller owns `*out`. `dtype` is the result's
 * dtype; NULL: the operands' dtype, or f32 for a mixture of f32, f16 and bf16. TSR_ERROR_ARGUMENT,
 * in a sentence that begins with `caller`: meshes, dtypes, numbers of dims or sizes do not match,
 * or the rule does not take the placements. */
tsr_status tsr_rule_apply(const char *caller, const tsr_rule *rule, const tsr_layout *const *operands,
                          const tsr_dtype *dtype, tsr_layout **out);

/** Room for the name of a mesh dim; longer names are cut. */
#define TSR_RULE_MESH_DIM_TEXT 32

/** Writes what errors call a mesh dim, its name or else its index, and returns `text`. */
const char *tsr_rule_name_mesh_dim(const tsr_mesh *mesh, int dim, char text[TSR_RULE_MESH_DIM_TEXT]);

/** Room for the text of any shape. */
#define TSR_RULE_SHAPE_TEXT 192

/** Writes the shape of a layout's tensor, "31x3" or "scalar", and returns `text`. */
const char *tsr_rule_print_shape(const tsr_layout *layout, char text[TSR_RULE_SHAPE_TEXT]);

/** True if the tensors of both layouts have the same shape. */
bool tsr_rule_same_shape(const tsr_layout *a, const tsr_layout *b);

/** True if the meshes are over one communicator, or one of them is abstract. */
bool tsr_rule_is_of_one_comm(const tsr_mesh *a, const tsr_mesh *b);

/** TSR_ERROR_ARGUMENT: the operands `first` and `other` are not on equal meshes over one
 * communicator. The sentence begins with `caller` and names both operands. */
tsr_status tsr_rule_check_mesh(const char *caller, const char *first_name, const tsr_layout *first, const char *name,
                               const tsr_layout *other);

/** tsr_rule_check_mesh(); the meshes must also have the same dims, those of size 1 included, so
 * that both layouts have as many placements. */
tsr_status tsr_rule_check_mesh_dims(const char *caller, const char *first_name, const tsr_layout *first,
                                    const char *name, const tsr_layout *other);

#endif
