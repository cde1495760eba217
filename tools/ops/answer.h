/** What `tessera ops` says of rows and of a case. */
#ifndef TESSERA_TOOLS_OPS_ANSWER_H
#define TESSERA_TOOLS_OPS_ANSWER_H

#include "ops/case.h"

/** Lists the rows named on the command line, or all. Returns the tool's exit status. */
int ops_list(const tool_arguments *given);

/** Prints what a case moves, gives and costs. Returns the tool's exit status. */
int ops_explain(const tool_arguments *given, const ops_case *c);

/** Runs a case on the tensors of --input, and writes --output. Returns the tool's exit status. */
int ops_run(const tool_arguments *given, const ops_case *c);

#endif
