/* The loop `stream` of attention_kernels.h, in f32, for keys and values of f32, bf16 and f16 as
 * they lie in memory. attention_kernels.c includes this file once. */

/* Keys whose scores are made at once, so that a vector has them. */
#define TOGETHER TSR_VECTOR_FLOATS

/* Sums of weighted values that each of two queries has on their way, which is what registers hold:
 * of some vectors of columns, in as many chains of keys as are left. Wide values are read by as
 * many columns as can be, so that memory is read in order. */
#if defined(__AVX512F__)
#define SUMS 8
#else
#define SUMS 4
#endif

/* The sum of each of TOGETHER vectors. */
#if defined(__AVX512F__)
static inline INLINE tsr_floats fold_together(const tsr_floats *sums)
{
    __m512 quads[4];
    UNROLLED for (int i = 0; i < 4; i++)
    {
        const __m512 a = (__m512)sums[i], b = (__m512)sums[4 + i], c = (__m512)sums[8 + i], d = (__m512)sums[12 + i];
        const __m512 ab = _mm512_add_ps(_mm512_shuffle_f32x4(a, b, 0x44), _mm512_shuffle_f32x4(a, b, 0xee)),
                     cd = _mm512_add_ps(_mm512_shuffle_f32x4(c, d, 0x44), _mm512_shuffle_f32x4(c, d, 0xee));
        quads[i] = _mm512_add_ps(_mm512_shuffle_f32x4(ab, cd, 0x88), _mm512_shuffle_f32x4(ab, cd, 0xdd));
    }
    const __m512 left = _mm512_add_ps(_mm512_unpacklo_ps(quads[0], quads[1]), _mm512_unpackhi_ps(quads[0], quads[1])),
                 right = _mm512_add_ps(_mm512_unpacklo_ps(quads[2], quads[3]), _mm512_unpackhi_ps(quads[2], quads[3]));
    return (tsr_floats)_mm512_add_ps(_mm512_shuffle_ps(left, right, 0x44), _mm512_shuffle_ps(left, right, 0xee));
}
#elif defined(__AVX2__)
static inline INLINE tsr_floats fold_together(const tsr_floats *sums)
{
    __m256 quads[4];
    UNROLLED for (int i = 0; i < 4; i++)
    {
        const __m256 a = (__m256)sums[i], b = (__m256)sums[4 + i];
        quads[i] = _mm256_add_ps(_mm256_permute2f128_ps(a, b, 0x20), _mm256_permute2f128_ps(a, b, 0x31));
    }
    const __m256 left = _mm256_add_ps(_mm256_unpacklo_ps(quads[0], quads[1]), _mm256_unpackhi_ps(quads[0], quads[1])),
                 right = _mm256_add_ps(_mm256_unpacklo_ps(quads[2], quads[3]), _mm256_unpackhi_ps(quads[2], quads[3]));
    return (tsr_floats)_mm256_add_ps(_mm256_shuffle_ps(left, right, 0x44), _mm256_shuffle_ps(left, right, 0xee));
}
#else
static inline INLINE tsr_floats fold_together(const tsr_floats *sums)
{
    tsr_floats folded;
    for (int i = 0; i < TOGETHER; i++)
        folded[i] = (sums[i][0] + sums[i][2]) + (sums[i][1] + sums[i][3]);
    return folded;
}
#endif

/* Folds the lanes of a vector to four by an operation of vectors of 16, 8 and 4 lanes. */
#if defined(__AVX512F__)
#define FOLD_TO_QUAD(vector, name, quad)                                                                               \
    const __m256 half =                                                                                                \
        _mm256_##name##_ps(_mm512_castps512_ps256((__m512)(vector)), _mm512_extractf32x8_ps((__m512)(vector), 1));     \
    _mm_storeu_ps(quad, _mm_##name##_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1)));
#elif defined(__AVX2__)
#define FOLD_TO_QUAD(vector, name, quad)                                                                               \
    _mm_storeu_ps(                                                                                                     \
        quad, _mm_##name##_ps(_mm256_castps256_ps128((__m256)(vector)), _mm256_extractf128_ps((__m256)(vector), 1)));
#else
#define FOLD_TO_QUAD(vector, name, quad) memcpy(quad, &(vector), sizeof quad);
#endif

/* The largest number of a vector that has one. */
static inline INLINE float largest_of(tsr_floats vector)
{
    float quad[4];
    FOLD_TO_QUAD(vector, max, quad)
    const float a = quad[0] > quad[1] ? quad[0] : quad[1], b = quad[2] > quad[3] ? quad[2] : quad[3];
    return a > b ? a : b;
}

static inline INLINE float sum_of(tsr_floats vector)
{
    float quad[4];
    FOLD_TO_QUAD(vector, add, quad)
    return (quad[0] + quad[2]) + (quad[1] + quad[3]);
}

/* Loads fewer elements than a vector has, and zeros behind them. */
static inline INLINE tsr_floats load_some(tsr_load_floats *load, int64_t bytes, const char *at, int64_t count)
{
    char some[TSR_VECTOR_FLOATS * sizeof(float)] = {0};
    memcpy(some, at, (size_t)(count * bytes));
    return load(some);
}

/* The products of a query with TOGETHER keys, `step` bytes apart. */
static inline INLINE tsr_floats score_keys(const tsr_attention_block *b, const float *query, const char *keys,
                                           int64_t step, tsr_load_floats *load, int64_t bytes)
{
    tsr_floats sums[TOGETHER] = {{0}};
    const char *at[TOGETHER / 4];
    int64_t t = 0;
    UNROLLED for (int i = 0; i < TOGETHER / 4; i++) at[i] = keys + 4 * i * step;
    for (; t + TSR_VECTOR_FLOATS <= b->dim; t += TSR_VECTOR_FLOATS) {
        const tsr_floats factors = tsr_load_f32(query + t);
        UNROLLED_ALL for (int i = 0; i < TOGETHER; i++) sums[i] += factors * load(at[i / 4] + i % 4 * step + t * bytes);
    }
    if (t < b->dim) {
        const tsr_floats factors = tsr_load_f32(query + t);
        UNROLLED_ALL for (int i = 0; i < TOGETHER; i++) sums[i] +=
            factors * load_some(load, bytes, at[i / 4] + i % 4 * step + t * bytes, b->dim - t);
    }
    return fold_together(sums);
}

/* score_keys() of fewer keys, of which a chunk's last vector may have some. */
static inline INLINE tsr_floats score_rest(const tsr_attention_block *b, const float *query, const char *keys,
                                           int64_t step, int64_t count, tsr_load_floats *load, int64_t bytes)
{
    float scores[TOGETHER] = {0};
    for (int64_t key = 0; key < count; key++) {
        tsr_floats sum = {0};
        int64_t t = 0;
        for (; t + TSR_VECTOR_FLOATS <= b->dim; t += TSR_VECTOR_FLOATS)
            sum += tsr_load_f32(query + t) * load(keys + key * step + t * bytes);
        if (t < b->dim)
            sum += tsr_load_f32(query + t) * load_some(load, bytes, keys + key * step + t * bytes, b->dim - t);
        scores[key] = sum_of(sum);
    }
    return tsr_load_f32(scores);
}

/* Makes the scores of all queries. */
static inline INLINE void score_chunk(const tsr_attention_block *b, const tsr_attention_chunk *c, tsr_load_floats *load,
                                      int64_t bytes)
{
    const float scale = (float)b->scale;
    const int64_t step = c->k.step * bytes;
    const char *keys = c->k.at;
    int64_t key = 0;
    for (; key + TOGETHER <= c->count; key += TOGETHER, keys += TOGETHER * step)
        for (int64_t lane = 0; lane < b->used; lane++)
            f32_store(score_keys(b, (const float *)b->queries + lane * b->width, keys, step, load, bytes) * scale,
                      (float *)c->weights + lane * TSR_ATTENTION_KEYS + key);
    for (int64_t lane = 0; lane < b->used && key < c->count; lane++)
        f32_store(score_rest(b, (const float *)b->queries + lane * b->width, keys, step, c->count - key, load, bytes) *
                      scale,
                  (float *)c->weights + lane * TSR_ATTENTION_KEYS + key);
}

/* Gives keys of a chunk that a query does not attend, and those up to a whole number of vectors,
 * the score -infinity. */
static inline INLINE void forget_keys(const tsr_attention_block *b, const tsr_attention_chunk *c, int64_t lane,
                                      float *scores)
{
    const int64_t begin = b->begin[lane] - c->first, end = b->end[lane] - c->first;
    for (int64_t key = 0; key < begin && key < c->count; key++)
        scores[key] = -INFINITY;
    for (int64_t key = end < 0 ? 0 : end < c->count ? end : c->count; key < c->count || key % TOGETHER != 0; key++)
        scores[key] = -INFINITY;
}

/* Makes a query's weights from its scores, and adds them to its sum. Returns by what the sums of
 * earlier chunks shrink. */
static inline INLINE float weigh_lane(const tsr_attention_block *b, const tsr_attention_chunk *c, int64_t lane)
{
    const float *const mask = c->mask ? (const float *)c->mask + lane * TSR_ATTENTION_KEYS : NULL;
    float *const scores = (float *)c->weights + lane * TSR_ATTENTION_KEYS;
    float *const top = (float *)b->largest + lane, *const sum = (float *)b->sum + lane;
    const float before = *top;
    tsr_floats largest = before + (tsr_floats){0}, sums = {0};
    for (int64_t key = 0; key < c->count && mask; key++)
        scores[key] += mask[key] * (float)LOG2_E;
    forget_keys(b, c, lane, scores);
    for (int64_t key = 0; key < c->count; key += TOGETHER)
        largest = f32_larger(tsr_load_f32(scores + key), largest);
    *top = largest_of(largest);
    const tsr_floats base = f32_finite(*top + (tsr_floats){0}), factor = f32_exp2(before - base);
    for (int64_t key = 0; key < c->count; key += TOGETHER) {
        const tsr_floats weights = f32_exp2(tsr_load_f32(scores + key) - base);
        sums += weights;
        f32_store(weights, scores + key);
    }
    *sum = *sum * factor[0] + sum_of(sums);
    return factor[0];
}

/* Adds the weighted values of a key to sums of `queries` queries. With `some`, a vector has so many
 * columns alone. */
static inline INLINE void add_values(const float *weights, const char *at, int64_t bytes, tsr_load_floats *load,
                                     int queries, int columns, int64_t some, tsr_floats sums[2][SUMS])
{
    UNROLLED for (int j = 0; j < columns; j++)
    {
        const char *const from = at + j * TSR_VECTOR_FLOATS * bytes;
        const tsr_floats values = some ? load_some(load, bytes, from, some) : load(from);
        UNROLLED for (int q = 0; q < queries; q++) sums[q][j] += weights[q * TSR_ATTENTION_KEYS] * values;
    }
}

/* Adds a chunk's weighted values, of `columns` vectors of columns from `column` on, to the results
 * of `queries` queries, which shrink first. */
static inline INLINE void combine_columns(const tsr_attention_block *b, const tsr_attention_chunk *c, int64_t lane,
                                          int64_t column, const float *factors, tsr_load_floats *load, int64_t bytes,
                                          int queries, int columns, int64_t some)
{
    const int chains = SUMS / columns;
    const int64_t step = c->v.step * bytes;
    const float *weights = (const float *)c->weights + lane * TSR_ATTENTION_KEYS;
    const char *at = (const char *)c->v.at + column * bytes;
    tsr_floats sums[SUMS][2][SUMS] = {{{{0}}}};
    int64_t key = 0;
    for (; key + chains <= c->count; key += chains, at += chains * step, weights += chains)
        UNROLLED for (int i = 0; i < chains; i++)
            add_values(weights + i, at + i * step, bytes, load, queries, columns, some, sums[i]);
    for (; key < c->count; key++, at += step, weights++)
        add_values(weights, at, bytes, load, queries, columns, some, sums[0]);
    UNROLLED for (int q = 0; q < queries; q++) UNROLLED for (int j = 0; j < columns; j++)
    {
        float *const out = (float *)b->out + (lane + q) * b->value_width + column + j * TSR_VECTOR_FLOATS;
        tsr_floats sum = sums[0][q][j];
        UNROLLED for (int i = 1; i < chains; i++) sum += sums[i][q][j];
        f32_store(tsr_load_f32(out) * factors[lane + q] + sum, out);
    }
}

static inline INLINE void combine_chunk(const tsr_attention_block *b, const tsr_attention_chunk *c, int64_t lane,
                                        const float *factors, tsr_load_floats *load, int64_t bytes, int queries)
{
    int64_t column = 0;
    for (; column + SUMS * TSR_VECTOR_FLOATS <= b->value_dim; column += SUMS * TSR_VECTOR_FLOATS)
        combine_columns(b, c, lane, column, factors, load, bytes, queries, SUMS, 0);
    for (; column + 2 * TSR_VECTOR_FLOATS <= b->value_dim; column += 2 * TSR_VECTOR_FLOATS)
        combine_columns(b, c, lane, column, factors, load, bytes, queries, 2, 0);
    for (; column + TSR_VECTOR_FLOATS <= b->value_dim; column += TSR_VECTOR_FLOATS)
        combine_columns(b, c, lane, column, factors, load, bytes, queries, 1, 0);
    if (column < b->value_dim)
        combine_columns(b, c, lane, column, factors, load, bytes, queries, 1, b->value_dim - column);
}

/* Keys and values come from memory once: the cache has them for queries behind the first. */
static inline INLINE void stream_chunk(const tsr_attention_block *b, const tsr_attention_chunk *c,
                                       tsr_load_floats *load, int64_t bytes)
{
    float factors[TSR_ATTENTION_FEW];
    int64_t lane = 0;
    score_chunk(b, c, load, bytes);
    for (int64_t i = 0; i < b->used; i++)
        factors[i] = weigh_lane(b, c, i);
    for (; lane + 2 <= b->used; lane += 2)
        combine_chunk(b, c, lane, factors, load, bytes, 2);
    if (lane < b->used)
        combine_chunk(b, c, lane, factors, load, bytes, 1);
}

static void stream_f32(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    stream_chunk(b, c, tsr_load_f32, 4);
}

static void stream_bf16(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    stream_chunk(b, c, tsr_load_bf16, 2);
}

static void stream_f16(const tsr_attention_block *b, const tsr_attention_chunk *c)
{
    stream_chunk(b, c, tsr_load_f16, 2);
}
