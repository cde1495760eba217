/** Whole files of text. Functions return the tool's exit status, having complained where that is not 0; `option` ("--profile") is where the
 * path comes from. */
#ifndef TESSERA_TOOLS_FILE_H
#define TESSERA_TOOLS_FILE_H

#include "fresh_file.h"

/** Reads a file of less than `most` bytes, none of them NUL; the caller frees `*out`. A pipe is read to its end; one that nobody writes to is
 * refused after a second. */
int file_read_text(const char *option, const char *path, size_t most, char **out);

/** Refuses, before any work is done, a path that file_replace() could not write. */
int file_check_output(const char *option, const char *path);

/** Writes a file under another name beside it and then gives it this one, so that nobody sees a part, and a failure changes nothing.
 * Follows symbolic links; what exists must be a regular file. */
int file_replace(const char *option, const char *path, const void *data, size_t bytes);

/** The two halves of file_replace(): all that may well fail, and giving the file its name. Between them fresh_file_discard() undoes the
 * first. */
int file_prepare(const char *option, const char *path, const void *data, size_t bytes, fresh_file *out);
int file_publish(const char *option, const char *path, fresh_file *file);

#endif
