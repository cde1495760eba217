/** A file in memory, read-only. */
#ifndef LLAMA_FILE_H
#define LLAMA_FILE_H

#include <stddef.h>
#include <tessera/status.h>

typedef struct llama_file {
    const char *data; /**< NULL for an empty file */
    size_t bytes;
} llama_file;

/** Maps a regular file. TSR_ERROR_IO, with the reason, where there is none. */
tsr_status llama_file_map(const char *path, llama_file *out);
void llama_file_unmap(llama_file *file);

#endif
