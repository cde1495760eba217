#include "attention.h"

#include "kernels.h"

#include <math.h>

void llama_cache_store(const llama_cache *cache, const llama_heads *heads, const float *keys, const float *values,
                       int64_t rows, int64_t first)
{
    const int64_t dim = heads->head_dim;
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads->kv_count; h++, keys += dim, values += dim) {
            float *const column = cache->keys + h * dim * cache->capacity + first + r;
            for (int64_t d = 0; d < dim; d++)
                column[d * cache->capacity] = keys[d];
            memcpy(cache->values + (h * cache->capacity + first + r) * dim, values, (size_t)dim * sizeof(float));
        }
}

/* Rows of keys per pass over the scores, so that these are loaded and stored less often. Rows that
 * are left over take one pass each. */
#define SCORE_ROWS 4

/* scores[t] = scale * sum over d of query[d] * keys[d][t]. */
LLAMA_KERNEL static void score(const float *restrict query, const float *restrict keys, int64_t dim, int64_t capacity,
                               int64_t count, float scale, float *restrict scores)
{
    int64_t d = 0;
    memset(scores, 0, (size_t)count * sizeof(float));
    for (; d + SCORE_ROWS <= dim; d += SCORE_ROWS) {
        const float *const a = keys + d * capacity, *const b = a + capacity, *const c = b + capacity,
                           *const e = c + capacity;
        const float w = query[d] * scale, x = query[d + 1] * scale, y = query[d + 2] * scale, z = query[d + 3] * scale;
        for (int64_t t = 0; t < count; t++)
            scores[t] += (w * a[t] + x * b[t]) + (y * c[t] + z * e[t]);
    }
    for (; d < dim; d++)
        for (int64_t t = 0; t < count; t++)
            scores[t] += query[d] * scale * keys[d * capacity + t];
}

/* Elements of a head whose sums stay in registers during the loop over positions. */
#define COMBINE_WIDTH 32

/* out[d] = sum over t of weights[t] * values[t][d], for `width` elements of a head, four positions
 * per pass. */
static inline void combine_some(const float *restrict weights, const float *restrict values, int64_t dim, int64_t count,
                                int64_t width, float *restrict out)
{
    float sums[COMBINE_WIDTH] = {0};
    int64_t t = 0;
    for (; t + 4 <= count; t += 4) {
        const float *const v = values + t * dim;
        const float a = weights[t], b = weights[t + 1], c = weights[t + 2], e = weights[t + 3];
        for (int64_t d = 0; d < width; d++)
            sums[d] += (a * v[d] + b * v[dim + d]) + (c * v[2 * dim + d] + e * v[3 * dim + d]);
    }
    for (; t < count; t++)
        for (int64_t d = 0; d < width; d++)
            sums[d] += weights[t] * values[t * dim + d];
    for (int64_t d = 0; d < width; d++)
        out[d] = sums[d];
}

LLAMA_KERNEL static void combine(const float *restrict weights, const float *restrict values, int64_t dim,
                                 int64_t count, float *restrict out)
{
    int64_t d = 0;
    for (; d + COMBINE_WIDTH <= dim; d += COMBINE_WIDTH)
        combine_some(weights, values + d, dim, count, COMBINE_WIDTH, out + d);
    if (d < dim)
        combine_some(weights, values + d, dim, count, dim - d, out + d);
}

void llama_attention(const llama_cache *cache, const llama_heads *heads, const float *queries, int64_t rows,
                     int64_t first, float *scores, float *out)
{
    const int64_t dim = heads->head_dim;
    const float scale = 1.0f / sqrtf((float)dim);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads->count; h++, queries += dim, out += dim) {
            const int64_t kv = h / heads->group;
            const int64_t seen = first + r + 1;
            score(queries, cache->keys + kv * dim * cache->capacity, dim, cache->capacity, seen, scale, scores);
            llama_softmax(scores, seen);
            combine(scores, cache->values + kv * cache->capacity * dim, dim, seen, out);
        }
}
