/**
 * @file
 * Files that appear under their name only when they are complete. In libtessera-files (`pkg-config
 * tessera-files`).
 *
 * A file is made under a random name in the folder of its own name, always as a new file and never
 * through a link, and is renamed at the end. So no reader sees a part of it, and a failure leaves
 * an older file of that name as it was. Memory that is needed to remove the file is allocated
 * before the file is made: a lack of memory leaves nothing behind. A program that is killed leaves
 * the file under its random name, which begins with `.tessera-`.
 *
 * None of these calls communicates. One thread at a time may use an object. Calls that return a
 * status refuse a NULL pointer (TSR_ERROR_ARGUMENT). After TSR_ERROR_IO, `errno` is the system's
 * reason, which the sentence has in words.
 */
#ifndef TESSERA_NEW_FILE_H
#define TESSERA_NEW_FILE_H

#include <tessera/status.h>

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A file that is not complete yet. */
typedef struct tsr_new_file tsr_new_file;

/** Makes the empty file that will replace `path`; symbolic links of `path` are followed. The caller
 * ends `*out` with tsr_new_file_publish() or tsr_new_file_discard(). TSR_ERROR_IO: the folder
 * cannot be written, or `path` exists and is not a regular file. */
TSR_API tsr_status tsr_new_file_create(const char *path, tsr_new_file **out);

/** The path that the file has until it is published, for calls that open it by name, such as
 * tsr_dtensor_write(). Borrowed. */
TSR_API const char *tsr_new_file_path(const tsr_new_file *file);

/** Appends `bytes` bytes of `data` to what earlier calls wrote. TSR_ERROR_IO: part of it cannot be
 * written. TSR_ERROR_STATE: the file is closed. */
TSR_API tsr_status tsr_new_file_write(tsr_new_file *file, const void *data, size_t bytes);

/** Brings the file to the disk and closes it, so that only the rename can still fail. A second call
 * does nothing. TSR_ERROR_IO: the system cannot do it. */
TSR_API tsr_status tsr_new_file_settle(tsr_new_file *file);

/** Closes the file without waiting for the disk; else as tsr_new_file_settle(). A machine that
 * stops may then lose the content of a published file. */
TSR_API tsr_status tsr_new_file_close(tsr_new_file *file);

/** Settles the file unless it is closed, gives it its name, and frees the object. After a
 * failure, TSR_ERROR_IO, the object is freed too and the new file is removed. */
TSR_API tsr_status tsr_new_file_publish(tsr_new_file *file);

/** Removes the file and frees the object; NULL is fine. Keeps `errno`. */
TSR_API void tsr_new_file_discard(tsr_new_file *file);

#ifdef __cplusplus
}
#endif

#endif
