/** A local tensor in memory of its own, contiguous or with odd strides and gaps, whose every byte is watched. */
#ifndef TESTS_REDISTRIBUTE_BUFFER_H
#define TESTS_REDISTRIBUTE_BUFFER_H

#include "oracle_random.h"
#include <tessera/tensor.h>

typedef struct local_buffer {
    unsigned char *base;
    size_t bytes;
    tsr_tensor view; /**< into `base`, behind and before bytes that nobody may touch */
} local_buffer;

/** `random` NULL: contiguous. The gaps, and the elements too, hold a pattern. */
void buffer_create(local_buffer *out, tsr_dtype dtype, int ndim, const int64_t *shape, oracle_random *random);
void buffer_destroy(local_buffer *buffer);

/** Elements in row-major order from contiguous bytes, and back. */
void buffer_put(const local_buffer *buffer, const unsigned char *elements);
void buffer_get(const local_buffer *buffer, unsigned char *elements);

/** True if the elements are `elements` and all other bytes are still the pattern; else `text` says what differs first. */
bool buffer_holds(const local_buffer *buffer, const unsigned char *elements, char *text, size_t capacity);

#endif
