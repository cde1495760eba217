/** The next token from its logits. Equal logits give equal tokens: every rank chooses by itself, and none has to tell the others. */
#ifndef LLAMA_SAMPLE_H
#define LLAMA_SAMPLE_H

#include <stdint.h>

typedef struct llama_sampling {
    double temperature; /**< 0: greedy */
    uint64_t stream;    /**< of random numbers (random.h) */
} llama_sampling;

/** Greedy: the first of the largest. Otherwise drawn from softmax(logits / temperature) by the stream's number `step`. */
int64_t llama_choose(const llama_sampling *sampling, const float *logits, int64_t count, uint64_t step);

#endif
