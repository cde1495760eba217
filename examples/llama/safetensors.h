/**
 * The header of a safetensors file: which tensor lies where.
 * https://github.com/huggingface/safetensors#format
 *
 * The file is eight bytes with the header's length (little-endian), the header (JSON), and the
 * tensors' bytes without gaps. It is treated as hostile: every claim of the header is checked
 * against the file.
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
    int64_t offset; /**< of the first byte, from the beginning of the file */
    int64_t bytes;
} safetensors_entry;

/** Checks and indexes a whole file in memory, which error sentences call `name`. Keeps no pointer
 * to `data`. TSR_ERROR_ARGUMENT: the file is truncated, its header violates the format, or tensors
 * overlap, leave gaps or have a size that does not fit their shape. */
tsr_status safetensors_parse(const char *name, const void *data, size_t bytes, safetensors **out);

/** safetensors_parse() of a file on disk, of which only the header is read. */
tsr_status safetensors_open(const char *path, safetensors **out);

void safetensors_close(safetensors *file);

/** The tensor called `name`, borrowed; NULL if there is none. */
const safetensors_entry *safetensors_find(const safetensors *file, const char *name);

#endif
