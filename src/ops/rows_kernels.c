#include "ops/rows_kernels.h"

#include <stdbool.h>
#include <string.h>
#if defined(__SSE2__)
#include <immintrin.h>
#endif

#define NAME_(kernels) tsr_rows_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

/* Floats of the widest vector of the instruction set; PIECES of them are the TSR_ROWS_LANES
 * lanes. */
#if defined(__AVX512F__)
#define PIECE 16
#elif defined(__AVX2__)
#define PIECE 8
#else
#define PIECE 4
#endif
#define PIECES (TSR_ROWS_LANES / PIECE)

/* Results that are computed at once. With one row of x: ROWS rows of weights, each a stream of
 * memory and a chain of sums of its own. With several: SHARED_ROWS rows of weights times SHARED
 * rows of x, so that weights in a register serve all these rows; all sums must fit into the other
 * registers. */
#define ROWS 4
#if defined(__AVX512F__)
#define SHARED_ROWS 4
#define SHARED      4
#else
#define SHARED_ROWS 2
#define SHARED      2
#endif

typedef float piece __attribute__((vector_size(PIECE * 4)));
typedef uint32_t words __attribute__((vector_size(PIECE * 4)));
typedef float quad __attribute__((vector_size(16)));

#define INLINE __attribute__((always_inline))

/* Loads PIECE weights of one dtype as f32. A constant in every kernel, so that it is inlined. The
 * address need not be aligned: tensors in mapped files may not be. */
typedef piece load_piece(const void *at);

static inline INLINE piece load_f32(const void *at)
{
    piece value;
    memcpy(&value, at, sizeof value);
    return value;
}

#if defined(__AVX512F__)
static inline INLINE words load_codes(const void *at)
{
    return (words)_mm512_cvtepu16_epi32(_mm256_loadu_si256(at));
}
#elif defined(__AVX2__)
static inline INLINE words load_codes(const void *at)
{
    return (words)_mm256_cvtepu16_epi32(_mm_loadu_si128(at));
}
#else
static inline INLINE words load_codes(const void *at)
{
    typedef uint16_t codes __attribute__((vector_size(PIECE * 2)));
    codes value;
    memcpy(&value, at, sizeof value);
    return __builtin_convertvector(value, words);
}
#endif

/* A bf16 is the upper half of an f32. */
static inline INLINE piece load_bf16(const void *at)
{
    return (piece)(load_codes(at) << 16);
}

#if defined(__AVX512F__)
static inline INLINE piece load_f16(const void *at)
{
    return (piece)_mm512_cvtph_ps(_mm256_loadu_si256(at));
}
#elif defined(__F16C__)
static inline INLINE piece load_f16(const void *at)
{
    return (piece)_mm256_cvtph_ps(_mm_loadu_si128(at));
}
#else
/* A subnormal has the smallest normal's exponent but no leading 1; it is given one, which the
 * subtraction takes away. */
static inline INLINE piece load_f16(const void *at)
{
    const words code = load_codes(at), magnitude = code & 0x7fff, sign = (code & 0x8000) << 16,
                shifted = magnitude << 13;
    const words normal = shifted + (UINT32_C(112) << 23);
    const words subnormal = (words)((piece)(shifted + (UINT32_C(113) << 23)) - 0x1p-14f);
    const words is_subnormal = (words)(magnitude < 0x400), is_special = (words)(magnitude > 0x7bff);
    return (piece)((is_subnormal & subnormal) | (~is_subnormal & normal) | (is_special & 0x7f800000) | sign);
}
#endif

#if defined(__AVX512F__)
static inline INLINE piece load_i8(const void *at)
{
    return (piece)_mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128(at)));
}
#elif defined(__AVX2__)
static inline INLINE piece load_i8(const void *at)
{
    return (piece)_mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(at)));
}
#else
static inline INLINE piece load_i8(const void *at)
{
    typedef int8_t codes __attribute__((vector_size(PIECE)));
    typedef int32_t integers __attribute__((vector_size(PIECE * 4)));
    codes value;
    memcpy(&value, at, sizeof value);
    return __builtin_convertvector(__builtin_convertvector(value, integers), piece);
}
#endif

/* Folds 16 lanes to 4: s[l] + s[l + 8], then s[l] + s[l + 4]. */
static inline INLINE quad fold_to_quad(const piece sum[PIECES])
{
#if defined(__AVX512F__)
    const __m256 half =
        _mm256_add_ps(_mm512_castps512_ps256((__m512)sum[0]), _mm512_extractf32x8_ps((__m512)sum[0], 1));
    return (quad)_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#elif defined(__AVX2__)
    const __m256 half = (__m256)(sum[0] + sum[1]);
    return (quad)_mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
#else
    return (sum[0] + sum[2]) + (sum[1] + sum[3]);
#endif
}

/* Folds the 4 lanes of each of four results: (s[0] + s[2]) + (s[1] + s[3]). */
static inline INLINE quad fold_quads(quad a, quad b, quad c, quad d)
{
#if defined(__SSE2__)
    __m128 lane[4] = {(__m128)a, (__m128)b, (__m128)c, (__m128)d};
    _MM_TRANSPOSE4_PS(lane[0], lane[1], lane[2], lane[3]);
    return (quad)_mm_add_ps(_mm_add_ps(lane[0], lane[2]), _mm_add_ps(lane[1], lane[3]));
#else
    return (quad){(a[0] + a[2]) + (a[1] + a[3]), (b[0] + b[2]) + (b[1] + b[3]), (c[0] + c[2]) + (c[1] + c[3]),
                  (d[0] + d[2]) + (d[1] + d[3])};
#endif
}

/* `rows` rows of weights and `shared` rows of x, each to be multiplied with each. Both counts, and
 * `scaled`, are compile-time constants in every kernel. */
typedef struct block {
    load_piece *load;
    int64_t bytes; /* bytes of an element of w */
    int64_t ahead; /* bytes from a row of w to the row that is fetched meanwhile; 0: none is */
    int rows, shared;
    bool scaled; /* weights are multiplied by scales, one for each TSR_Q8_BLOCK */
    const float *scales[ROWS];
    const char *w[ROWS];
    const float *x[SHARED];
} block;

/* The lanes of sums of each row of w with each row of x. */
typedef piece sums[ROWS][SHARED][PIECES];

#define UNROLLED _Pragma("GCC unroll 4")

_Static_assert(TSR_Q8_BLOCK % TSR_ROWS_LANES == 0, "lanes have one scale");

static inline INLINE void add_lanes(const block *b, int64_t t, sums sum)
{
    UNROLLED for (int p = 0; p < PIECES; p++)
    {
        UNROLLED for (int r = 0; r < b->rows; r++)
        {
            piece weights = b->load(b->w[r] + (t + p * PIECE) * b->bytes);
            if (b->scaled)
                weights *= b->scales[r][t / TSR_Q8_BLOCK];
            UNROLLED for (int s = 0; s < b->shared; s++) sum[r][s][p] += load_f32(b->x[s] + t + p * PIECE) * weights;
        }
    }
}

/* A line of memory, in bytes. */
#define LINE 64

/* Fetches the rows of the next block, a line of each, into the second-level cache. Rows are short,
 * and the processor's own prefetching starts anew in each. Fetching beyond the last row does no
 * harm. */
static inline INLINE void fetch_ahead(const block *b, int64_t t)
{
    if (b->ahead && t * b->bytes % LINE == 0)
        UNROLLED for (int r = 0; r < b->rows; r++)
            __builtin_prefetch((const void *)((uintptr_t)b->w[r] + (uintptr_t)(b->ahead + t * b->bytes)), 0, 2);
}

/* Adds the terms from `t` on, fewer than TSR_ROWS_LANES. They are padded with zeros, which leave
 * each sum unchanged, because no sum is ever -0. */
static inline INLINE void add_rest(const block *b, int64_t t, int64_t count, sums sum)
{
    char w[TSR_ROWS_LANES * sizeof(float)] = {0};
    float x[TSR_ROWS_LANES] = {0};
    UNROLLED for (int r = 0; r < b->rows; r++)
    {
        memcpy(w, b->w[r] + t * b->bytes, (size_t)(count * b->bytes));
        UNROLLED for (int s = 0; s < b->shared; s++)
        {
            memcpy(x, b->x[s] + t, (size_t)count * sizeof(float));
            UNROLLED for (int p = 0; p < PIECES; p++) sum[r][s][p] +=
                load_f32(x + p * PIECE) * b->load(w + p * PIECE * b->bytes);
        }
    }
}

/* Computes to[s][r] for all rows s of x and the first `count` rows r of weights. */
static inline INLINE void dot_block(const block *b, int64_t k, float *const *to, int count)
{
    sums sum = {0};
    int64_t t = 0;
    for (; t + TSR_ROWS_LANES <= k; t += TSR_ROWS_LANES) {
        fetch_ahead(b, t);
        add_lanes(b, t, sum);
    }
    if (t < k)
        add_rest(b, t, k - t, sum);
    UNROLLED for (int s = 0; s < b->shared; s++)
    {
        quad folded[ROWS];
        UNROLLED for (int r = 0; r < ROWS; r++) folded[r] = fold_to_quad(sum[r < b->rows ? r : 0][s]);
        const quad results = fold_quads(folded[0], folded[1], folded[2], folded[3]);
        if (count == b->rows)
            memcpy(to[s], &results, (size_t)b->rows * sizeof(float));
        else
            memcpy(to[s], &results, (size_t)count * sizeof(float));
    }
}

/* Computes the results of `rows` rows of w from `j` on with `shared` rows of x from `i` on. If
 * fewer rows are left, the last row takes the place of the missing ones, and its results may be
 * written several times. */
static inline INLINE void dot_rows(const tsr_rows_part *part, load_piece *load, int64_t bytes, int64_t j, int64_t i,
                                   int rows, int shared, bool scaled)
{
    block b = {.load = load,
               .bytes = bytes,
               .ahead = i == 0 ? rows * part->w_ld * bytes : 0,
               .rows = rows,
               .shared = shared,
               .scaled = scaled};
    const int64_t last_j = part->n - 1, last_i = part->m - 1;
    float *to[SHARED];
    UNROLLED for (int r = 0; r < rows; r++) b.w[r] =
        (const char *)part->w + (j + r < last_j ? j + r : last_j) * part->w_ld * bytes;
    UNROLLED for (int r = 0; scaled && r < rows; r++) b.scales[r] =
        part->scales + (j + r < last_j ? j + r : last_j) * part->scales_ld;
    UNROLLED for (int s = 0; s < shared; s++)
    {
        const int64_t row = i + s < last_i ? i + s : last_i;
        b.x[s] = part->x + row * part->x_ld;
        to[s] = part->sums + row * part->sums_ld + j;
    }
    dot_block(&b, part->k, to, j + rows <= part->n ? rows : (int)(part->n - j));
}

/* Weights are read from memory once: for the rows of x behind the first block they are in the
 * cache. */
static inline INLINE void make_dots(const tsr_rows_part *part, load_piece *load, int64_t bytes, bool scaled)
{
    if (part->m == 1) {
        for (int64_t j = 0; j < part->n; j += ROWS)
            dot_rows(part, load, bytes, j, 0, ROWS, 1, scaled);
        return;
    }
    for (int64_t j = 0; j < part->n; j += SHARED_ROWS)
        for (int64_t i = 0; i < part->m; i += SHARED)
            dot_rows(part, load, bytes, j, i, SHARED_ROWS, SHARED, scaled);
}

/* Rows of weights whose terms are added while a sum stays in a register. */
#define TERMS 4

/* Adds the terms of `terms` rows of weights from `t` on to `count` results from `j` on, PIECE at
 * most. */
static inline INLINE void add_terms(const tsr_rows_part *part, load_piece *load, int64_t bytes, int64_t t, int64_t j,
                                    int terms, int count)
{
    piece weights[TERMS];
    UNROLLED for (int r = 0; r < terms; r++)
    {
        const char *const at = (const char *)part->w + ((t + r) * part->w_ld + j) * bytes;
        char rest[PIECE * sizeof(float)] = {0};
        if (count < PIECE)
            memcpy(rest, at, (size_t)(count * bytes));
        weights[r] = load(count < PIECE ? rest : at);
    }
    for (int64_t i = 0; i < part->m; i++) {
        float x[TERMS];
        float *const to = part->sums + i * part->sums_ld + j;
        piece sum = {0};
        memcpy(x, part->x + i * part->x_ld + t, (size_t)terms * sizeof(float));
        memcpy(&sum, to, (size_t)count * sizeof(float));
        UNROLLED for (int r = 0; r < terms; r++) sum += x[r] * weights[r];
        memcpy(to, &sum, (size_t)count * sizeof(float));
    }
}

static inline INLINE void add_rows(const tsr_rows_part *part, load_piece *load, int64_t bytes, int64_t t, int terms)
{
    int64_t j = 0;
    for (; j + PIECE <= part->n; j += PIECE)
        add_terms(part, load, bytes, t, j, terms, PIECE);
    if (j < part->n)
        add_terms(part, load, bytes, t, j, terms, (int)(part->n - j));
}

static inline INLINE void make_terms(const tsr_rows_part *part, load_piece *load, int64_t bytes)
{
    int64_t t = 0;
    for (int64_t i = 0; i < part->m; i++)
        memset(part->sums + i * part->sums_ld, 0, (size_t)part->n * sizeof(float));
    for (; t + TERMS <= part->k; t += TERMS)
        add_rows(part, load, bytes, t, TERMS);
    for (; t < part->k; t++)
        add_rows(part, load, bytes, t, 1);
}

#define DEFINE_KERNELS(dtype, bytes)                                                                                   \
    static void dots_##dtype(const tsr_rows_part *part)                                                                \
    {                                                                                                                  \
        make_dots(part, load_##dtype, bytes, false);                                                                   \
    }                                                                                                                  \
    static void terms_##dtype(const tsr_rows_part *part)                                                               \
    {                                                                                                                  \
        make_terms(part, load_##dtype, bytes);                                                                         \
    }

DEFINE_KERNELS(f32, 4)
DEFINE_KERNELS(bf16, 2)
DEFINE_KERNELS(f16, 2)

static void dots_q8(const tsr_rows_part *part)
{
    make_dots(part, load_i8, 1, true);
}

static void widen_q8(const int8_t *weights, const float *scales, int64_t count, float *values)
{
    for (int64_t t = 0; t + PIECE <= count; t += PIECE) {
        const piece value = load_i8(weights + t) * scales[t / TSR_Q8_BLOCK];
        memcpy(values + t, &value, sizeof value);
    }
}

const tsr_rows_kernels NAME(TSR_KERNELS) = {
    .dots = {[TSR_F32] = dots_f32, [TSR_BF16] = dots_bf16, [TSR_F16] = dots_f16},
    .terms = {[TSR_F32] = terms_f32, [TSR_BF16] = terms_bf16, [TSR_F16] = terms_f16},
    .dots_q8 = dots_q8,
    .widen_q8 = widen_q8,
};
