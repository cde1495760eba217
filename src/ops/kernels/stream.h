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

/* Copies `bytes` bytes, and streams the whole lines of the destination. */
static void stream_bytes(const void *from, void *to, int64_t bytes)
{
    const char *const source = from;
    char *const target = to;
    const int64_t missing = (int64_t)(-(uintptr_t)target & (STREAM_LINE - 1)), head = missing < bytes ? missing : bytes;
    int64_t at = head;
    if (head)
        memcpy(target, source, (size_t)head);
    for (; at + STREAM_LINE <= bytes; at += STREAM_LINE) {
#if defined(__AVX512F__)
        _mm512_stream_si512((void *)(target + at), _mm512_loadu_si512((const void *)(source + at)));
#elif defined(__AVX2__)
        _mm256_stream_si256((void *)(target + at), _mm256_loadu_si256((const void *)(source + at)));
        _mm256_stream_si256((void *)(target + at + 32), _mm256_loadu_si256((const void *)(source + at + 32)));
#elif defined(__SSE2__)
        for (int64_t k = at; k < at + STREAM_LINE; k += 16)
            _mm_stream_si128((void *)(target + k), _mm_loadu_si128((const void *)(source + k)));
#else
        memcpy(target + at, source + at, STREAM_LINE);
#endif
    }
    if (at < bytes)
        memcpy(target + at, source + at, (size_t)(bytes - at));
}

/* Makes streamed stores visible before this thread's next stores. */
static void stream_finish(void)
{
#if defined(__SSE2__)
    _mm_sfence();
#endif
}

#endif
