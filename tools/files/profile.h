/** Files with cost profiles. Functions return the tool's exit status, having complained where that is not 0. */
#ifndef TESSERA_TOOLS_FILES_PROFILE_H
#define TESSERA_TOOLS_FILES_PROFILE_H

#include "files/fresh_file.h"

#include <tessera/cost.h>

/** Room for what tsr_cost_print() writes: four numbers of at most 24 characters. */
#define PROFILE_TEXT_BYTES 128

/** The profile in a file, the value of --profile; NULL is the default. */
int profile_read(const char *path, tsr_cost_profile *out);

/** file_prepare() of the value of --output: the profile under a line of comment. */
int profile_prepare(const char *path, const char *comment, const tsr_cost_profile *profile, fresh_file *out);

#endif
