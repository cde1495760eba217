/** The text of a safetensors file's header. */
#ifndef TSR_FILES_HEADER_TEXT_H
#define TSR_FILES_HEADER_TEXT_H

#include <tessera/safetensors.h>

/** A tensor of the file. */
typedef struct tsr_header_tensor {
    const char *name;
    tsr_dtype dtype;
    int ndim;
    const int64_t *shape;
    int64_t offset; /**< of its first byte behind the header; set */
} tsr_header_tensor;

typedef struct tsr_header_text {
    char *text; /**< with the prefix of its length; the caller frees it */
    size_t bytes;
    int64_t data_bytes; /**< of the tensors, behind the header */
} tsr_header_text;

/** Makes the header of tensors that lie one behind the other in this order. `call` is the public
 * call, for error sentences. TSR_ERROR_ARGUMENT: a name or key comes twice or is not UTF-8, or
 * there are too many bytes. */
tsr_status tsr_header_print(const char *call, size_t count, tsr_header_tensor *tensors, size_t metadata_count,
                            const tsr_safetensors_text *metadata, tsr_header_text *out);

/** Checks a tensor to write, of `comm`, and settles its dtype. */
tsr_status tsr_header_check(const char *call, const tsr_comm *comm, size_t index, tsr_safetensors_tensor *tensor);

/** Compares two tensors to write, for qsort(): those with larger elements come first, then by name,
 * so that each begins at a multiple of its elements' size. */
int tsr_header_order(const void *a, const void *b);

#endif
