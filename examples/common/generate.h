/** Text from a model: one pass over the prompt, then one token at a time. */
#ifndef LLAMA_GENERATE_H
#define LLAMA_GENERATE_H

#include "config.h"
#include "sample.h"

#include <tessera/tessera.h>

/** A request, which is the same on every rank. */
typedef struct llama_request {
    const int64_t *prompt; /**< prompt_count tokens of the vocabulary, at least one; borrowed */
    int64_t prompt_count;
    int64_t tokens; /**< the most tokens to generate */
    llama_sampling sampling;
    bool all_logits; /**< keep the logits of the prompt */
    /** called on rank 0, as soon as a token is known; may be NULL */
    void (*on_token)(const void *user, int64_t token);
    const void *user;
} llama_request;

/** A model on this rank, as it gives logits. All is borrowed. */
typedef struct llama_speaker {
    tsr_comm *comm;
    const llama_config *config;
    /** Collective: runs `rows` tokens at positions first, first + 1, .. behind those that ran
     * before. `*logits` is (logit_rows, vocab_size) of f32 or f64, those of the last `logit_rows`
     * tokens, the same on every rank, borrowed until the next run. */
    tsr_status (*run)(void *model, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                      tsr_tensor *logits);
    void *model;
} llama_speaker;

typedef struct llama_generation {
    int64_t *ids; /**< `count` tokens; the last one may end the text */
    int64_t count;
    void *logits; /**< (prompt_count, vocab_size) of the prompt, on rank 0 if all_logits is set; else NULL */
    double prompt_seconds, decode_seconds;
} llama_generation;

/** The number of positions that a request needs; the last token is never fed back, and needs no
 * position. */
int64_t llama_request_positions(const llama_request *request);

/** The number of tokens to generate behind a prompt: as `asked`, or where that is -1, 128, or as
 * many as positions are left. TSR_ERROR_ARGUMENT: there are not that many positions. */
tsr_status llama_request_limit(const llama_config *config, int64_t prompt_count, int64_t asked, int64_t *out);

/** Collective: generates text. Free `*out` with llama_generation_finish(). */
tsr_status llama_generate(const llama_speaker *speaker, const llama_request *request, llama_generation *out);
void llama_generation_finish(llama_generation *generation);

/** Seconds of a monotonic clock. */
double llama_seconds(void);

#endif
