#include "weights.h"

#include "random.h"

#include <tessera/sys/device.h>

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Random tensors are `center` plus a uniform deviation of at most `width`. */
typedef struct spread {
    float center, width;
} spread;

/* The state of a load. */
typedef struct loader {
    const llama_layouts *layouts;
    const llama_source *source;
    llama_weights *weights;
} loader;

/* "512x192" */
static void print_shape(int ndim, const int64_t *shape, char text[TSR_MAX_DIMS * 21])
{
    const size_t capacity = TSR_MAX_DIMS * 21;
    size_t length = 0;
    text[0] = '\0';
    for (int i = 0; i < ndim && length < capacity; i++)
        length += (size_t)snprintf(text + length, capacity - length, "%s%lld", i > 0 ? "x" : "", (long long)shape[i]);
}

static tsr_status check_entry(const tsr_safetensors_entry *entry, const tsr_layout *layout)
{
    const int ndim = tsr_layout_ndim(layout);
    const int64_t *const shape = tsr_layout_shape(layout);
    if (entry->ndim != ndim || memcmp(entry->shape, shape, (size_t)ndim * sizeof shape[0]) != 0) {
        char found[TSR_MAX_DIMS * 21], wanted[TSR_MAX_DIMS * 21];
        print_shape(entry->ndim, entry->shape, found);
        print_shape(ndim, shape, wanted);
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: tensor %s has shape (%s), but config.json asks for (%s)",
                              entry->path, entry->name, found, wanted);
    }
    if (entry->dtype != TSR_F32 && entry->dtype != TSR_F16 && entry->dtype != TSR_BF16)
        return tsr_status_set(TSR_ERROR_UNSUPPORTED,
                              "%s: tensor %s is of dtype %s; this program reads f32, f16 and bf16", entry->path,
                              entry->name, tsr_dtype_name(entry->dtype));
    return TSR_OK;
}

static tsr_status read_file(const loader *from, const char *name, const tsr_layout *layout, tsr_dtensor **out)
{
    const tsr_safetensors *const checkpoint = from->source->checkpoint;
    const tsr_safetensors_entry *const entry = tsr_safetensors_find(checkpoint, name);
    int64_t bytes_read = 0;
    if (entry)
        TSR_TRY(check_entry(entry, layout));
    TSR_TRY(tsr_safetensors_distribute(checkpoint, name, layout, &bytes_read, out));
    from->weights->bytes_read += bytes_read;
    return TSR_OK;
}

/* Writes f32 values to `to`, rounding once. */
static tsr_status write_row(const float *row, const tsr_tensor *to, int64_t first, int64_t count)
{
    void *self;
    char *const at = (char *)to->data + first * (int64_t)tsr_dtype_bytes(to->dtype);
    return tsr_device_driver_table(NULL, &self)->convert(self, 0, at, to->dtype, row, TSR_F32, count, NULL);
}

/* Makes every element from its global index, so that all meshes get the same tensor. Assumes that a
 * rank has one interval per dim, as with all cuts of this program. */
static tsr_status make_random(const loader *from, const char *name, const tsr_layout *layout, spread values,
                              tsr_dtensor **out)
{
    const int matrix = tsr_layout_ndim(layout) > 1;
    const int64_t width = matrix ? tsr_layout_shape(layout)[1] : 1;
    const uint64_t stream = llama_random_stream(from->source->seed, name);
    int64_t shape[TSR_MAX_DIMS], offset[TSR_MAX_DIMS];
    TSR_TRY(tsr_layout_local(layout, NULL, shape, offset));
    TSR_TRY(tsr_dtensor_create(layout, tsr_device_host(), out));
    const int64_t columns = matrix ? shape[1] : 1, first_column = matrix ? offset[1] : 0;
    const tsr_tensor local = tsr_dtensor_to_local(*out);
    float *const elements = malloc((size_t)(columns + 1) * sizeof(float));
    tsr_status status = elements ? TSR_OK : tsr_status_set(TSR_ERROR_MEMORY, "no memory for a row of %s", name);
    for (int64_t row = 0; row < shape[0] && status == TSR_OK; row++) {
        for (int64_t column = 0; column < columns; column++) {
            const int64_t index = (offset[0] + row) * width + first_column + column;
            elements[column] = values.center + values.width * llama_random_symmetric(stream, (uint64_t)index);
        }
        status = write_row(elements, &local, row * columns, columns);
    }
    free(elements);
    return status;
}

static tsr_status load(const loader *from, const char *name, const tsr_layout *layout, spread values, tsr_dtensor **out)
{
    return from->source->checkpoint ? read_file(from, name, layout, out) : make_random(from, name, layout, values, out);
}

/* The spread that keeps the norm of vectors through a matrix of `in` columns: a uniform deviation
 * of variance 1 / in. */
static spread spread_of_matrix(int64_t in)
{
    return (spread){0, (float)sqrt(3.0 / (double)in)};
}

static tsr_status load_norm(const loader *from, const char *name, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(llama_layouts_replicated(from->layouts->ranks, 1, &from->layouts->config->hidden_size, &layout));
    const tsr_status status = load(from, name, layout, (spread){1, 0.1f}, out);
    tsr_layout_destroy(layout);
    return status;
}

static tsr_status load_vocabulary(const loader *from, const char *name, tsr_dtensor **out)
{
    tsr_layout *layout;
    TSR_TRY(llama_layouts_vocabulary(from->layouts, &layout));
    const tsr_status status = load(from, name, layout, spread_of_matrix(from->layouts->config->hidden_size), out);
    tsr_layout_destroy(layout);
    return status;
}

/* The linear layers' names in checkpoints. `in_mlp` says which of mlp_bias and attention_bias in
 * the configuration tells whether there is a bias. */
static const struct {
    const char *name;
    int in_mlp;
} LINEAR_NAMES[LLAMA_LINEAR_KINDS] = {
    [LLAMA_QUERY] = {"self_attn.q_proj", 0}, [LLAMA_KEY] = {"self_attn.k_proj", 0},
    [LLAMA_VALUE] = {"self_attn.v_proj", 0}, [LLAMA_ATTENTION_OUTPUT] = {"self_attn.o_proj", 0},
    [LLAMA_GATE] = {"mlp.gate_proj", 1},     [LLAMA_UP] = {"mlp.up_proj", 1},
    [LLAMA_DOWN] = {"mlp.down_proj", 1},
};

const char *llama_linear_name(llama_linear_kind kind)
{
    return LINEAR_NAMES[kind].name;
}

static tsr_status load_linear(const loader *from, int64_t index, llama_linear_kind kind, llama_linear *out)
{
    const llama_config *const config = from->layouts->config;
    const bool biased = LINEAR_NAMES[kind].in_mlp ? config->mlp_bias : config->attention_bias;
    char name[128];
    tsr_layout *weight, *bias;
    TSR_TRY(llama_layouts_linear(from->layouts, kind, &weight, &bias));
    snprintf(name, sizeof name, "model.layers.%lld.%s.weight", (long long)index, LINEAR_NAMES[kind].name);
    tsr_status status = load(from, name, weight, spread_of_matrix(tsr_layout_shape(weight)[1]), &out->weight);
    if (status == TSR_OK && biased) {
        snprintf(name, sizeof name, "model.layers.%lld.%s.bias", (long long)index, LINEAR_NAMES[kind].name);
        status = load(from, name, bias, (spread){0, 0.1f}, &out->bias);
    }
    tsr_layout_destroy(weight);
    tsr_layout_destroy(bias);
    return status;
}

static tsr_status load_layer(const loader *from, int64_t index, llama_layer *out)
{
    char name[128];
    snprintf(name, sizeof name, "model.layers.%lld.input_layernorm.weight", (long long)index);
    TSR_TRY(load_norm(from, name, &out->attention_norm));
    snprintf(name, sizeof name, "model.layers.%lld.post_attention_layernorm.weight", (long long)index);
    TSR_TRY(load_norm(from, name, &out->mlp_norm));
    for (int kind = 0; kind < LLAMA_LINEAR_KINDS; kind++)
        TSR_TRY(load_linear(from, index, (llama_linear_kind)kind, &out->linear[kind]));
    return TSR_OK;
}

static tsr_status load_all(const loader *from, llama_weights *out)
{
    TSR_TRY(load_vocabulary(from, "model.embed_tokens.weight", &out->embedding));
    for (int64_t i = 0; i < out->layer_count; i++)
        TSR_TRY(load_layer(from, i, &out->layers[i]));
    TSR_TRY(load_norm(from, "model.norm.weight", &out->norm));
    if (!from->layouts->config->tied_embeddings)
        return load_vocabulary(from, "lm_head.weight", &out->output.weight);
    out->output.weight = tsr_dtensor_retain(out->embedding);
    return TSR_OK;
}

/* Sets `*dtype` to that of the tensor `name`, or to f32 if it already was another one. A missing
 * tensor is reported when it is loaded. */
static void join_dtype(const tsr_safetensors *checkpoint, const char *name, tsr_dtype *dtype)
{
    const tsr_safetensors_entry *const entry = tsr_safetensors_find(checkpoint, name);
    if (entry)
        *dtype = *dtype == TSR_DTYPE_NONE || *dtype == entry->dtype ? entry->dtype : TSR_F32;
}

tsr_dtype llama_weights_dtype(const llama_config *config, const llama_source *source)
{
    static const char *const parts[] = {"weight", "bias"};
    tsr_dtype dtype = TSR_DTYPE_NONE;
    char name[128];
    if (source->dtype != TSR_DTYPE_NONE || !source->checkpoint)
        return source->dtype != TSR_DTYPE_NONE ? source->dtype : TSR_F32;
    join_dtype(source->checkpoint, "model.embed_tokens.weight", &dtype);
    if (!config->tied_embeddings)
        join_dtype(source->checkpoint, "lm_head.weight", &dtype);
    for (int64_t i = 0; i < config->layers * LLAMA_LINEAR_KINDS * 2; i++) {
        const int64_t layer = i / 2 / LLAMA_LINEAR_KINDS;
        snprintf(name, sizeof name, "model.layers.%lld.%s.%s", (long long)layer,
                 LINEAR_NAMES[i / 2 % LLAMA_LINEAR_KINDS].name, parts[i % 2]);
        join_dtype(source->checkpoint, name, &dtype);
    }
    return dtype == TSR_F16 || dtype == TSR_BF16 ? dtype : TSR_F32;
}

tsr_status llama_weights_load(const llama_layouts *layouts, const llama_source *source, llama_weights *out)
{
    const int64_t layer_count = layouts->config->layers;
    llama_weights weights = {.layers = calloc((size_t)layer_count, sizeof(llama_layer)), .layer_count = layer_count};
    if (!weights.layers)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %lld layers", (long long)layer_count);
    const loader from = {layouts, source, &weights};
    const tsr_status status = load_all(&from, &weights);
    if (status == TSR_OK)
        *out = weights;
    else
        llama_weights_finish(&weights);
    return status;
}

static void finish_linear(llama_linear *linear)
{
    tsr_dtensor_destroy(linear->weight);
    tsr_dtensor_destroy(linear->bias);
}

void llama_weights_finish(llama_weights *weights)
{
    for (int64_t i = 0; weights->layers && i < weights->layer_count; i++) {
        llama_layer *const layer = &weights->layers[i];
        tsr_dtensor_destroy(layer->attention_norm);
        tsr_dtensor_destroy(layer->mlp_norm);
        for (int kind = 0; kind < LLAMA_LINEAR_KINDS; kind++)
            finish_linear(&layer->linear[kind]);
    }
    free(weights->layers);
    tsr_dtensor_destroy(weights->embedding);
    tsr_dtensor_destroy(weights->norm);
    finish_linear(&weights->output);
    *weights = (llama_weights){0};
}
