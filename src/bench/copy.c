#include <tessera/bench.h>

#include <stdint.h>
#include <string.h>

static int always(void)
{
    return 1;
}

static void copy_memcpy(void *dst, const void *src, size_t bytes)
{
    memcpy(dst, src, bytes);
}

#if defined(__x86_64__)
#include <immintrin.h>

/* Bytes from `at` to the next multiple of `alignment`, at most `bytes`. */
static size_t head_bytes(const void *at, size_t alignment, size_t bytes)
{
    const size_t head = (alignment - (uintptr_t)at % alignment) % alignment;
    return head < bytes ? head : bytes;
}

static int has_avx(void)
{
    return __builtin_cpu_supports("avx") != 0;
}

static int has_wide(void)
{
    return __builtin_cpu_supports("avx512f") != 0;
}

__attribute__((target("avx"))) static void copy_streaming(void *dst, const void *src, size_t bytes)
{
    const size_t head = head_bytes(dst, 128, bytes);
    memcpy(dst, src, head);
    char *to = (char *)dst + head;
    const char *from = (const char *)src + head;
    size_t left = bytes - head;
    for (; left >= 128; left -= 128, to += 128, from += 128) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)from),
                      b = _mm256_loadu_si256((const __m256i *)(from + 32));
        const __m256i c = _mm256_loadu_si256((const __m256i *)(from + 64)),
                      d = _mm256_loadu_si256((const __m256i *)(from + 96));
        _mm256_stream_si256((__m256i *)to, a);
        _mm256_stream_si256((__m256i *)(to + 32), b);
        _mm256_stream_si256((__m256i *)(to + 64), c);
        _mm256_stream_si256((__m256i *)(to + 96), d);
    }
    memcpy(to, from, left);
    _mm_sfence();
}

__attribute__((target("avx512f"))) static void copy_streaming_wide(void *dst, const void *src, size_t bytes)
{
    const size_t head = head_bytes(dst, 128, bytes);
    memcpy(dst, src, head);
    char *to = (char *)dst + head;
    const char *from = (const char *)src + head;
    size_t left = bytes - head;
    for (; left >= 128; left -= 128, to += 128, from += 128) {
        const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
        _mm512_stream_si512((__m512i *)to, a);
        _mm512_stream_si512((__m512i *)(to + 64), b);
    }
    memcpy(to, from, left);
    _mm_sfence();
}
#endif

/* The copies, from the one that every processor has to the widest. */
static const struct {
    const char *name;
    int (*runs_here)(void); /* 1 if this processor has the instructions, else 0 */
    void (*copy)(void *dst, const void *src, size_t bytes);
} rows[] = {
    {"memcpy", always, copy_memcpy},
#if defined(__x86_64__)
    {"non-temporal 32", has_avx, copy_streaming},
    {"non-temporal 64", has_wide, copy_streaming_wide},
#endif
};
#define ROWS (sizeof rows / sizeof *rows)

/* The row of copy `index` among those that this processor can run; ROWS past the last. */
static size_t find_row(int index)
{
    for (size_t i = 0; i < ROWS && index >= 0; i++)
        if (rows[i].runs_here() && index-- == 0)
            return i;
    return ROWS;
}

const char *tsr_bench_copy_name(int index)
{
    const size_t row = find_row(index);
    return row < ROWS ? rows[row].name : NULL;
}

void tsr_bench_copy_once(int index, void *dst, const void *src, size_t bytes)
{
    const size_t row = find_row(index);
    if (row < ROWS)
        rows[row].copy(dst, src, bytes);
}
