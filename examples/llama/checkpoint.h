/** The tensors of a checkpoint directory: model.safetensors, or several files and
 * model.safetensors.index.json. */
#ifndef LLAMA_CHECKPOINT_H
#define LLAMA_CHECKPOINT_H

#include "safetensors.h"

typedef struct llama_checkpoint llama_checkpoint;

/** Reads the headers of all files in `directory`. The checkpoint is read-only afterwards: all ranks
 * may share it. */
tsr_status llama_checkpoint_open(const char *directory, llama_checkpoint **out);
void llama_checkpoint_close(llama_checkpoint *checkpoint);

/** Finds a tensor and the file that holds it, both borrowed. TSR_ERROR_ARGUMENT: no tensor has that
 * name. */
tsr_status llama_checkpoint_find(const llama_checkpoint *checkpoint, const char *name, const char **path,
                                 const safetensors_entry **entry);

#endif
