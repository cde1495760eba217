/**
 * The forward pass of a fixed number of tokens: planned once, run many times.
 *
 * Making a pass plans every layer and allocates every activation; running it does neither. Ranks
 * communicate once for the embedding, twice per layer (the sums after o and down) and once for the
 * logits.
 */
#ifndef LLAMA_PASS_H
#define LLAMA_PASS_H

#include "model.h"

typedef struct llama_pass llama_pass;

/** Collective: makes a pass of `rows` tokens, which returns the logits of the last `logit_rows` of
 * them. The model is borrowed. */
tsr_status llama_pass_create(const llama_model *model, int64_t rows, int64_t logit_rows, llama_pass **out);
void llama_pass_destroy(llama_pass *pass);

/** Collective: runs `rows` tokens at positions first, first + 1, .. Earlier positions are read from
 * the model's cache, and these are added to it. `*logits` is (logit_rows, vocab_size), the same on
 * every rank, borrowed until the next run. */
tsr_status llama_pass_run(llama_pass *pass, const int64_t *tokens, int64_t first, const float **logits);

/** Bytes that this rank receives from other ranks in one run. */
int64_t llama_pass_bytes_received(const llama_pass *pass);

#endif
