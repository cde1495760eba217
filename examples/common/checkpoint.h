/** Tensors of a checkpoint by the names that the program has for them, whichever of the forms that
 * transformers saves the file is in. */
#ifndef LLAMA_CHECKPOINT_H
#define LLAMA_CHECKPOINT_H

#include <tessera/safetensors.h>

/**
 * Distributes the tensor `name` to `layout`; each rank reads only its own bytes, whose number is
 * added to `*bytes_read`. Experts, "..mlp.experts.gate_up_proj" (experts, 2 x inner, hidden) and
 * "..down_proj" (experts, hidden, inner), may also lie in the file one by one, as Qwen3-MoE and
 * Mixtral are published. The caller owns `*out`. TSR_ERROR_ARGUMENT: a tensor is missing, or its
 * shape is not the layout's. TSR_ERROR_UNSUPPORTED: its dtype is not f32, f16 or bf16.
 */
tsr_status llama_checkpoint_read(const tsr_safetensors *checkpoint, const char *name, const tsr_layout *layout,
                                 int64_t *bytes_read, tsr_dtensor **out);

/** Distributes the elements of the tensor `name`, of `shape` in the file, to a layout of one dim,
 * else as llama_checkpoint_read() does; experts must lie in the file as one tensor. */
tsr_status llama_checkpoint_read_flat(const tsr_safetensors *checkpoint, const char *name, int ndim,
                                      const int64_t *shape, const tsr_layout *layout, tsr_dtensor **out);

#endif
