#include "model.h"

#include <tessera/sys/status.h>

#include <stdlib.h>

static tsr_status fill(llama_model *model, const llama_source *source)
{
    const llama_config *const config = model->config;
    TSR_TRY(llama_layouts_init(&model->layouts, config, llama_weights_dtype(config, source), model->comm));
    TSR_TRY(llama_layouts_heads(&model->layouts, &model->heads));
    TSR_TRY(llama_weights_load(&model->layouts, source, &model->weights));
    TSR_TRY(llama_rope_init(&model->rope, &config->rope, config->head_dim, model->capacity));
    return llama_caches_create(&model->layouts, model->capacity, &model->caches);
}

tsr_status llama_model_create(tsr_comm *comm, const llama_config *config, const llama_source *source, int64_t capacity,
                              llama_model **out)
{
    llama_model *const model = calloc(1, sizeof *model);
    if (!model)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a model");
    model->comm = comm;
    model->config = config;
    model->capacity = capacity;
    const tsr_status status = fill(model, source);
    if (status == TSR_OK)
        *out = model;
    else
        llama_model_destroy(model);
    return status;
}

void llama_model_destroy(llama_model *model)
{
    if (!model)
        return;
    llama_caches_destroy(model->caches, model->config->layers);
    llama_rope_finish(&model->rope);
    llama_weights_finish(&model->weights);
    llama_layouts_finish(&model->layouts);
    free(model);
}
