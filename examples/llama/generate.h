/** Text from a model: one pass over the prompt, then one token at a time. */
#ifndef LLAMA_GENERATE_H
#define LLAMA_GENERATE_H

#include "model.h"
#include "sample.h"

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

typedef struct llama_generation {
    int64_t *ids; /**< `count` tokens; the last one may end the text */
    int64_t count;
    float *logits; /**< (prompt_count, vocab_size) of the prompt, on rank 0 if all_logits is set; else NULL */
    double prompt_seconds, decode_seconds;
    int64_t bytes_received_per_token; /**< by this rank, in a step of decoding */
} llama_generation;

/** The number of positions that a request needs; the last token is never fed back, and needs no
 * position. */
int64_t llama_request_positions(const llama_request *request);

/** Collective: generates text. Free `*out` with llama_generation_finish(). */
tsr_status llama_generate(llama_model *model, const llama_request *request, llama_generation *out);
void llama_generation_finish(llama_generation *generation);

/** Seconds of a monotonic clock. */
double llama_seconds(void);

#endif
