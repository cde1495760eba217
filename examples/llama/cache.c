#include "cache.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

static tsr_status create_one(const llama_layouts *layouts, int64_t a, int64_t b, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(llama_layouts_cache(layouts, a, b, &layout));
    const tsr_status status = tsr_dtensor_create(layout, tsr_device_host(), out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status create_layer(const llama_layouts *layouts, int64_t capacity, llama_layer_cache *out)
{
    const int64_t dim = layouts->config->head_dim;
    TSR_TRY(create_one(layouts, capacity, dim, &out->keys));
    return create_one(layouts, capacity, dim, &out->values);
}

tsr_status llama_caches_create(const llama_layouts *layouts, int64_t capacity, llama_layer_cache **out)
{
    const int64_t layers = layouts->config->layers;
    llama_layer_cache *const caches = calloc((size_t)layers, sizeof *caches);
    if (!caches)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the caches of %lld layers", (long long)layers);
    for (int64_t i = 0; i < layers; i++) {
        const tsr_status status = create_layer(layouts, capacity, &caches[i]);
        if (status != TSR_OK) {
            llama_caches_destroy(caches, layers);
            return status;
        }
    }
    *out = caches;
    return TSR_OK;
}

void llama_caches_destroy(llama_layer_cache *caches, int64_t layers)
{
    for (int64_t i = 0; caches && i < layers; i++) {
        tsr_dtensor_destroy(caches[i].keys);
        tsr_dtensor_destroy(caches[i].values);
    }
    free(caches);
}
