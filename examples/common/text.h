/** Text and tokens. In a model with a vocabulary of 256, tokens are bytes; other models take and
 * give token numbers. */
#ifndef LLAMA_TEXT_H
#define LLAMA_TEXT_H

#include "config.h"

/** Tokens; the caller frees `ids`. */
typedef struct llama_tokens {
    int64_t *ids;
    int64_t count;
} llama_tokens;

/** True if the model's tokens are bytes. */
bool llama_is_text(const llama_config *config);

/** The bytes of a text as tokens. TSR_ERROR_ARGUMENT: the text is empty, or the model's tokens are
 * not bytes. */
tsr_status llama_tokens_from_text(const llama_config *config, const char *text, llama_tokens *out);

/** Reads a list of token numbers, "1,2,3". TSR_ERROR_ARGUMENT: `list` has another form. */
tsr_status llama_tokens_parse(const char *list, llama_tokens *out);

tsr_status llama_tokens_copy(const llama_tokens *tokens, llama_tokens *out);

/** TSR_ERROR_ARGUMENT: a token is not in the vocabulary; the sentence names the first one. */
tsr_status llama_tokens_check(const llama_config *config, const llama_tokens *tokens);

/**
 * The prompt if none is given: the model's begin token, else a line feed for text, else token 0.
 */
tsr_status llama_tokens_default(const llama_config *config, llama_tokens *out);

/** The prompt that is asked for: a text, or else tokens (`ids` NULL in it: not), or else the
 * default. */
tsr_status llama_tokens_prompt(const llama_config *config, const char *text, const llama_tokens *ids,
                               llama_tokens *out);

/** Writes byte tokens as valid UTF-8. Every invalid part becomes U+FFFD, as the Unicode Standard
 * recommends (one for each maximal subpart, section 3.9). `out` has room for 3 bytes per token;
 * returns the number of bytes written. */
size_t llama_tokens_to_utf8(const int64_t *ids, int64_t count, char *out);

#endif
