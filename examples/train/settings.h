/** The options that make a training what it is: what its windows, random numbers, rates and updates
 * follow from. They are saved with its state, so that a run that is resumed has them again. */
#ifndef TRAIN_SETTINGS_H
#define TRAIN_SETTINGS_H

#include "options.h"

#include <tessera/checkpoint.h>

/** Room for all settings. */
enum { TRAIN_MOST_SETTINGS = 24 };

/** Settings as numbers of a checkpoint. */
typedef struct train_numbers {
    size_t count;
    tsr_checkpoint_number of[TRAIN_MOST_SETTINGS];
} train_numbers;

/** Notes that the command line gave an option, if it is a setting. */
void train_settings_mark(train_options *options, const char *option);

/** True if the command line gave an option that is a setting. */
bool train_settings_have(const train_options *options, const char *option);

/** The name of an optimizer. */
const char *train_settings_optimizer(tsr_optimizer_kind kind);

/** Gives the settings among options. */
train_numbers train_settings_of(const train_options *options);

/**
 * Takes the settings that the command line did not give from the state in `folder`; what this does
 * not tell stays as it is. Does not communicate. TSR_ERROR_ARGUMENT, TSR_ERROR_IO: as of
 * tsr_safetensors_open(), or a number is not that of a setting, or the state is another
 * optimizer's.
 */
tsr_status train_settings_resume(const char *folder, train_options *options);

#endif
