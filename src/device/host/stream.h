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

/**
 * Calls that write fewer bytes than this stay in the cache. Measured on two threads of a processor with 1 MiB of second- and 32 MiB of
 * third-level cache: streaming alone is faster from 4 MiB a call on, but slower up to 8 MiB where somebody then reads the result, and
 * somebody does.
 */
#define STREAM_TOTAL ((size_t)8 << 20)

/** Runs shorter than this are copied by ordinary stores: their first and last lines are partial, and too many of their lines. Measured
 * there too, against ordinary stores: 0.4 of the speed at 256 bytes, 0.8 at 512, 1.7 at 1,024. */
#define STREAM_RUN 1024

/** How far ahead of the copy its source is fetched. Processors fetch ahead by themselves within a page and along one sequence of addresses;
 * rows of a few pages are over before that has taken hold. Measured: 5 to 20 % more for rows of 16 KiB. */
#define STREAM_AHEAD 4096

/* `dst` is aligned to a line. */
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

/* Where the whole lines of a piece begin, and their bytes. */
static inline size_t stream_head(const char *dst)
{
    return (size_t)(-(uintptr_t)dst & (STREAM_LINE - 1));
}

static inline size_t stream_whole(size_t bytes)
{
    return bytes & ~(size_t)(STREAM_LINE - 1);
}

/** Copies what the cache holds already. `bytes` is at least STREAM_LINE. */
static inline void stream_copy(char *dst, const char *src, size_t bytes)
{
    const size_t head = stream_head(dst), end = head + stream_whole(bytes - head);
    memcpy(dst, src, head);
    for (size_t i = head; i < end; i += STREAM_LINE)
        stream_line(dst + i, src + i);
    memcpy(dst + end, src + end, bytes - end);
}

/** Copies what memory holds, and towards the end begins to fetch `next`, from where the caller will copy then. */
static inline void stream_copy_ahead(char *dst, const char *src, size_t bytes, const char *next)
{
    const size_t head = stream_head(dst), end = head + stream_whole(bytes - head);
    const size_t ahead = bytes < STREAM_AHEAD ? bytes : STREAM_AHEAD, turn = bytes - ahead;
    size_t i = head;
    memcpy(dst, src, head);
    for (; i < end && i < turn; i += STREAM_LINE) {
        __builtin_prefetch(src + i + ahead, 0, 0);
        stream_line(dst + i, src + i);
    }
    for (; i < end; i += STREAM_LINE) {
        __builtin_prefetch(next + (i - turn), 0, 0);
        stream_line(dst + i, src + i);
    }
    memcpy(dst + end, src + end, bytes - end);
}

/** Makes streamed stores visible before whatever this thread stores next; once at the end of a call. */
static inline void stream_fence(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
