/** A Llama on this rank: layouts, and the rank's part of the weights and of the cache. */
#ifndef LLAMA_MODEL_H
#define LLAMA_MODEL_H

#include "cache.h"
#include "rope.h"
#include "weights.h"

typedef struct llama_model {
    tsr_comm *comm;             /**< borrowed */
    const llama_config *config; /**< borrowed */
    llama_layouts layouts;
    llama_heads heads;
    llama_weights weights;
    llama_rope rope;
    llama_layer_cache *caches; /**< one per layer */
    int64_t capacity;          /**< in positions */
} llama_model;

/**
 * Loads a model with room for `capacity` positions. Every rank calls it; it does not communicate.
 */
tsr_status llama_model_create(tsr_comm *comm, const llama_config *config, const llama_source *source, int64_t capacity,
                              llama_model **out);
void llama_model_destroy(llama_model *model);

#endif
