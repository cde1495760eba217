/** Weights as a training begins. */
#ifndef TRAIN_WEIGHTS_H
#define TRAIN_WEIGHTS_H

#include <tessera/safetensors.h>

#include <stdbool.h>

/** True of the name of a weight, false of that of another state. */
bool train_is_weight(const char *name);

/** True of the name of a state that has the terms of a step's earlier parts. */
bool train_has_terms(const char *name);

/**
 * Makes a tensor of `layout`, the weight `name` from the checkpoint, or, where that is NULL, at
 * random: norms of 1, biases of 0, and matrices with normal numbers of standard deviation 0.02,
 * which seed and name alone decide. `shape` NULL: the tensor is what its layout says, else a matrix
 * of which the layout has the elements in one dim. Other states are zeros. The caller owns `*out`.
 * Does not communicate. TSR_ERROR_ARGUMENT, TSR_ERROR_UNSUPPORTED: as of llama_checkpoint_read().
 */
tsr_status train_weights_make(const tsr_safetensors *checkpoint, uint64_t seed, const char *name,
                              const tsr_layout *layout, const int64_t *shape, tsr_dtensor **out);

#endif
