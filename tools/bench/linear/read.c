#include "bench/linear/read.h"

#include <stdint.h>
#include <string.h>

/* Compiled once for each instruction set; the loader picks one. Not with sanitizers, which cannot
 * run that early. */
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) &&               \
    !defined(__SANITIZE_THREAD__)
#define READING __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define READING
#endif

/* Number of streams, and 64-bit words of each in a step: two vectors of the widest kind. */
enum { STREAMS = 4, WORDS = 16 };

static READING uint64_t combine(const char *memory, size_t stream_bytes)
{
    uint64_t lanes[STREAMS][WORDS] = {0}, all = 0;
    for (size_t at = 0; at + sizeof lanes[0] <= stream_bytes; at += sizeof lanes[0])
        for (int s = 0; s < STREAMS; s++) {
            uint64_t words[WORDS];
            memcpy(words, memory + (size_t)s * stream_bytes + at, sizeof words);
            for (int w = 0; w < WORDS; w++)
                lanes[s][w] ^= words[w];
        }
    for (int s = 0; s < STREAMS; s++)
        for (int w = 0; w < WORDS; w++)
            all ^= lanes[s][w];
    return all;
}

void bench_read(const void *memory, size_t bytes)
{
    /* volatile, so that the compiler does not remove the reading */
    volatile uint64_t result = combine(memory, bytes / STREAMS);
    (void)result;
}
