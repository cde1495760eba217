#include "ops/rows_kernels.h"

#include "ops/vectors/loads.h"

#include <stdbool.h>

#define NAME_(kernels) tsr_rows_kernels_##kernels
#define NAME(kernels)  NAME_(kernels)

/* Floats of a vector; PIECES of them are the TSR_ROWS_LANES lanes. */
#define PIECE  TSR_VECTOR_FLOATS
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

typedef tsr_floats piece;
typedef float quad __attribute__((vector_size(16)));

#define INLINE __attribute__((always_inline))

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
    tsr_load_floats *load;
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
            UNROLLED for (int s = 0; s < b->shared; s++) sum[r][s][p] +=
                tsr_load_f32(b->x[s] + t + p * PIECE) * weights;
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
                tsr_load_f32(x + p * PIECE) * b->load(w + p * PIECE * b->bytes);
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

/* Row `index`, or the last, of `count` rows `ld` apart. */
static inline INLINE int64_t row_at(int64_t index, int64_t count, int64_t ld, bool all)
{
    return (all || index < count ? index : count - 1) * ld;
}

/* Computes the results of `rows` rows of w from `j` on with `shared` rows of x from `i` on. If not
 * `all` of them are there, the last row takes the place of the missing ones, and its results may be
 * written several times. */
static inline INLINE void dot_rows(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes, int64_t j,
                                   int64_t i, int rows, int shared, bool scaled, bool all)
{
    block b = {.load = load,
               .bytes = bytes,
               .ahead = i == 0 ? rows * part->w_ld * bytes : 0,
               .rows = rows,
               .shared = shared,
               .scaled = scaled};
    float *to[SHARED];
    UNROLLED for (int r = 0; r < rows; r++) b.w[r] =
        (const char *)part->w + row_at(j + r, part->n, part->w_ld, all) * bytes;
    UNROLLED for (int r = 0; scaled && r < rows; r++) b.scales[r] =
        part->scales + row_at(j + r, part->n, part->scales_ld, all);
    UNROLLED for (int s = 0; s < shared; s++)
    {
        b.x[s] = part->x + row_at(i + s, part->m, part->x_ld, all);
        to[s] = part->sums + row_at(i + s, part->m, part->sums_ld, all) + j;
    }
    dot_block(&b, part->k, to, all || j + rows <= part->n ? rows : (int)(part->n - j));
}

/* dot_rows(), without asking of each row whether it is there where all are. */
static inline INLINE void dot_some(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes, int64_t j,
                                   int64_t i, int rows, int shared, bool scaled)
{
    if (j + rows <= part->n && i + shared <= part->m)
        dot_rows(part, load, bytes, j, i, rows, shared, scaled, true);
    else
        dot_rows(part, load, bytes, j, i, rows, shared, scaled, false);
}

/* Weights are read from memory once: for the rows of x behind the first block they are in the
 * cache. */
static inline INLINE void make_dots(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes, bool scaled)
{
    if (part->m == 1) {
        for (int64_t j = 0; j < part->n; j += ROWS)
            dot_some(part, load, bytes, j, 0, ROWS, 1, scaled);
        return;
    }
    for (int64_t j = 0; j < part->n; j += SHARED_ROWS)
        for (int64_t i = 0; i < part->m; i += SHARED)
            dot_some(part, load, bytes, j, i, SHARED_ROWS, SHARED, scaled);
}

/* Rows of weights whose terms are added while a sum stays in a register. */
#define TERMS 4

/* Adds the terms of `terms` rows of weights from `t` on to `count` results from `j` on, PIECE at
 * most. */
static inline INLINE void add_terms(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes, int64_t t,
                                    int64_t j, int terms, int count)
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

static inline INLINE void add_rows(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes, int64_t t,
                                   int terms)
{
    int64_t j = 0;
    for (; j + PIECE <= part->n; j += PIECE)
        add_terms(part, load, bytes, t, j, terms, PIECE);
    if (j < part->n)
        add_terms(part, load, bytes, t, j, terms, (int)(part->n - j));
}

static inline INLINE void make_terms(const tsr_rows_part *part, tsr_load_floats *load, int64_t bytes)
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
        make_dots(part, tsr_load_##dtype, bytes, false);                                                               \
    }                                                                                                                  \
    static void terms_##dtype(const tsr_rows_part *part)                                                               \
    {                                                                                                                  \
        make_terms(part, tsr_load_##dtype, bytes);                                                                     \
    }

DEFINE_KERNELS(f32, 4)
DEFINE_KERNELS(bf16, 2)
DEFINE_KERNELS(f16, 2)

static void dots_q8(const tsr_rows_part *part)
{
    make_dots(part, tsr_load_i8, 1, true);
}

static void widen_q8(const int8_t *weights, const float *scales, int64_t count, float *values)
{
    for (int64_t t = 0; t + PIECE <= count; t += PIECE) {
        const piece value = tsr_load_i8(weights + t) * scales[t / TSR_Q8_BLOCK];
        memcpy(values + t, &value, sizeof value);
    }
}

const tsr_rows_kernels NAME(TSR_KERNELS) = {
    .dots = {[TSR_F32] = dots_f32, [TSR_BF16] = dots_bf16, [TSR_F16] = dots_f16},
    .terms = {[TSR_F32] = terms_f32, [TSR_BF16] = terms_bf16, [TSR_F16] = terms_f16},
    .dots_q8 = dots_q8,
    .widen_q8 = widen_q8,
};
