/** Proves rows: on meshes of 1 to 8 ranks, under random placements of operands whose shapes are
 * drawn too, an op is run forward and backward; its results and gradients are put together by the
 * layouts that the rule gave, and compared with the op on one rank. Partial operands are random
 * terms. Where the rule refuses, the layouts that the sentence proposes must be taken. */
#ifndef TESTS_OPS_PROOF_PROOF_H
#define TESTS_OPS_PROOF_PROOF_H

#include "draw.h"

#define OPERANDS TSR_OP_MOST_OPERANDS

typedef struct proof proof;

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
    int draws;            /**< for each mesh; 0: 40 */
} proof_case;

struct proof {
    const proof_case *line;
    const tsr_op *op;
    tsr_op_info info;
    int operand_count, attribute_count;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES]; /**< begins with the row's own, and defaults */
    whole operands[OPERANDS];
    tsr_placement placements[OPERANDS][TSR_MAX_DIMS];
    tsr_mesh *mesh, *alone; /**< of all ranks, and of this one */
    int rank;
    uint64_t seed;                 /**< of terms */
    int64_t numbers[OPERANDS][64]; /**< of blocks in placements that were proposed */
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
    /* one on each line */

#define DECLARE_LIST(name) extern const proof_case proof_##name[];
PROOF_LISTS(DECLARE_LIST)
#undef DECLARE_LIST

/** The attribute of that name, to be set. */
tsr_attribute *proof_attribute(proof *p, const char *name);

/** True if an operand is not a float, and so has no gradient, or is left out. */
bool proof_is_integer(const proof *p, int operand);

/** Proves all lines of a list on a mesh, such as "2x3"; the counts are added to. */
typedef struct proof_counts {
    int proved, backward, proposed;
} proof_counts;

tsr_status prove_lines(const proof_case *lines, const char *mesh, proof_counts *counts);

/** Writes the op's rule as Shardy's text, and reads it. */
tsr_status prove_sharding_rule(const proof *p, const tsr_layout *const *operands);

#endif
