/**
 * Files that appear under their name only when they are complete.
 *
 * A file is made under a random name in the folder of its own name, always as a new file and never
 * through a link, and is renamed at the end. All memory needed to remove it is allocated before it
 * is made, so that a lack of memory leaves no file behind. Functions that fail leave the reason in
 * errno. Not thread-safe for one file.
 */
#ifndef TESSERA_TOOLS_FILES_FRESH_FILE_H
#define TESSERA_TOOLS_FILES_FRESH_FILE_H

#include <stdbool.h>
#include <stddef.h>

/** Bytes of a random name, with the NUL. */
#define FRESH_NAME_BYTES 32

/** Makes a file under a random name in the folder with descriptor `folder`. Returns its descriptor,
 * which the caller closes, or -1. */
int fresh_file_create(int folder, char name[FRESH_NAME_BYTES]);

/** Writes all of `data`, in several calls of write() if needed. False on failure. */
bool fresh_file_write(int file, const void *data, size_t bytes);

/** A file between fresh_file_begin() and fresh_file_publish(). */
typedef struct fresh_file {
    int file;                         /**< descriptor; -1 once fresh_file_settle() closed it */
    int folder;                       /**< descriptor of its folder; -1 if there is no file */
    char *path;                       /**< final path, with symbolic links resolved; on the heap */
    char *name;                       /**< final name: the last component of `path` */
    char temporary[FRESH_NAME_BYTES]; /**< random name until it is published */
} fresh_file;

/** The value for no file; discarding it does nothing. */
#define FRESH_FILE_NONE ((fresh_file){.file = -1, .folder = -1})

/** The path of a new file, symbolic links resolved. On the heap; NULL if there is no memory. */
char *fresh_file_resolve(const char *path);

/** Makes the file that will replace `path`. After true, fresh_file_publish() or
 * fresh_file_discard() must follow. */
bool fresh_file_begin(const char *path, fresh_file *out);

/** Flushes the file to the disk and closes it, so that only the rename can still fail. False on
 * failure. */
bool fresh_file_settle(fresh_file *f);

/** Renames the file to its final name. On failure returns false, with the new file removed and an
 * older file of that name untouched. */
bool fresh_file_publish(fresh_file *f);

/** Removes the file, if there is one, and frees its memory. Keeps errno. */
void fresh_file_discard(fresh_file *f);

#endif
