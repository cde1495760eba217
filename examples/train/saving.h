/** A training's state in a folder: weights and the optimizer's states, the step, the loss scale,
 * the settings, and config.json, so that tessera-llama and transformers run what was trained. */
#ifndef TRAIN_SAVING_H
#define TRAIN_SAVING_H

#include "settings.h"
#include "trainer.h"

/** Where a training saves; begin with what is borrowed. */
typedef struct train_saver {
    const train_trainer *trainer;
    const train_numbers *settings;
    const char *folder;           /**< made if it is not there */
    const char *config;           /**< the path of the model's config.json, which is saved, too */
    bool in_background;           /**< states are copied to memory, and written while steps are taken */
    tsr_checkpoint_saving *going; /**< owned: a save in the background; NULL: none */
} train_saver;

/**
 * Collective: writes the state before step `step`. The last state stays until the new one is whole
 * (tsr_checkpoint_save()), which in the background is when a later call finishes it: each save
 * first finishes the one before. TSR_ERROR_IO: it cannot be written.
 */
tsr_status train_saver_save(train_saver *saver, int64_t step);

/** Collective: finishes a save in the background whose bytes all ranks have written. Does not wait
 * for them, and does not communicate where no save goes on. */
tsr_status train_saver_poll(train_saver *saver);

/** Collective: finishes a save in the background, if one goes on. */
tsr_status train_saver_finish(train_saver *saver);

/** After an error of this rank: gives up a save in the background. Ends the communicator's calls,
 * since peers may be in others. Returns `status`, with its sentence. */
tsr_status train_saver_give_up(train_saver *saver, tsr_status status);

/** Collective: reads what was saved on any mesh into the trainer; `*step` is the next one.
 * TSR_ERROR_ARGUMENT: the folder has no such state, or one of another model. */
tsr_status train_resume(train_trainer *trainer, const char *folder, int64_t *step);

#endif
