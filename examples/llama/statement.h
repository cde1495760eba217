/** The model, stated once over whole tensors. */
#ifndef LLAMA_STATEMENT_H
#define LLAMA_STATEMENT_H

#include "layouts.h"

/**
 * Records the model: inputs "tokens" and "positions" (tokens), "first" (the first position) and
 * "wanted" (of which of the tokens logits are wanted), states for keys and values of `capacity`
 * positions, and the output "logits" (wanted, vocab_size). Lengths are "tokens", "total" (positions
 * so far) and "wanted", up to `capacity`. Parameters have the names of checkpoints. Does not
 * communicate.
 */
tsr_status llama_state(const llama_layouts *layouts, int64_t capacity, tsr_program *program);

#endif
