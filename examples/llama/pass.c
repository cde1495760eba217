#include "pass.h"

#include "kernels.h"

#include <tessera/sys/device.h>

#include <stdlib.h>
#include <string.h>

/* A linear layer for the pass's shapes. All layers of the model share one plan, because their
 * layouts are equal. */
typedef struct stage {
    tsr_linear_plan *plan;
    tsr_dtensor *result;
    int64_t bytes_received;
} stage;

struct llama_pass {
    const llama_model *model;
    int64_t rows, logit_rows;
    tsr_dtensor *embedded; /* (rows, hidden), P: each rank has the rows of its own part of the vocabulary */
    tsr_dtensor *hidden;   /* (rows, hidden), R */
    tsr_dtensor *normed;   /* (rows, hidden), R */
    tsr_dtensor *attended; /* (rows, heads*dim), cut by heads */
    stage linear[LLAMA_LINEAR_KINDS];
    stage output;
    float *scores; /* (capacity) */
    void *workspace;
    size_t workspace_bytes;
    int64_t bytes_received;
};

/* Sets `*bytes` to the bytes that this rank receives in a move from `from` to `to`. */
static tsr_status count_bytes(const tsr_layout *from, const tsr_layout *to, int64_t *bytes)
{
    tsr_plan *plan;
    TSR_TRY(tsr_plan_create(from, to, NULL, &plan));
    *bytes = tsr_plan_bytes_received(plan);
    tsr_plan_destroy(plan);
    return TSR_OK;
}

/* Sets `*bytes` to the bytes of moving a layer's result from the rule's own layout to `y`. */
static tsr_status count_stage_bytes(const tsr_layout *x, const tsr_layout *w, const tsr_layout *b, const tsr_layout *y,
                                    int64_t *bytes)
{
    tsr_layout *own;
    TSR_TRY(tsr_linear_propagate(x, w, b, &own));
    const tsr_status status = count_bytes(own, y, bytes);
    tsr_layout_destroy(own);
    return status;
}

/* `y` NULL: the layer's result stays as its rule leaves it, and nothing is communicated. */
static tsr_status plan_stage(llama_pass *pass, const tsr_layout *x, const llama_linear *layer, const tsr_layout *y,
                             stage *out)
{
    const tsr_layout *const w = tsr_dtensor_layout(layer->weight);
    const tsr_layout *const b = layer->bias ? tsr_dtensor_layout(layer->bias) : NULL;
    TSR_TRY(tsr_linear_plan_create(x, w, b, y, &out->plan));
    TSR_TRY(tsr_dtensor_create(tsr_linear_plan_result(out->plan), tsr_device_host(), &out->result));
    if (tsr_linear_plan_workspace_bytes(out->plan) > pass->workspace_bytes)
        pass->workspace_bytes = tsr_linear_plan_workspace_bytes(out->plan);
    return !y ? TSR_OK : count_stage_bytes(x, w, b, y, &out->bytes_received);
}

/* Column-parallel q, k, v; attention on the rank's own heads; row-parallel o. Only o's sum
 * communicates. */
static tsr_status plan_attention(llama_pass *pass, const tsr_layout *hidden)
{
    const llama_linear *const linear = pass->model->weights.layers[0].linear;
    TSR_TRY(plan_stage(pass, hidden, &linear[LLAMA_QUERY], NULL, &pass->linear[LLAMA_QUERY]));
    TSR_TRY(plan_stage(pass, hidden, &linear[LLAMA_KEY], NULL, &pass->linear[LLAMA_KEY]));
    TSR_TRY(plan_stage(pass, hidden, &linear[LLAMA_VALUE], NULL, &pass->linear[LLAMA_VALUE]));
    const tsr_layout *const by_heads = tsr_dtensor_layout(pass->linear[LLAMA_QUERY].result);
    TSR_TRY(tsr_dtensor_create(by_heads, tsr_device_host(), &pass->attended));
    return plan_stage(pass, by_heads, &linear[LLAMA_ATTENTION_OUTPUT], hidden, &pass->linear[LLAMA_ATTENTION_OUTPUT]);
}

/* Column-parallel gate and up, row-parallel down. Only down's sum communicates. */
static tsr_status plan_mlp(llama_pass *pass, const tsr_layout *hidden)
{
    const llama_linear *const linear = pass->model->weights.layers[0].linear;
    TSR_TRY(plan_stage(pass, hidden, &linear[LLAMA_GATE], NULL, &pass->linear[LLAMA_GATE]));
    TSR_TRY(plan_stage(pass, hidden, &linear[LLAMA_UP], NULL, &pass->linear[LLAMA_UP]));
    return plan_stage(pass, tsr_dtensor_layout(pass->linear[LLAMA_GATE].result), &linear[LLAMA_DOWN], hidden,
                      &pass->linear[LLAMA_DOWN]);
}

/* The vocabulary-parallel output, gathered. */
static tsr_status plan_output(llama_pass *pass)
{
    const llama_model *const model = pass->model;
    const tsr_mesh *const ranks = model->layouts.ranks;
    const int64_t x_shape[] = {pass->logit_rows, model->config->hidden_size},
                  y_shape[] = {pass->logit_rows, model->config->vocab_size};
    tsr_layout *x, *y;
    TSR_TRY(llama_layouts_replicated(ranks, 2, x_shape, &x));
    tsr_status status = llama_layouts_replicated(ranks, 2, y_shape, &y);
    if (status == TSR_OK) {
        status = plan_stage(pass, x, &model->weights.output, y, &pass->output);
        tsr_layout_destroy(y);
    }
    tsr_layout_destroy(x);
    return status;
}

static tsr_status plan_embedding(llama_pass *pass, const tsr_layout *hidden)
{
    tsr_layout *partial;
    TSR_TRY(llama_layouts_partial_hidden(&pass->model->layouts, pass->rows, &partial));
    tsr_status status = tsr_dtensor_create(partial, tsr_device_host(), &pass->embedded);
    if (status == TSR_OK)
        status = count_bytes(partial, hidden, &pass->bytes_received);
    tsr_layout_destroy(partial);
    TSR_TRY(status);
    TSR_TRY(tsr_dtensor_create(hidden, tsr_device_host(), &pass->hidden));
    return tsr_dtensor_create(hidden, tsr_device_host(), &pass->normed);
}

/*
 * The hidden state is whole on every rank, so that the same bytes serve as a tensor on either mesh.
 */
static tsr_status plan_layers(llama_pass *pass)
{
    const llama_layouts *const layouts = &pass->model->layouts;
    const int64_t shape[] = {pass->rows, pass->model->config->hidden_size};
    tsr_layout *hidden, *attention_hidden;
    TSR_TRY(llama_layouts_replicated(layouts->ranks, 2, shape, &hidden));
    tsr_status status = llama_layouts_replicated(layouts->attention, 2, shape, &attention_hidden);
    if (status != TSR_OK)
        goto destroy_hidden;
    status = plan_embedding(pass, hidden);
    if (status == TSR_OK)
        status = plan_attention(pass, attention_hidden);
    if (status == TSR_OK)
        status = plan_mlp(pass, hidden);
    tsr_layout_destroy(attention_hidden);
destroy_hidden:
    tsr_layout_destroy(hidden);
    return status;
}

static tsr_status fill(llama_pass *pass)
{
    const llama_model *const model = pass->model;
    TSR_TRY(plan_layers(pass));
    TSR_TRY(plan_output(pass));
    int64_t bytes_a_layer = 0;
    for (int kind = 0; kind < LLAMA_LINEAR_KINDS; kind++)
        bytes_a_layer += pass->linear[kind].bytes_received;
    pass->bytes_received += model->config->layers * bytes_a_layer + pass->output.bytes_received;
    pass->scores = calloc((size_t)model->capacity, sizeof(float));
    if (!pass->scores)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the scores of %lld positions",
                              (long long)model->capacity);
    return tsr_comm_alloc(model->comm, pass->workspace_bytes, &pass->workspace);
}

tsr_status llama_pass_create(const llama_model *model, int64_t rows, int64_t logit_rows, llama_pass **out)
{
    llama_pass *const pass = calloc(1, sizeof *pass);
    if (!pass)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for a pass of %lld tokens", (long long)rows);
    *pass = (llama_pass){.model = model, .rows = rows, .logit_rows = logit_rows, .workspace_bytes = 1};
    const tsr_status status = fill(pass);
    if (status == TSR_OK)
        *out = pass;
    else
        llama_pass_destroy(pass);
    return status;
}

static void finish_stage(stage *planned)
{
    tsr_dtensor_destroy(planned->result);
    tsr_linear_plan_destroy(planned->plan);
}

void llama_pass_destroy(llama_pass *pass)
{
    if (!pass)
        return;
    for (int kind = 0; kind < LLAMA_LINEAR_KINDS; kind++)
        finish_stage(&pass->linear[kind]);
    finish_stage(&pass->output);
    tsr_dtensor_destroy(pass->embedded);
    tsr_dtensor_destroy(pass->hidden);
    tsr_dtensor_destroy(pass->normed);
    tsr_dtensor_destroy(pass->attended);
    if (pass->workspace)
        tsr_comm_free(pass->model->comm, pass->workspace, pass->workspace_bytes);
    free(pass->scores);
    free(pass);
}

static tsr_status run_stage(const llama_pass *pass, const stage *planned, const tsr_tensor *x,
                            const llama_linear *layer)
{
    const tsr_tensor w = tsr_dtensor_to_local(layer->weight), y = tsr_dtensor_to_local(planned->result);
    const tsr_tensor b = layer->bias ? tsr_dtensor_to_local(layer->bias) : (tsr_tensor){0};
    return tsr_linear_plan_execute(planned->plan, x, &w, layer->bias ? &b : NULL, &y, pass->workspace,
                                   pass->workspace_bytes, NULL);
}

static tsr_status run_linear(const llama_pass *pass, llama_linear_kind kind, const tsr_dtensor *x,
                             const llama_layer *layer)
{
    const tsr_tensor local = tsr_dtensor_to_local(x);
    return run_stage(pass, &pass->linear[kind], &local, &layer->linear[kind]);
}

/* Each rank writes the embeddings, in f32, of the tokens in its part of the vocabulary, and zeros
 * for the others; the sum over ranks is the embedding. */
static tsr_status embed(const llama_pass *pass, const int64_t *tokens)
{
    const tsr_dtensor *const embedding = pass->model->weights.embedding;
    const int64_t width = pass->model->config->hidden_size;
    const tsr_tensor own_rows = tsr_dtensor_to_local(embedding);
    void *self;
    const tsr_device_table *const host = tsr_device_driver_table(NULL, &self);
    int64_t shape[2], offset[2];
    TSR_TRY(tsr_layout_local(tsr_dtensor_layout(embedding), NULL, shape, offset));
    float *row = llama_local(pass->embedded);
    for (int64_t r = 0; r < pass->rows; r++, row += width) {
        const int64_t own = tokens[r] - offset[0], bytes = (int64_t)tsr_dtype_bytes(own_rows.dtype);
        if (own >= 0 && own < shape[0])
            TSR_TRY(host->convert(self, 0, row, TSR_F32, (const char *)own_rows.data + own * width * bytes,
                                  own_rows.dtype, width, NULL));
        else
            memset(row, 0, (size_t)width * sizeof(float));
    }
    return tsr_redistribute_into(pass->embedded, pass->hidden, NULL);
}

static void norm(const llama_pass *pass, const tsr_dtensor *weight, int64_t rows)
{
    const llama_config *const config = pass->model->config;
    const float *const last = llama_local(pass->hidden) + (pass->rows - rows) * config->hidden_size;
    llama_rms_norm(last, llama_local(weight), rows, config->hidden_size, (float)config->norm_epsilon,
                   llama_local(pass->normed));
}

static void add(const llama_pass *pass, llama_linear_kind kind)
{
    llama_add(llama_local(pass->hidden), llama_local(pass->linear[kind].result),
              pass->rows * pass->model->config->hidden_size);
}

static tsr_status run_attention(const llama_pass *pass, const llama_layer *layer, const llama_cache *cache,
                                int64_t first)
{
    const llama_model *const model = pass->model;
    const llama_heads *const heads = &model->heads;
    float *const queries = llama_local(pass->linear[LLAMA_QUERY].result);
    float *const keys = llama_local(pass->linear[LLAMA_KEY].result);
    norm(pass, layer->attention_norm, pass->rows);
    TSR_TRY(run_linear(pass, LLAMA_QUERY, pass->normed, layer));
    TSR_TRY(run_linear(pass, LLAMA_KEY, pass->normed, layer));
    TSR_TRY(run_linear(pass, LLAMA_VALUE, pass->normed, layer));
    llama_rope_apply(&model->rope, queries, pass->rows, heads->count, first);
    llama_rope_apply(&model->rope, keys, pass->rows, heads->kv_count, first);
    llama_cache_store(cache, heads, keys, llama_local(pass->linear[LLAMA_VALUE].result), pass->rows, first);
    llama_attention(cache, heads, queries, pass->rows, first, pass->scores, llama_local(pass->attended));
    TSR_TRY(run_linear(pass, LLAMA_ATTENTION_OUTPUT, pass->attended, layer));
    add(pass, LLAMA_ATTENTION_OUTPUT);
    return TSR_OK;
}

static tsr_status run_mlp(const llama_pass *pass, const llama_layer *layer)
{
    const tsr_dtensor *const gate = pass->linear[LLAMA_GATE].result, *const up = pass->linear[LLAMA_UP].result;
    const tsr_tensor local = tsr_dtensor_to_local(gate);
    norm(pass, layer->mlp_norm, pass->rows);
    TSR_TRY(run_linear(pass, LLAMA_GATE, pass->normed, layer));
    TSR_TRY(run_linear(pass, LLAMA_UP, pass->normed, layer));
    llama_silu_multiply(llama_local(gate), llama_local(up), local.shape[0] * local.shape[1]);
    TSR_TRY(run_linear(pass, LLAMA_DOWN, gate, layer));
    add(pass, LLAMA_DOWN);
    return TSR_OK;
}

tsr_status llama_pass_run(llama_pass *pass, const int64_t *tokens, int64_t first, const float **logits)
{
    const llama_model *const model = pass->model;
    const llama_weights *const weights = &model->weights;
    TSR_TRY(embed(pass, tokens));
    for (int64_t i = 0; i < weights->layer_count; i++) {
        TSR_TRY(run_attention(pass, &weights->layers[i], &model->caches[i].local, first));
        TSR_TRY(run_mlp(pass, &weights->layers[i]));
    }
    norm(pass, weights->norm, pass->logit_rows);
    const int64_t shape[] = {pass->logit_rows, model->config->hidden_size};
    const tsr_tensor x = tsr_tensor_contiguous(llama_local(pass->normed), TSR_F32, 2, shape);
    TSR_TRY(run_stage(pass, &pass->output, &x, &weights->output));
    *logits = llama_local(pass->output.result);
    return TSR_OK;
}

int64_t llama_pass_bytes_received(const llama_pass *pass)
{
    return pass->bytes_received;
}
