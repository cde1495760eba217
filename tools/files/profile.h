/** Cost profiles in files and options. Functions that return int return the tool's exit status,
 * having complained if it is not 0. */
#ifndef TESSERA_TOOLS_FILES_PROFILE_H
#define TESSERA_TOOLS_FILES_PROFILE_H

#include <tessera/new_file.h>
#include <tessera/profile.h>

/** Upper bound of the text of tsr_cost_print(), with the NUL: four numbers of at most 24
 * characters. */
#define LINKS_TEXT_BYTES 128

/** Reads the profile in the file of --profile; NULL is the default profile. The caller destroys
 * it. */
int profile_read(const char *path, tsr_profile **out);

/** Parses the profile in `text`, the value of the option or variable that `what` names in errors.
 * The caller destroys it. */
int profile_parse(const char *what, const char *text, tsr_profile **out);

/** Writes the text of the profile's links, without its tables. */
void profile_print_links(const tsr_profile *profile, char text[LINKS_TEXT_BYTES]);

/** The text of the whole profile, which the caller frees; NULL if there is no memory. */
char *profile_text(const tsr_profile *profile);

/** file_prepare() of the file of --output: the profile under a line of comment. */
int profile_prepare(const char *path, const char *comment, const tsr_profile *profile, tsr_new_file **out);

#endif
