/** The beginning of a file, or all of it, in memory. */
#ifndef LLAMA_FILE_H
#define LLAMA_FILE_H

#include <stddef.h>
#include <tessera/status.h>

/** More than any description of a model has. */
#define LLAMA_DESCRIPTION_BYTES ((size_t)100000000)

typedef struct llama_file {
    char *data;   /**< on the heap */
    size_t bytes; /**< how many were read */
    size_t size;  /**< of the whole file */
} llama_file;

/** Reads the first `most` bytes of a regular file, or as many as it has; the caller frees them with
 * llama_file_finish(). TSR_ERROR_IO, with the reason, where that fails. */
tsr_status llama_file_read(const char *path, size_t most, llama_file *out);

/** Reads all of a file of at most LLAMA_DESCRIPTION_BYTES. */
tsr_status llama_file_read_description(const char *path, llama_file *out);

void llama_file_finish(llama_file *file);

#endif
