/** Files with cost profiles. Functions return the tool's exit status, having complained where that is not 0. */
#ifndef TESSERA_TOOLS_FILES_PROFILE_H
#define TESSERA_TOOLS_FILES_PROFILE_H

#include "files/fresh_file.h"

#include <tessera/profile.h>

/** Room for what tsr_cost_print() writes: four numbers of at most 24 characters. */
#define LINKS_TEXT_BYTES 128

/** The profile in a file, the value of --profile; NULL is the default. The caller destroys it. */
int profile_read(const char *path, tsr_profile **out);

/** The profile that `text` says, where an option or a variable, `what`, has it. */
int profile_parse(const char *what, const char *text, tsr_profile **out);

/** The text of the profile's links alone. */
void profile_print_links(const tsr_profile *profile, char text[LINKS_TEXT_BYTES]);

/** The whole text, which the caller frees; NULL if there is no memory. */
char *profile_text(const tsr_profile *profile);

/** file_prepare() of the value of --output: the profile under a line of comment. */
int profile_prepare(const char *path, const char *comment, const tsr_profile *profile, fresh_file *out);

#endif
