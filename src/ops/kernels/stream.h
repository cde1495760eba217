/** Stores that bypass the cache: a large result is not read before it is written, and does not push
 * operands out of the cache. For kernels alone. */
#ifndef TSR_OPS_KERNELS_STREAM_H
#define TSR_OPS_KERNELS_STREAM_H

#include <stdint.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

/** A cache line, which is what one streaming transaction writes. */
#define STREAM_LINE 64

/** How far ahead of their use operands are fetched where results are streamed, in bytes: arithmetic
 * leaves memory idle else, and the processor itself fetches no further than to a page's end. */
#define STREAM_AHEAD 2048

/* Fetches the line STREAM_AHEAD behind `at`. There may be none: a prefetch does not fault. */
static inline void stream_fetch(const void *at)
{
    __builtin_prefetch((const void *)((uintptr_t)at + STREAM_AHEAD), 0, 3);
}

/* Copies one line to a whole line, past the cache. */
static inline void stream_line(const void *from, void *to)
{
#if defined(__AVX512F__)
    _mm512_stream_si512(to, _mm512_loadu_si512(from));
#elif defined(__AVX2__)
    _mm256_stream_si256(to, _mm256_loadu_si256(from));
    _mm256_stream_si256((__m256i *)to + 1, _mm256_loadu_si256((const __m256i *)from + 1));
#elif defined(__SSE2__)
    for (int i = 0; i < STREAM_LINE / 16; i++)
        _mm_stream_si128((__m128i *)to + i, _mm_loadu_si128((const __m128i *)from + i));
#else
    memcpy(to, from, STREAM_LINE);
#endif
}

/* Copies `bytes` bytes, and streams the whole lines of the destination. */
static inline void stream_bytes(const void *from, void *to, int64_t bytes)
{
    const char *const source = from;
    char *const target = to;
    const int64_t missing = (int64_t)(-(uintptr_t)target & (STREAM_LINE - 1)), head = missing < bytes ? missing : bytes;
    int64_t at = head;
    if (head)
        memcpy(target, source, (size_t)head);
    for (; at + STREAM_LINE <= bytes; at += STREAM_LINE)
        stream_line(source + at, target + at);
    if (at < bytes)
        memcpy(target + at, source + at, (size_t)(bytes - at));
}

/* Makes streamed stores visible before this thread's next stores. */
static inline void stream_finish(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
