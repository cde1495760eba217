/**
 * The forward pass: the model's program, compiled for this rank, with memory for up to the model's
 * capacity. One serves a prompt and each step of decoding.
 *
 * Ranks communicate once for the embedding, twice per layer (the sums after o and down) and once for
 * the logits.
 */
#ifndef LLAMA_PASS_H
#define LLAMA_PASS_H

#include "model.h"

typedef struct llama_pass llama_pass;

/** Collective: makes a pass. The model is borrowed. */
tsr_status llama_pass_create(const llama_model *model, llama_pass **out);
void llama_pass_destroy(llama_pass *pass);

/** Collective: runs `rows` tokens at positions first, first + 1, .. Earlier positions are read from
 * the model's cache, and these are added to it. `*logits` is (logit_rows, vocab_size), those of the
 * last `logit_rows` tokens, the same on every rank, borrowed until the next run. */
tsr_status llama_pass_run(llama_pass *pass, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                          const float **logits);

/** Bytes that this rank receives from other ranks in one run of as many tokens as in the last. */
int64_t llama_pass_bytes_received(const llama_pass *pass);

#endif
