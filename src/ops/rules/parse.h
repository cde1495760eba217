/**
 * Rules of ops as data: reads factor strings.
 *
 *     rule    := term { ("," | "+") term } "->" term { "," term } { "|" mark }
 *     term    := { factor | compound | "1" | "..." }         one for each dim; at most one "..."
 *     compound := "(" factor factor { factor } ")"           one dim, major to minor
 *     mark    := subject { subject } kind { kind } | group-kind group { group }
 *     subject := factor | compound | "..."
 *     kind    := "sum" | "mean" | "max" | "min" | "prod" | "exchange" | "whole" | "permute"
 *                | "positional"
 *     group-kind := "linear" | "monotone" | "antitone"
 *     group   := "{" operand { operand } "}"                     operands are counted from 0
 *
 * A factor is a lower-case word that is not the name of a mark; dims with one factor have one size.
 * A factor that only results have must be marked "whole". "..." is any number of leading dims,
 * aligned at the right. A term after "+" is added once to the result. Marks say what becomes of a
 * factor that is sharded, and of Partial operands: form.h and fit.h use them. A mark of a compound
 * is one of each of its factors, but for "positional", by which it may be cut anywhere (expand.h).
 */
#ifndef TSR_OPS_RULES_PARSE_H
#define TSR_OPS_RULES_PARSE_H

#include <tessera/dtype.h>

#include <stdbool.h>

/** The most operands and results of an op, and the most named factors and compounds of a rule. */
#define TSR_OP_OPERANDS  8
#define TSR_OP_RESULTS   4
#define TSR_OP_LETTERS   16
#define TSR_OP_COMPOUNDS 16

/** Items of a term beside indices of factors; the compound of index i is TSR_OP_LETTERS + i. */
#define TSR_OP_ONE      (-1)
#define TSR_OP_ELLIPSIS (-2)

/** What a rule says of one factor, or of all dims of "...". */
typedef struct tsr_op_marks {
    bool reduces;            /**< contracted: sharded, it leaves Partial(reduction) */
    tsr_reduce_op reduction; /**< TSR_SUM for "mean", too, which divides by the global count */
    bool exchange;           /**< ranks meet inside the op where it is sharded */
    bool whole;              /**< may not be sharded */
    bool permute;            /**< elements of neighbours are needed where it is sharded */
    bool positional;         /**< the kernel is given the global intervals of the shard */
} tsr_op_marks;

/** Factors that are one dim together. */
typedef struct tsr_op_compound {
    int count;
    int factor[TSR_MAX_DIMS]; /**< indices, major to minor */
    tsr_op_marks marks;       /**< those that name it */
} tsr_op_compound;

typedef struct tsr_op_term {
    int count;
    int item[TSR_MAX_DIMS]; /**< an index of a factor or a compound, TSR_OP_ONE or TSR_OP_ELLIPSIS */
    bool added;             /**< the term comes after "+" */
} tsr_op_term;

typedef struct tsr_op_rule {
    int operand_count, result_count, factor_count, compound_count;
    tsr_op_term operands[TSR_OP_OPERANDS], results[TSR_OP_RESULTS];
    char factors[TSR_OP_LETTERS][12];   /**< the factors' words */
    tsr_op_marks marks[TSR_OP_LETTERS]; /**< by factor */
    tsr_op_compound compounds[TSR_OP_COMPOUNDS];
    tsr_op_marks ellipsis; /**< of "..." */
    /** Sets of operands, by bits, in which the op is linear jointly; operands of a set are all
     * Partial or none. */
    unsigned linear[TSR_OP_OPERANDS];
    int linear_count;
    unsigned monotone, antitone; /**< operands, by bits, in which the op is rising, or falling */
} tsr_op_rule;

/** Reads a rule; `text` is not NULL. Pure. TSR_ERROR_ARGUMENT: the sentence quotes the text and
 * points at the character that is wrong; or a result has a factor that no operand has and that is
 * not marked "whole", or lacks one that no mark says what becomes of. */
tsr_status tsr_op_rule_parse(const char *text, tsr_op_rule *out);

/** The index of `item` in a term; -1: the term does not have it. */
int tsr_op_term_find(const tsr_op_term *term, int item);

/** True if a term has a factor, by itself or in a compound. */
bool tsr_op_term_has(const tsr_op_rule *rule, const tsr_op_term *term, int factor);

#endif
