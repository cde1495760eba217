/** The keys and values of past positions in all layers: dtensors, cut by heads as the k and v
 * layers are. */
#ifndef LLAMA_CACHE_H
#define LLAMA_CACHE_H

#include "layouts.h"

typedef struct llama_layer_cache {
    tsr_dtensor *keys, *values; /**< (kv_heads, capacity, head_dim) */
} llama_layer_cache;

/** Makes one cache per layer, for `capacity` positions. */
tsr_status llama_caches_create(const llama_layouts *layouts, int64_t capacity, llama_layer_cache **out);
void llama_caches_destroy(llama_layer_cache *caches, int64_t layers);

#endif
