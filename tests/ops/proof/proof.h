/** Proves rows: on meshes of 1 to 8 ranks, under random placements of operands whose shapes are
 * drawn too, an op is run forward and backward; its results and gradients are put together by the
 * layouts that the rule gave, and compared with the op on one rank. Partial operands are random
 * terms. Where the rule refuses, the layouts that the sentence proposes must be taken. */
#ifndef TESTS_OPS_PROOF_PROOF_H
#define TESTS_OPS_PROOF_PROOF_H

#include "draw.h"

#define OPERANDS TSR_OP_MOST_OPERANDS

/** Draws for each line and mesh. */
#define PROOF_DRAWS 18

typedef struct proof proof;

/** Why a rule may refuse what is right. */
#define STRICT_MONOTONE "P(max) and P(min) pass where other operands have one sign, which are data, or up to a last bit"
#define STRICT_LIKE     "little but the shape of an operand is read, and rules are about all that could be"
#define STRICT_VALUES   "small integers, or attributes for which the op is simpler than its rule, as a roll by nothing"
#define STRICT_MEANING  "what is Partial varies already, and a call that changes nothing is a mistake"

/** How a row is proved: a line of test. The last of a list has no op. */
typedef struct proof_case {
    const char *op;
    /** Draws attributes, and the operands' shapes, dtypes and values; placements are drawn by the
     * proof. */
    void (*draw)(draw *d, proof *p);
    /** Results are exact, in whatever order terms are added. Else results of which neither operands
     * nor results are Partial must still be exact, unless `inexact`. */
    bool exact;
    bool exact_gradients; /**< so are gradients */
    bool inexact;         /**< products or exchanges add terms in another order on more ranks */
    unsigned constants;   /**< float operands, by bits, that have no gradient */
    int draws;            /**< for each mesh; 0: PROOF_DRAWS */
    /** NULL, or why placements are refused under which results are right: a STRICT_ of below. */
    const char *strict;
    /** NULL, or why gradients are not those of finite differences. */
    const char *no_differences;
} proof_case;

struct proof {
    const proof_case *line;
    const tsr_op *op;
    tsr_op_info info;
    int operand_count, attribute_count;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES]; /**< begins with the row's own, and defaults */
    whole operands[OPERANDS];
    tsr_placement placements[OPERANDS][TSR_MAX_DIMS];
    tsr_mesh *mesh, *alone;                   /**< of all ranks, and of this one */
    int rank, times;                          /**< times: as many draws as usual */
    uint64_t seed;                            /**< of terms */
    draw before;                              /**< draws attributes and operands, again and again */
    int refusals;                             /**< that were judged on this mesh, of the line's */
    int64_t numbers[OPERANDS][64];            /**< of blocks in placements that were proposed */
    int64_t drawn[OPERANDS][TSR_MAX_DIMS][8]; /**< of sizes and blocks in placements that were drawn */
};

/** The lists of lines, by file; meson.build has them too. */
#define PROOF_LISTS(X)                                                                                                 \
    X(pointwise)                                                                                                       \
    X(reductions)                                                                                                      \
    X(norms)                                                                                                           \
    X(layouts)                                                                                                         \
    X(products)                                                                                                        \
    X(losses)                                                                                                          \
    X(indexing)                                                                                                        \
    X(attention)                                                                                                       \
    X(views)                                                                                                           \
    X(random)                                                                                                          \
    X(order)                                                                                                           \
    X(mixture)                                                                                                         \
    X(updates)                                                                                                         \
    /* one on each line */

#define DECLARE_LIST(name) extern const proof_case proof_##name[];
PROOF_LISTS(DECLARE_LIST)
#undef DECLARE_LIST

/** The attribute of that name, to be set. */
tsr_attribute *proof_attribute(proof *p, const char *name);

/** True if an operand is not a float, and so has no gradient, or is left out. */
bool proof_is_integer(const proof *p, int operand);

/** What was shown. */
typedef struct proof_counts {
    int proved, backward, proposed;
    int refused_wrong;      /**< refusals of which no placement of what ranks compute alone is right */
    int refused_impossible; /**< refusals where ranks can compute nothing alone, or no shape fits */
    int refused_strictly;   /**< refusals that the line names */
    int differences;        /**< gradients that finite differences agree with */
} proof_counts;

/** Proves all lines of a list on a mesh, such as "2x3", with `times` as many draws as usual; the
 * counts are added to. */
tsr_status prove_lines(const proof_case *lines, const char *mesh, int times, proof_counts *counts);

/** Compares gradients on one rank with finite differences in f64. */
tsr_status prove_differences(const proof_case *lines, int times, proof_counts *counts);

/** Writes the op's rule as Shardy's text, and reads it. */
tsr_status prove_sharding_rule(const proof *p, const tsr_layout *const *operands);

#endif
