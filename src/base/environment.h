/** The environment variables that the library reads, and how each overrides a setting. */
#ifndef TSR_BASE_ENVIRONMENT_H
#define TSR_BASE_ENVIRONMENT_H

#include "base/settings.h"

/** What TSR_MPI may name, and the same name as static text; NULL if `name` is none of them. */
#define TSR_MPI_NAMES "openmpi or mpich"
const char *tsr_environment_mpi(const char *name);

/** Overrides `settings` by the variables that `get` returns (NULL: getenv()); an empty variable
 * counts as not set. TSR_ERROR_ARGUMENT: a value is not one that the variable takes;
 * TSR_ERROR_UNAVAILABLE: TSR_KERNELS names kernels that this processor does not run. */
tsr_status tsr_environment_apply(const char *(*get)(void *user, const char *name), void *user, tsr_settings *settings);

/** Sets kernels and way by the names in `kernels`, with commas between; `source`, an option or
 * variable, begins an error's sentence. TSR_ERROR_ARGUMENT: there is no such name;
 * TSR_ERROR_UNAVAILABLE: this processor does not run these kernels. */
tsr_status tsr_settings_set_kernels(tsr_settings *settings, const char *source, const char *kernels);

/** Makes `profile` the one that plans are timed by, in the place of the profile before. If it has
 * tables, the settings take a reference of their own. */
void tsr_settings_set_profile(tsr_settings *settings, tsr_profile *profile);

#endif
