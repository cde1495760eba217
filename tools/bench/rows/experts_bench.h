/** bench rows --op experts. */
#ifndef TESSERA_TOOLS_BENCH_ROWS_EXPERTS_BENCH_H
#define TESSERA_TOOLS_BENCH_ROWS_EXPERTS_BENCH_H

#include "command.h"

/** Measures dispatch and combine of tokens, beside copies by hand. Returns the tool's exit
 * status. */
int bench_experts(const tool_arguments *given);

#endif
