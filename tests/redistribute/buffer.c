#include "buffer.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { GUARD = 64, PATTERN = 0xA7 };

/* Random strides: dims in a random order from the innermost out, with gaps. Returns the elements
 * from first to last. */
static int64_t random_strides(tsr_tensor *view, oracle_random *random)
{
    int left[TSR_MAX_DIMS], count = view->ndim;
    for (int d = 0; d < count; d++)
        left[d] = d;
    int64_t stride = 1 + oracle_random_below(random, 2), span = 1;
    while (count > 0) {
        const int at = (int)oracle_random_below(random, count), dim = left[at];
        left[at] = left[--count];
        view->strides[dim] = stride;
        span += (view->shape[dim] > 0 ? view->shape[dim] - 1 : 0) * stride;
        stride = stride * (view->shape[dim] > 0 ? view->shape[dim] : 1) + oracle_random_below(random, 3);
        if (view->shape[dim] == 1 && oracle_random_below(random, 2) == 0)
            view->strides[dim] = oracle_random_below(random, 1000); /* a dim of size 1 does not use its stride */
    }
    return span;
}

static int64_t element_count(const tsr_tensor *view)
{
    int64_t count = 1;
    for (int d = 0; d < view->ndim; d++)
        count *= view->shape[d];
    return count;
}

void buffer_create(local_buffer *out, tsr_dtype dtype, int ndim, const int64_t *shape, oracle_random *random)
{
    const size_t element = oracle_bytes(dtype);
    *out = (local_buffer){.view = {.dtype = dtype, .ndim = ndim}};
    int64_t span = 1;
    for (int d = ndim - 1; d >= 0; d--) {
        out->view.shape[d] = shape[d];
        out->view.strides[d] = span;
        span *= shape[d] > 0 ? shape[d] : 1;
    }
    size_t before = GUARD;
    if (random) {
        span = random_strides(&out->view, random);
        before += element * (size_t)oracle_random_below(random, 4);
    }
    out->bytes = before + (size_t)span * element + GUARD;
    out->base = malloc(out->bytes);
    memset(out->base, PATTERN, out->bytes);
    out->view.data = out->base + before;
}

void buffer_destroy(local_buffer *buffer)
{
    free(buffer->base);
    buffer->base = NULL;
}

/* The byte offset in `base` of the element with row-major number `number`. */
static size_t offset_of(const local_buffer *buffer, int64_t number)
{
    int64_t offset = 0;
    for (int d = buffer->view.ndim - 1; d >= 0; d--) {
        offset += number % buffer->view.shape[d] * buffer->view.strides[d];
        number /= buffer->view.shape[d];
    }
    return (size_t)((unsigned char *)buffer->view.data - buffer->base) +
           (size_t)offset * oracle_bytes(buffer->view.dtype);
}

static void put(const local_buffer *buffer, unsigned char *base, const unsigned char *elements)
{
    const size_t element = oracle_bytes(buffer->view.dtype);
    const int64_t count = element_count(&buffer->view);
    for (int64_t i = 0; i < count; i++)
        memcpy(base + offset_of(buffer, i), elements + (size_t)i * element, element);
}

void buffer_put(const local_buffer *buffer, const unsigned char *elements)
{
    put(buffer, buffer->base, elements);
}

void buffer_get(const local_buffer *buffer, unsigned char *elements)
{
    const size_t element = oracle_bytes(buffer->view.dtype);
    const int64_t count = element_count(&buffer->view);
    for (int64_t i = 0; i < count; i++)
        memcpy(elements + (size_t)i * element, buffer->base + offset_of(buffer, i), element);
}

static void print_bytes(char *text, size_t capacity, const unsigned char *bytes, size_t count)
{
    text[0] = '\0';
    for (size_t i = count; i-- > 0;)
        snprintf(text + strlen(text), capacity - strlen(text), "%02x", bytes[i]);
}

static void say_difference(const local_buffer *buffer, const unsigned char *elements, const unsigned char *wanted,
                           char *text, size_t capacity)
{
    const size_t element = oracle_bytes(buffer->view.dtype);
    const int64_t count = element_count(&buffer->view);
    for (int64_t i = 0; i < count; i++) {
        const unsigned char *is = buffer->base + offset_of(buffer, i);
        if (memcmp(is, elements + (size_t)i * element, element) == 0)
            continue;
        char got[40], want[40];
        print_bytes(got, sizeof got, is, element);
        print_bytes(want, sizeof want, elements + (size_t)i * element, element);
        snprintf(text, capacity, "local element %lld of %lld is %s, not %s", (long long)i, (long long)count, got, want);
        return;
    }
    size_t at = 0;
    while (buffer->base[at] == wanted[at])
        at++;
    snprintf(text, capacity, "byte %zu of %zu, between or around the elements, was written", at, buffer->bytes);
}

bool buffer_holds(const local_buffer *buffer, const unsigned char *elements, char *text, size_t capacity)
{
    unsigned char *wanted = malloc(buffer->bytes);
    memset(wanted, PATTERN, buffer->bytes);
    put(buffer, wanted, elements);
    const bool equal = memcmp(wanted, buffer->base, buffer->bytes) == 0;
    if (!equal)
        say_difference(buffer, elements, wanted, text, capacity);
    free(wanted);
    return equal;
}
