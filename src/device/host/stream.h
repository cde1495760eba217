/** Stores that bypass the cache: a large destination is neither read before it is written nor left to push useful lines out. */
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

/** Calls that write fewer bytes than this stay in the cache, where the reader that follows finds them. */
#define STREAM_TOTAL ((size_t)4 << 20)

/** Runs shorter than this are copied by ordinary stores: their first and last line are partial, and would be most of them. */
#define STREAM_RUN 512

/* `dst` is aligned to a line, `bytes` is a multiple of one. */
static inline void stream_lines(char *dst, const char *src, size_t bytes)
{
#if defined(__AVX512F__)
    for (size_t i = 0; i < bytes; i += STREAM_LINE)
        _mm512_stream_si512((void *)(dst + i), _mm512_loadu_si512((const void *)(src + i)));
#elif defined(__AVX2__)
    for (size_t i = 0; i < bytes; i += STREAM_LINE) {
        const __m256i low = _mm256_loadu_si256((const void *)(src + i)), high = _mm256_loadu_si256((const void *)(src + i + 32));
        _mm256_stream_si256((void *)(dst + i), low);
        _mm256_stream_si256((void *)(dst + i + 32), high);
    }
#elif defined(__SSE2__)
    for (size_t i = 0; i < bytes; i += STREAM_LINE)
        for (size_t k = 0; k < STREAM_LINE; k += 16)
            _mm_stream_si128((void *)(dst + i + k), _mm_loadu_si128((const void *)(src + i + k)));
#else
    memcpy(dst, src, bytes);
#endif
}

/** `bytes` is at least STREAM_LINE. */
static inline void stream_copy(char *dst, const char *src, size_t bytes)
{
    const size_t head = (size_t)(-(uintptr_t)dst & (STREAM_LINE - 1));
    const size_t lines = (bytes - head) & ~(size_t)(STREAM_LINE - 1);
    memcpy(dst, src, head);
    stream_lines(dst + head, src + head, lines);
    memcpy(dst + head + lines, src + head + lines, bytes - head - lines);
}

/** Makes streamed stores visible before whatever this thread stores next; once at the end of a call. */
static inline void stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
