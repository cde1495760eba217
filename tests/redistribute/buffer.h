/** A local tensor in its own memory, contiguous or with odd strides and gaps, in which stray writes
 * are found. */
#ifndef TESTS_REDISTRIBUTE_BUFFER_H
#define TESTS_REDISTRIBUTE_BUFFER_H

#include "oracle_random.h"

#include <tessera/tensor.h>

typedef struct local_buffer {
    unsigned char *base;
    size_t bytes;
    tsr_tensor view; /**< the tensor, in `base`, with guard bytes before and behind it */
} local_buffer;

/** Makes a tensor, contiguous if `random` is NULL; fills elements and gaps with a pattern. */
void buffer_create(local_buffer *out, tsr_dtype dtype, int ndim, const int64_t *shape, oracle_random *random);
void buffer_destroy(local_buffer *buffer);

/** Copy contiguous bytes to the elements, in row-major order, and back. */
void buffer_put(const local_buffer *buffer, const unsigned char *elements);
void buffer_get(const local_buffer *buffer, unsigned char *elements);

/** True if the elements are `elements` and all other bytes are still the pattern; else `text` tells
 * the first difference. */
bool buffer_holds(const local_buffer *buffer, const unsigned char *elements, char *text, size_t capacity);

#endif
