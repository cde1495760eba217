/**
 * The output of a run: the text as it is generated, then a report for people or one JSON object.
 */
#ifndef LLAMA_REPORT_H
#define LLAMA_REPORT_H

#include "run.h"

/** Writes one token to standard output at once: its byte for text models, else its number. `user`
 * is the const llama_config. */
void llama_print_token(const void *user, int64_t token);

/** Prints the report for people, on standard error. */
void llama_report(const llama_job *job, const llama_outcome *outcome);

/** Prints the JSON object, on standard output. */
tsr_status llama_report_json(const llama_job *job, const llama_outcome *outcome);

#endif
