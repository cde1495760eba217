/** Whole files of text. Functions return the tool's exit status, having complained where that is not 0; `option` ("--profile") is where the
 * path comes from. */
#ifndef TESSERA_TOOLS_FILE_H
#define TESSERA_TOOLS_FILE_H

#include <stddef.h>

/** Reads a file of less than `most` bytes, none of them NUL; the caller frees `*out`. */
int file_read_text(const char *option, const char *path, size_t most, char **out);

/** Refuses, before any work is done, a path that file_replace() could not write. */
int file_check_output(const char *option, const char *path);

/** Writes a file under another name beside it and then gives it this one, so that nobody sees a part, and a failure changes nothing.
 * Follows symbolic links; what exists must be a regular file. */
int file_replace(const char *option, const char *path, const void *data, size_t bytes);

#endif
