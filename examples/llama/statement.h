/** The model, stated once over whole tensors: what it computes, and which values of it lie where. */
#ifndef LLAMA_STATEMENT_H
#define LLAMA_STATEMENT_H

#include "model.h"

/**
 * Records the model: inputs "tokens" and "positions" (tokens), "first" (the first position) and
 * "wanted" (those tokens of which logits are wanted), states for keys and values, and the output
 * "logits" (wanted, vocab_size). Lengths are "tokens", "total" (positions so far) and "wanted", up to
 * the model's capacity. Parameters have the names of checkpoints. Does not communicate.
 */
tsr_status llama_state(const llama_model *model, tsr_program *program);

#endif
