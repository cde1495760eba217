/** The choice of the next token from its logits. Equal logits give equal tokens, so that every rank
 * chooses by itself and ranks need not communicate. */
#ifndef LLAMA_SAMPLE_H
#define LLAMA_SAMPLE_H

#include <tessera/tensor.h>

#include <stdint.h>

typedef struct llama_sampling {
    double temperature; /**< 0: greedy */
    uint64_t stream;    /**< of random numbers (random.h) */
} llama_sampling;

/** The token of the largest logit, the first of several (greedy); or a token drawn from
 * softmax(logits / temperature) by random number `step` of the stream. `logits` is contiguous, of
 * f32 or f64, and has one dim. */
int64_t llama_choose(const llama_sampling *sampling, const tsr_tensor *logits, uint64_t step);

#endif
