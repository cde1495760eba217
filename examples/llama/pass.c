#include "pass.h"

#include "statement.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>

struct llama_pass {
    const llama_model *model;
    tsr_executable *executable;
    int64_t *positions, *wanted; /* (capacity) */
    float *logits;               /* (logit_rows, vocab_size) of the last run */
    int64_t logit_rows;
    void *workspace;
    size_t workspace_bytes;
};

static tsr_status bind(const llama_pass *pass, const char *name, int64_t layer, tsr_dtensor *tensor)
{
    char text[128];
    snprintf(text, sizeof text, name, (long long)layer);
    return tensor ? tsr_executable_bind(pass->executable, text, tensor) : TSR_OK;
}

static tsr_status bind_layer(const llama_pass *pass, int64_t i)
{
    char name[128];
    const llama_layer *const layer = &pass->model->weights.layers[i];
    TSR_TRY(bind(pass, "model.layers.%lld.input_layernorm.weight", i, layer->attention_norm));
    TSR_TRY(bind(pass, "model.layers.%lld.post_attention_layernorm.weight", i, layer->mlp_norm));
    TSR_TRY(bind(pass, "cache.%lld.keys", i, pass->model->caches[i].keys));
    TSR_TRY(bind(pass, "cache.%lld.values", i, pass->model->caches[i].values));
    for (int kind = 0; kind < LLAMA_LINEAR_KINDS; kind++) {
        snprintf(name, sizeof name, "model.layers.%%lld.%s.weight", llama_linear_name((llama_linear_kind)kind));
        TSR_TRY(bind(pass, name, i, layer->linear[kind].weight));
        snprintf(name, sizeof name, "model.layers.%%lld.%s.bias", llama_linear_name((llama_linear_kind)kind));
        TSR_TRY(bind(pass, name, i, layer->linear[kind].bias));
    }
    return TSR_OK;
}

static tsr_status bind_all(const llama_pass *pass)
{
    const llama_weights *const weights = &pass->model->weights;
    TSR_TRY(bind(pass, "model.embed_tokens.weight", 0, weights->embedding));
    TSR_TRY(bind(pass, "model.norm.weight", 0, weights->norm));
    if (!pass->model->config->tied_embeddings)
        TSR_TRY(bind(pass, "lm_head.weight", 0, weights->output.weight));
    for (int64_t i = 0; i < weights->layer_count; i++)
        TSR_TRY(bind_layer(pass, i));
    return TSR_OK;
}

static tsr_status compile(llama_pass *pass)
{
    tsr_program *program;
    TSR_TRY(tsr_program_create(tsr_comm_context(pass->model->comm), &program));
    tsr_status status = llama_state(pass->model, program);
    status = tsr_compile(program, NULL, &pass->executable);
    tsr_program_destroy(program);
    return status;
}

static tsr_status fill(llama_pass *pass)
{
    const size_t capacity = (size_t)pass->model->capacity;
    TSR_TRY(compile(pass));
    TSR_TRY(bind_all(pass));
    TSR_TRY(tsr_executable_prepare(pass->executable, pass->model->comm));
    pass->positions = calloc(capacity, sizeof *pass->positions);
    pass->wanted = calloc(capacity, sizeof *pass->wanted);
    if (!pass->positions || !pass->wanted)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %zu positions", capacity);
    pass->workspace_bytes = tsr_executable_workspace_bytes(pass->executable);
    return tsr_comm_alloc(pass->model->comm, pass->workspace_bytes, &pass->workspace);
}

tsr_status llama_pass_create(const llama_model *model, llama_pass **out)
{
    llama_pass *const pass = calloc(1, sizeof *pass);
    if (!pass)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a pass");
    pass->model = model;
    const tsr_status status = fill(pass);
    if (status == TSR_OK)
        *out = pass;
    else
        llama_pass_destroy(pass);
    return status;
}

void llama_pass_destroy(llama_pass *pass)
{
    if (!pass)
        return;
    tsr_executable_destroy(pass->executable);
    if (pass->workspace)
        tsr_comm_free(pass->model->comm, pass->workspace, pass->workspace_bytes);
    free(pass->positions);
    free(pass->wanted);
    free(pass->logits);
    free(pass);
}

/* Makes room for logits, and sets the lengths. */
static tsr_status begin(llama_pass *pass, int64_t rows, int64_t first, int64_t logit_rows)
{
    if (pass->logit_rows != logit_rows) {
        free(pass->logits);
        pass->logits = malloc((size_t)(logit_rows * pass->model->config->vocab_size) * sizeof(float));
        pass->logit_rows = pass->logits ? logit_rows : 0;
        if (!pass->logits)
            return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the logits of %lld tokens", (long long)logit_rows);
    }
    TSR_TRY(tsr_executable_set_length(pass->executable, "tokens", rows));
    TSR_TRY(tsr_executable_set_length(pass->executable, "wanted", logit_rows));
    return tsr_executable_set_length(pass->executable, "total", first + rows);
}

tsr_status llama_pass_run(llama_pass *pass, const int64_t *tokens, int64_t rows, int64_t first, int64_t logit_rows,
                          const float **logits)
{
    const int64_t shape[] = {logit_rows, pass->model->config->vocab_size};
    TSR_TRY(begin(pass, rows, first, logit_rows));
    for (int64_t i = 0; i < rows; i++)
        pass->positions[i] = first + i;
    for (int64_t i = 0; i < logit_rows; i++)
        pass->wanted[i] = rows - logit_rows + i;
    const tsr_tensor inputs[] = {tsr_tensor_contiguous((void *)tokens, TSR_I64, 1, &rows),
                                 tsr_tensor_contiguous(pass->positions, TSR_I64, 1, &rows),
                                 tsr_tensor_contiguous(&first, TSR_I64, 0, NULL),
                                 tsr_tensor_contiguous(pass->wanted, TSR_I64, 1, &logit_rows)};
    const tsr_tensor output = tsr_tensor_contiguous(pass->logits, TSR_F32, 2, shape);
    TSR_TRY(tsr_executable_run(pass->executable, pass->model->comm, inputs, &output, pass->workspace,
                               pass->workspace_bytes, NULL));
    *logits = pass->logits;
    return TSR_OK;
}

int64_t llama_pass_bytes_received(const llama_pass *pass)
{
    tsr_executable_figures figures;
    return tsr_executable_figures_of(pass->executable, &figures) == TSR_OK ? figures.bytes_received : 0;
}
