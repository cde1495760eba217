/** Runs a program on rank threads. */
#ifndef TESSERA_TOOLS_PROGRAM_RUN_H
#define TESSERA_TOOLS_PROGRAM_RUN_H

#include "program/count.h"

/** Runs the program on the files of --inputs, and writes those of --output. Returns the tool's exit
 * status. */
int program_run(const tool_arguments *given, const program_count *c);

#endif
