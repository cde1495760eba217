/** The beginning of a file, or all of it, in memory. */
#ifndef LLAMA_FILE_H
#define LLAMA_FILE_H

#include <tessera/status.h>

#include <stddef.h>

/** Upper bound of the size of a model's JSON files. */
#define LLAMA_DESCRIPTION_BYTES ((size_t)100000000)

typedef struct llama_file {
    char *data;   /**< on the heap */
    size_t bytes; /**< read into `data` */
    size_t size;  /**< bytes of the whole file */
} llama_file;

/** Reads the first `most` bytes of a regular file, or all of a shorter one. The caller frees them
 * with llama_file_finish(). TSR_ERROR_IO: reading failed; the sentence has the reason. */
tsr_status llama_file_read(const char *path, size_t most, llama_file *out);

/** Reads a whole file of at most LLAMA_DESCRIPTION_BYTES. */
tsr_status llama_file_read_description(const char *path, llama_file *out);

void llama_file_finish(llama_file *file);

#endif
