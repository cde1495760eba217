/** Reading and writing whole files. Functions return the tool's exit status, having complained if
 * it is not 0; `option` ("--profile") names the option of the path in errors. */
#ifndef TESSERA_TOOLS_FILES_FILE_H
#define TESSERA_TOOLS_FILES_FILE_H

#include <tessera/new_file.h>

#include <stddef.h>

/** Reads a text of less than `most` bytes, without NUL; the caller frees `*out`. A pipe is read
 * until its writers close it; the user is told once when the writer is silent for three seconds. A
 * pipe without a writer is refused after a second. */
int file_read_text(const char *option, const char *path, size_t most, char **out);

/** Refuses a path that file_prepare() could not write; for use before the work begins. */
int file_check_output(const char *option, const char *path);

/** Writes a file under a temporary name beside `path`, so that no reader sees a part of it and a
 * failure changes nothing. Follows symbolic links; if `path` exists it must be a regular file.
 * After success, file_publish() or tsr_new_file_discard() must follow. */
int file_prepare(const char *option, const char *path, const void *data, size_t bytes, tsr_new_file **out);

/** Renames the file to `path` and so replaces an older file of that name. */
int file_publish(const char *option, const char *path, tsr_new_file *file);

#endif
