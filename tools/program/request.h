/** A program as the options of `tessera program` give it. */
#ifndef TESSERA_TOOLS_PROGRAM_REQUEST_H
#define TESSERA_TOOLS_PROGRAM_REQUEST_H

#include "cli/parse.h"

#include <tessera/program_json.h>

typedef struct program_request {
    const char *path; /**< of the file */
    tsr_context *context;
    tsr_mesh *mesh; /**< abstract */
    tsr_program *program;
    bool one_rank; /**< --rank is given */
    int64_t rank;
} program_request;

/** Reads the options and the file. Returns the tool's exit status; the caller calls
 * program_request_finish() in any case. */
int program_request_read(const tool_arguments *given, program_request *out);
void program_request_finish(program_request *r);

/** Room for the name of a value. */
#define VALUE_NAME_BYTES 264

/** The label of a value, or "%12". */
void print_value(const tsr_program *program, tsr_value value, char text[VALUE_NAME_BYTES]);

/** True if the value is Replicate on a mesh dim on which its gradient is Partial. */
bool is_varying(const tsr_program *program, tsr_value value);

#endif
