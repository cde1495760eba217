/**
 * Files that nobody sees before they are whole.
 *
 * Each is made under a random name beside its own, never opened through a link and never one that
 * was there, and gets its name at the end. Whatever is needed to remove it again is at hand before
 * it is made, so that a lack of memory leaves nothing behind. Functions that fail leave the reason
 * in errno. Not thread-safe for one file.
 */
#ifndef TESSERA_TOOLS_FILES_FRESH_FILE_H
#define TESSERA_TOOLS_FILES_FRESH_FILE_H

#include <stdbool.h>
#include <stddef.h>

#define FRESH_NAME_BYTES 32

/** Makes a file under a new name in the folder that is open as `folder`. Its descriptor, or -1. */
int fresh_file_create(int folder, char name[FRESH_NAME_BYTES]);

/** Writes all of it, however often that takes. */
bool fresh_file_write(int file, const void *data, size_t bytes);

/** One file on its way to its name. */
typedef struct fresh_file {
    int file;   /**< -1 once it was written */
    int folder; /**< where it lies; -1 for no file */
    char *path; /**< its own, behind symbolic links; on the heap */
    char *name; /**< the end of `path` */
    char temporary[FRESH_NAME_BYTES];
} fresh_file;

/** No file: nothing to discard. */
#define FRESH_FILE_NONE ((fresh_file){.file = -1, .folder = -1})

/** Begins the file that shall take the place of `path`. After true, fresh_file_publish() or
 * fresh_file_discard() must follow. */
bool fresh_file_begin(const char *path, fresh_file *out);

/** Sends what was written to `file` to the disk, and closes it: what could still fail but for the
 * name. */
bool fresh_file_settle(fresh_file *f);

/** Gives the file its name; where that fails it is gone, and what had the name before is untouched.
 */
bool fresh_file_publish(fresh_file *f);

/** Removes the file, if there is one. Keeps errno. */
void fresh_file_discard(fresh_file *f);

#endif
