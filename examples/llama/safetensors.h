/**
 * The header of a safetensors file: which tensor lies where. https://github.com/huggingface/safetensors#format
 *
 * Eight bytes with the header's length (little-endian), the header (JSON), the tensors' bytes, without gaps. The file is taken for
 * hostile: nothing in its header is believed before it is checked against the file.
 */
#ifndef LLAMA_SAFETENSORS_H
#define LLAMA_SAFETENSORS_H

#include <tessera/tensor.h>

typedef struct safetensors safetensors;

typedef struct safetensors_entry {
    char *name;
    tsr_dtype dtype;
    int ndim;
    int64_t shape[TSR_MAX_DIMS];
    int64_t offset; /**< of its first byte in the file */
    int64_t bytes;
} safetensors_entry;

/**
 * Checks and indexes a whole file in memory; `name` is what sentences call it. Keeps nothing of `data`. TSR_ERROR_ARGUMENT: the file is
 * truncated, its header is not what the format asks for, or tensors overlap, leave gaps or lie about their sizes.
 */
tsr_status safetensors_parse(const char *name, const void *data, size_t bytes, safetensors **out);

/** The same for a file on disk, of which only the header is read. */
tsr_status safetensors_open(const char *path, safetensors **out);

void safetensors_close(safetensors *file);

/** NULL if there is no tensor of that name. Borrowed. */
const safetensors_entry *safetensors_find(const safetensors *file, const char *name);

#endif
