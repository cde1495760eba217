/** The environment variables that the library reads, and how each overrides a setting. */
#ifndef TSR_BASE_ENVIRONMENT_H
#define TSR_BASE_ENVIRONMENT_H

#include "base/settings.h"

/** Overrides `settings` by what `get` (NULL: getenv) knows; a variable that is empty counts as not set. TSR_ERROR_ARGUMENT: a value that is
 * not known. */
tsr_status tsr_environment_apply(const char *(*get)(void *user, const char *name), void *user, tsr_settings *settings);

/** Asks for kernels by name, from the option or variable `source`. TSR_ERROR_ARGUMENT: no such name; TSR_ERROR_UNAVAILABLE: not on this
 * processor. */
tsr_status tsr_settings_set_kernels(tsr_settings *settings, const char *source, const char *kernels);

#endif
