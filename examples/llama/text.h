/** Text in and out. A model with a vocabulary of 256 has bytes for tokens; others take and give token numbers. */
#ifndef LLAMA_TEXT_H
#define LLAMA_TEXT_H

#include "config.h"

/** Tokens; free `ids`. */
typedef struct llama_tokens {
    int64_t *ids;
    int64_t count;
} llama_tokens;

/** True if tokens are bytes. */
bool llama_is_text(const llama_config *config);

/** The bytes of a text. TSR_ERROR_ARGUMENT: it is empty, or the model's tokens are not bytes. */
tsr_status llama_tokens_from_text(const llama_config *config, const char *text, llama_tokens *out);

/** Reads "1,2,3". TSR_ERROR_ARGUMENT: that is not what it says. */
tsr_status llama_tokens_parse(const char *list, llama_tokens *out);

tsr_status llama_tokens_copy(const llama_tokens *tokens, llama_tokens *out);

/** TSR_ERROR_ARGUMENT names the first token that is not in the vocabulary. */
tsr_status llama_tokens_check(const llama_config *config, const llama_tokens *tokens);

/** What a model begins with where no prompt is given: its begin token, else a line feed for text, else token 0. */
tsr_status llama_tokens_default(const llama_config *config, llama_tokens *out);

/**
 * Bytes as UTF-8: every part that is none becomes U+FFFD, as the Unicode Standard recommends (one for each maximal subpart, section 3.9).
 * `out` has room for 3 bytes a token; returns the bytes written.
 */
size_t llama_tokens_to_utf8(const int64_t *ids, int64_t count, char *out);

#endif
