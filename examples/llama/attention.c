#include "attention.h"
#include "kernels.h"

#include <math.h>

void llama_cache_store(const llama_cache *cache, const llama_heads *heads, const float *keys, const float *values, int64_t rows,
                       int64_t first)
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

/* scores[t] = scale * sum over d of query[d] * keys[d][t]. Two d a pass halve the traffic on scores; head_dim is even. */
LLAMA_KERNEL static void score(const float *restrict query, const float *restrict keys, int64_t dim, int64_t capacity, int64_t count,
                               float scale, float *restrict scores)
{
    for (int64_t t = 0; t < count; t++)
        scores[t] = 0;
    for (int64_t d = 0; d < dim; d += 2) {
        const float *const k = keys + d * capacity, *const l = k + capacity;
        const float x = query[d] * scale, y = query[d + 1] * scale;
        for (int64_t t = 0; t < count; t++)
            scores[t] += x * k[t] + y * l[t];
    }
}

/* out[d] = sum over t of weights[t] * values[t][d], four t a pass. */
LLAMA_KERNEL static void combine(const float *restrict weights, const float *restrict values, int64_t dim, int64_t count,
                                 float *restrict out)
{
    int64_t t = 0;
    for (int64_t d = 0; d < dim; d++)
        out[d] = 0;
    for (; t + 4 <= count; t += 4) {
        const float *const v = values + t * dim;
        const float a = weights[t], b = weights[t + 1], c = weights[t + 2], e = weights[t + 3];
        for (int64_t d = 0; d < dim; d++)
            out[d] += (a * v[d] + b * v[dim + d]) + (c * v[2 * dim + d] + e * v[3 * dim + d]);
    }
    for (; t < count; t++)
        for (int64_t d = 0; d < dim; d++)
            out[d] += weights[t] * values[t * dim + d];
}

void llama_attention(const llama_cache *cache, const llama_heads *heads, const float *queries, int64_t rows, int64_t first, float *scores,
                     float *out)
{
    const int64_t dim = heads->head_dim;
    const float scale = 1.0f / sqrtf((float)dim);
    for (int64_t r = 0; r < rows; r++)
        for (int64_t h = 0; h < heads->count; h++, queries += dim, out += dim) {
            const int64_t kv = (heads->first + h) / heads->group - heads->kv_first;
            const int64_t seen = first + r + 1;
            score(queries, cache->keys + kv * dim * cache->capacity, dim, cache->capacity, seen, scale, scores);
            llama_softmax(scores, seen);
            combine(scores, cache->values + kv * cache->capacity * dim, dim, seen, out);
        }
}
