/** A training's state in a folder: weights and the optimizer's states, the step, and config.json,
 * so that tessera-llama and transformers run what was trained. */
#ifndef TRAIN_SAVING_H
#define TRAIN_SAVING_H

#include "trainer.h"

/**
 * Collective: writes the state before step `step` to `folder`, which is made if it is not there.
 * The last state stays until the new one is whole (tsr_checkpoint_save()). `config` is the path of
 * the model's config.json. TSR_ERROR_IO: it cannot be written.
 */
tsr_status train_save(const train_trainer *trainer, const char *folder, const char *config, int64_t step);

/** Collective: reads what train_save() wrote on any mesh; `*step` is the next one.
 * TSR_ERROR_ARGUMENT: the folder has no such state, or one of another model or optimizer. */
tsr_status train_resume(const train_trainer *trainer, const char *folder, int64_t *step);

#endif
