/** Stores that bypass the cache: a large destination is not read before it is written, and does not
 * push useful lines out of the cache. */
#ifndef TSR_DEVICE_HOST_STREAM_H
#define TSR_DEVICE_HOST_STREAM_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/** A cache line, which is what one streaming transaction writes. */
#define STREAM_LINE 64

/* Streams one line; `dst` is a multiple of STREAM_LINE. */
static inline void stream_line(char *dst, const char *src)
{
#if defined(__AVX512F__)
    _mm512_stream_si512((void *)dst, _mm512_loadu_si512((const void *)src));
#elif defined(__AVX2__)
    const __m256i low = _mm256_loadu_si256((const void *)src), high = _mm256_loadu_si256((const void *)(src + 32));
    _mm256_stream_si256((void *)dst, low);
    _mm256_stream_si256((void *)(dst + 32), high);
#elif defined(__SSE2__)
    for (size_t k = 0; k < STREAM_LINE; k += 16)
        _mm_stream_si128((void *)(dst + k), _mm_loadu_si128((const void *)(src + k)));
#else
    memcpy(dst, src, STREAM_LINE);
#endif
}

/* Bytes from `dst` to the first line that begins at or behind it. */
static inline size_t stream_head(const char *dst)
{
    return (size_t)(-(uintptr_t)dst & (STREAM_LINE - 1));
}

/* The bytes of the whole lines in `bytes` bytes. */
static inline size_t stream_whole(size_t bytes)
{
    return bytes & ~(size_t)(STREAM_LINE - 1);
}

/** Copies `bytes` bytes, at least STREAM_LINE, and streams the whole lines of the destination. */
static inline void stream_copy(char *dst, const char *src, size_t bytes)
{
    const size_t head = stream_head(dst), end = head + stream_whole(bytes - head);
    memcpy(dst, src, head);
    for (size_t i = head; i < end; i += STREAM_LINE)
        stream_line(dst + i, src + i);
    memcpy(dst + end, src + end, bytes - end);
}

/** Makes streamed stores visible before this thread's next stores; called once at the end of a
 * call. */
static inline void stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
