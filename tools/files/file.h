/** Whole files of text. Functions return the tool's exit status, having complained where that is not 0; `option` ("--profile") is where the
 * path comes from. */
#ifndef TESSERA_TOOLS_FILES_FILE_H
#define TESSERA_TOOLS_FILES_FILE_H

#include "files/fresh_file.h"

/** Reads a file of less than `most` bytes, none of them NUL; the caller frees `*out`. A pipe is read to its end, and told of where
 * its writer is silent for three seconds; one that nobody has open for writing is refused after a second. */
int file_read_text(const char *option, const char *path, size_t most, char **out);

/** Refuses, before any work is done, a path that file_prepare() could not write. */
int file_check_output(const char *option, const char *path);

/** Writes a file under another name beside `path`, so that nobody sees a part, and a failure changes nothing. Follows symbolic links; what
 * exists must be a regular file. Then file_publish() or fresh_file_discard() must follow. */
int file_prepare(const char *option, const char *path, const void *data, size_t bytes, fresh_file *out);

/** Gives it its name; what had that is gone. */
int file_publish(const char *option, const char *path, fresh_file *file);

#endif
