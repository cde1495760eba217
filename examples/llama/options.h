/** The command line. */
#ifndef LLAMA_OPTIONS_H
#define LLAMA_OPTIONS_H

#include "text.h"
#include <tessera/dtype.h>

/** Text is borrowed from the command line; NULL where an option was not given. */
typedef struct llama_options {
    const char *directory;
    const char *random; /**< the configuration of a model with random weights */
    const char *engine;
    const char *prompt;
    llama_tokens prompt_ids; /**< owned; ids NULL where the option was not given */
    const char *logits;
    tsr_dtype weights; /**< what they are kept in; none: as the checkpoint has them */
    int ranks;
    bool ranks_given;
    int64_t tokens; /**< -1: not given */
    double temperature;
    uint64_t seed;
    bool json;
    bool help, version; /**< nothing else was checked */
} llama_options;

/** Free `*out` with llama_options_finish(). TSR_ERROR_ARGUMENT: an option is not known, lacks its value or has one that does not parse, or
 * options contradict each other. */
tsr_status llama_options_parse(int argc, char **argv, llama_options *out);
void llama_options_finish(llama_options *options);

/** What --help prints. */
extern const char *const llama_usage;

#endif
