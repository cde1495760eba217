/** A call of an op as the options of `tessera ops` describe it: layouts alone, without data. */
#ifndef TESSERA_TOOLS_OPS_CASE_H
#define TESSERA_TOOLS_OPS_CASE_H

#include "cli/parse.h"

#include <tessera/ops.h>

typedef struct ops_case {
    const tsr_op *op;
    tsr_op_info info;
    tsr_policy policy;
    tsr_mesh *mesh; /* abstract */
    int operand_count, attribute_count;
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES];
    tsr_layout *operands[TSR_OP_MOST_OPERANDS];  /* as given; NULL: left out */
    tsr_layout *fitted[TSR_OP_MOST_OPERANDS];    /* as the rule takes them: those given, or others */
    tsr_layout *results[TSR_OP_MOST_RESULTS];    /* as the rule gives them */
    tsr_layout *wanted;                          /* --result, of the first result; NULL: as the rule gives it */
    tsr_layout *gradients[TSR_OP_MOST_OPERANDS]; /* NULL: the operand has none */
} ops_case;

/** Finds an op; returns the tool's exit status. */
int ops_find(const char *name, const tsr_op **out);

/** Reads the options and finds all layouts. Returns the tool's exit status; the caller calls
 * ops_case_finish() in any case. */
int ops_case_make(const tool_arguments *given, ops_case *out);
void ops_case_finish(ops_case *c);

#endif
