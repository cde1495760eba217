/** Attention with grouped heads, on this rank's own heads: plain C, nothing is communicated.
 * (Vaswani et al., 2017; grouped queries: Ainslie et al., 2023.) */
#ifndef LLAMA_ATTENTION_H
#define LLAMA_ATTENTION_H

#include <stdint.h>

/**
 * The numbers of heads on this rank and their shape. Query head h uses key/value head h / group.
 * Cuts fall between groups of queries, or, on a rank with one key/value head, within its one group.
 */
typedef struct llama_heads {
    int64_t count;    /**< query heads */
    int64_t kv_count; /**< key/value heads */
    int64_t group;    /**< queries that share a key/value head */
    int64_t head_dim;
} llama_heads;

/** One layer's keys and values of this rank's heads, for up to `capacity` positions. */
typedef struct llama_cache {
    float *keys;   /**< (kv_count, head_dim, capacity): positions are contiguous for the scores */
    float *values; /**< (kv_count, capacity, head_dim) */
    int64_t capacity;
} llama_cache;

/**
 * Stores `keys` and `values`, both (rows, kv_count, head_dim), at positions first, first + 1, ..
 */
void llama_cache_store(const llama_cache *cache, const llama_heads *heads, const float *keys, const float *values,
                       int64_t rows, int64_t first);

/** Attention of `queries` into `out`, both (rows, count, head_dim); row r sees positions 0 to first
 * + r. `scores` has room for first + rows elements. */
void llama_attention(const llama_cache *cache, const llama_heads *heads, const float *queries, int64_t rows,
                     int64_t first, float *scores, float *out);

#endif
