/** The command line. */
#ifndef LLAMA_OPTIONS_H
#define LLAMA_OPTIONS_H

#include "text.h"

#include <tessera/dtype.h>

/** The options. Text is borrowed from the command line; NULL where an option was not given. */
typedef struct llama_options {
    const char *directory;
    const char *random; /**< the configuration of a model with random weights */
    const char *engine;
    const char *prompt;
    llama_tokens prompt_ids; /**< owned; ids NULL where the option was not given */
    const char *logits;
    const char *tp_plan; /**< rules of how weights are cut */
    tsr_dtype weights;   /**< dtype of matrices and biases; TSR_DTYPE_NONE: that of the checkpoint */
    bool is_q8;          /**< matrices of linear layers are kept in 8 bits */
    int ranks;
    bool ranks_given;
    int64_t tokens; /**< -1: not given */
    double temperature;
    uint64_t seed;
    bool json;
    bool help, version; /**< if set, nothing else was checked */
} llama_options;

/** Parses the command line. Free `*out` with llama_options_finish(). TSR_ERROR_ARGUMENT: an option
 * is unknown, lacks its value or has one that does not parse, or options contradict each other. */
tsr_status llama_options_parse(int argc, char **argv, llama_options *out);
void llama_options_finish(llama_options *options);

/** The text of --help. */
extern const char *const llama_usage;

#endif
