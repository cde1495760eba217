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
#include <cpuid.h>
#include <immintrin.h>

/* Bytes from `at` to the next multiple of `alignment`, at most `bytes`. */
static size_t head_bytes(const void *at, size_t alignment, size_t bytes)
{
    const size_t head = (alignment - (uintptr_t)at % alignment) % alignment;
    return head < bytes ? head : bytes;
}

/* CPUID leaf 1, ECX; leaf 7, EBX; XCR0: the system saves the registers of AVX, and of AVX-512
 * (Intel SDM volume 1, 13.3; volume 2A, CPUID). __builtin_cpu_supports() would bring a static
 * constructor into the library. */
#define LEAF1_OSXSAVE (1u << 27)
#define LEAF1_AVX     (1u << 28)
#define LEAF7_AVX512F (1u << 16)
#define STATE_AVX     0x06u
#define STATE_AVX512  0xe6u

static int saves(uint32_t state)
{
    uint32_t low, high;
    __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
    return (low & state) == state;
}

static int has_avx(void)
{
    const uint32_t wanted = LEAF1_OSXSAVE | LEAF1_AVX;
    uint32_t a, b, c, d;
    return __get_cpuid(1, &a, &b, &c, &d) && (c & wanted) == wanted && saves(STATE_AVX);
}

static int has_wide(void)
{
    uint32_t a, b, c, d;
    return has_avx() && __get_cpuid_count(7, 0, &a, &b, &c, &d) && (b & LEAF7_AVX512F) && saves(STATE_AVX512);
}

/* Copies blocks of STREAMED bytes to an aligned destination, with stores that bypass the caches. */
typedef void copy_blocks(char *to, const char *from, size_t blocks);
#define STREAMED 128

static __attribute__((target("avx"))) void copy_blocks_of_32(char *to, const char *from, size_t blocks)
{
    for (; blocks > 0; blocks--, to += STREAMED, from += STREAMED) {
        const __m256i a = _mm256_loadu_si256((const __m256i *)from),
                      b = _mm256_loadu_si256((const __m256i *)(from + 32));
        const __m256i c = _mm256_loadu_si256((const __m256i *)(from + 64)),
                      d = _mm256_loadu_si256((const __m256i *)(from + 96));
        _mm256_stream_si256((__m256i *)to, a);
        _mm256_stream_si256((__m256i *)(to + 32), b);
        _mm256_stream_si256((__m256i *)(to + 64), c);
        _mm256_stream_si256((__m256i *)(to + 96), d);
    }
}

static __attribute__((target("avx512f"))) void copy_blocks_of_64(char *to, const char *from, size_t blocks)
{
    for (; blocks > 0; blocks--, to += STREAMED, from += STREAMED) {
        const __m512i a = _mm512_loadu_si512(from), b = _mm512_loadu_si512(from + 64);
        _mm512_stream_si512((__m512i *)to, a);
        _mm512_stream_si512((__m512i *)(to + 64), b);
    }
}

/* Copies what is around the blocks, and the blocks by `copy`. */
static void copy_by_blocks(void *dst, const void *src, size_t bytes, copy_blocks *copy)
{
    const size_t head = head_bytes(dst, STREAMED, bytes), blocks = (bytes - head) / STREAMED;
    char *const to = (char *)dst + head, *const rest = to + blocks * STREAMED;
    const char *const from = (const char *)src + head;
    memcpy(dst, src, head);
    copy(to, from, blocks);
    memcpy(rest, from + blocks * STREAMED, bytes - head - blocks * STREAMED);
    _mm_sfence();
}

static void copy_streaming(void *dst, const void *src, size_t bytes)
{
    copy_by_blocks(dst, src, bytes, copy_blocks_of_32);
}

static void copy_streaming_wide(void *dst, const void *src, size_t bytes)
{
    copy_by_blocks(dst, src, bytes, copy_blocks_of_64);
}
#endif

/* The copies, from the one that every processor has to the widest. */
static const struct {
    const char *name;
    int (*runs_here)(void); /* 1 if this processor has the instructions, else 0 */
    tsr_bench_copier *copy;
} rows[] = {
    {"memcpy", always, copy_memcpy},
#if defined(__x86_64__)
    {"non-temporal 32", has_avx, copy_streaming},
    {"non-temporal 64", has_wide, copy_streaming_wide},
#endif
};

tsr_bench_copier *tsr_bench_copier_get(int index, const char **name)
{
    for (size_t i = 0; i < sizeof rows / sizeof *rows && index >= 0; i++)
        if (rows[i].runs_here() && index-- == 0) {
            if (name)
                *name = rows[i].name;
            return rows[i].copy;
        }
    return NULL;
}
