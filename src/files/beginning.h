/** The beginning of a file, or all of it, in memory. */
#ifndef TSR_FILES_BEGINNING_H
#define TSR_FILES_BEGINNING_H

#include <tessera/status.h>

#include <stddef.h>

typedef struct tsr_beginning {
    char *data;   /**< on the heap, aligned for any type */
    size_t bytes; /**< read into `data` */
    size_t size;  /**< bytes of the whole file */
} tsr_beginning;

/** Reads the first `most` bytes of a regular file, or all of a shorter one. The caller frees them
 * with tsr_beginning_free(). TSR_ERROR_IO: reading failed; the sentence names the file. */
tsr_status tsr_beginning_read(const char *path, size_t most, tsr_beginning *out);

/** Reads up to `bytes` bytes at `offset` of an open file, fewer if it ends. `*got`: the bytes
 * read. */
tsr_status tsr_read_at(const char *path, int file, size_t offset, void *to, size_t bytes, size_t *got);

/** Opens a file to read, without waiting for the writer of a pipe. The caller closes `*out`. */
tsr_status tsr_open_to_read(const char *path, int *out);

/** Frees what was read; a zeroed one is fine. */
void tsr_beginning_free(tsr_beginning *beginning);

#endif
