#include "statement.h"

#include <stdio.h>

/* What is being stated. */
typedef struct statement {
    const llama_model *model;
    tsr_program *p;
    tsr_value positions, first;
    int64_t tokens, total; /* lengths */
    int64_t layer;
} statement;

static tsr_value apply(const statement *s, const char *op, size_t count, const tsr_attribute *attributes, tsr_value a,
                       tsr_value b, tsr_value c)
{
    return tsr_program_apply(s->p, op, count, attributes, (const tsr_value[]){a, b, c, TSR_NONE}, NULL);
}

static tsr_value reshape(const statement *s, tsr_value x, int64_t heads, int64_t width)
{
    const int64_t shape[] = {s->tokens, heads, width};
    const tsr_attribute attribute = tsr_attribute_ints("shape", heads ? 3 : 2, heads ? shape : (int64_t[]){s->tokens, width});
    return apply(s, "reshape", 1, &attribute, x, TSR_NONE, TSR_NONE);
}

/* (tokens, heads, dim) to (heads, tokens, dim), or back. */
static tsr_value swap(const statement *s, tsr_value x)
{
    const tsr_attribute dims[] = {tsr_attribute_int("dim0", 0), tsr_attribute_int("dim1", 1)};
    return apply(s, "transpose", 2, dims, x, TSR_NONE, TSR_NONE);
}

static tsr_value parameter(const statement *s, const char *name, const tsr_dtensor *tensor)
{
    char text[128];
    snprintf(text, sizeof text, name, (long long)s->layer);
    return tensor ? tsr_parameter(s->p, text, tsr_dtensor_layout(tensor)) : TSR_NONE;
}

/* A linear layer of the layer that is stated. */
static tsr_value linear(const statement *s, llama_linear_kind kind, tsr_value x)
{
    char name[128];
    const llama_linear *const layer = &s->model->weights.layers[s->layer].linear[kind];
    snprintf(name, sizeof name, "model.layers.%%lld.%s.weight", llama_linear_name(kind));
    const tsr_value w = parameter(s, name, layer->weight);
    snprintf(name, sizeof name, "model.layers.%%lld.%s.bias", llama_linear_name(kind));
    return apply(s, "linear", 0, NULL, x, w, parameter(s, name, layer->bias));
}

static tsr_value norm(const statement *s, const char *name, const tsr_dtensor *weight, tsr_value x)
{
    const tsr_attribute epsilon = tsr_attribute_float("epsilon", s->model->config->norm_epsilon);
    return apply(s, "rms_norm", 1, &epsilon, x, parameter(s, name, weight), TSR_NONE);
}

/* Whole on every rank of the mesh. */
static tsr_value gather(const statement *s, tsr_value x, const tsr_mesh *mesh)
{
    tsr_layout *layout;
    const tsr_layout *const own = tsr_value_layout(s->p, x);
    if (!own || llama_layouts_replicated(mesh, tsr_layout_ndim(own), tsr_layout_shape(own), &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value whole = tsr_op_to_mesh(s->p, x, layout);
    tsr_layout_destroy(layout);
    return whole;
}

static tsr_value rope(const statement *s, tsr_value x)
{
    const llama_rope_config *const r = &s->model->config->rope;
    const bool is_llama3 = r->type == LLAMA_ROPE_LLAMA3;
    const tsr_attribute attributes[] = {
        tsr_attribute_float("base", r->theta),
        tsr_attribute_float("factor", r->type == LLAMA_ROPE_DEFAULT ? 1 : r->factor),
        tsr_attribute_float("low_freq_factor", is_llama3 ? r->low_frequency_factor : 1),
        tsr_attribute_float("high_freq_factor", is_llama3 ? r->high_frequency_factor : 4),
        tsr_attribute_int("original_max_position", is_llama3 ? (int64_t)r->original_positions : 0)};
    return apply(s, "rope", 5, attributes, x, s->positions, TSR_NONE);
}

/* Adds keys or values (tokens, heads, dim) to their cache, and returns all so far (heads, total, dim). */
static tsr_value remember(const statement *s, const char *name, const tsr_dtensor *cache, tsr_value x)
{
    char text[64];
    const tsr_attribute range[] = {tsr_attribute_int("dim", 1), tsr_attribute_int("end", s->total)};
    snprintf(text, sizeof text, name, (long long)s->layer);
    const tsr_value state = tsr_state(s->p, text, tsr_dtensor_layout(cache));
    tsr_op_store(s->p, state, swap(s, x), s->first);
    return apply(s, "slice", 2, range, state, TSR_NONE, TSR_NONE);
}

/* Attention of the rank's own heads; only the sum of o communicates. */
static tsr_value attend(const statement *s, tsr_value x)
{
    const llama_config *const c = s->model->config;
    const llama_layer_cache *const cache = &s->model->caches[s->layer];
    const tsr_attribute causal = tsr_attribute_int("causal", 1);
    const tsr_value q = rope(s, reshape(s, linear(s, LLAMA_QUERY, x), c->heads, c->head_dim));
    const tsr_value k = rope(s, reshape(s, linear(s, LLAMA_KEY, x), c->kv_heads, c->head_dim));
    const tsr_value v = reshape(s, linear(s, LLAMA_VALUE, x), c->kv_heads, c->head_dim);
    const tsr_value keys = remember(s, "cache.%lld.keys", cache->keys, k);
    const tsr_value values = remember(s, "cache.%lld.values", cache->values, v);
    const tsr_value y = swap(s, apply(s, "attention", 1, &causal, swap(s, q), keys, values));
    return linear(s, LLAMA_ATTENTION_OUTPUT, reshape(s, y, 0, c->heads * c->head_dim));
}

/* The gated MLP; only the sum of down communicates. */
static tsr_value mlp(const statement *s, tsr_value x)
{
    return linear(s, LLAMA_DOWN,
                  apply(s, "silu_mul", 0, NULL, linear(s, LLAMA_GATE, x), linear(s, LLAMA_UP, x), TSR_NONE));
}

static tsr_value layer(const statement *s, tsr_value x)
{
    const llama_layer *const w = &s->model->weights.layers[s->layer];
    const llama_layouts *const on = &s->model->layouts;
    const tsr_value y = gather(s, norm(s, "model.layers.%lld.input_layernorm.weight", w->attention_norm, x), on->attention);
    x = apply(s, "add", 0, NULL, x, gather(s, attend(s, y), on->ranks), TSR_NONE);
    const tsr_value z = norm(s, "model.layers.%lld.post_attention_layernorm.weight", w->mlp_norm, x);
    return apply(s, "add", 0, NULL, x, gather(s, mlp(s, z), on->ranks), TSR_NONE);
}

/* The embeddings of tokens in f32: each rank has those of its part of the vocabulary. */
static tsr_value embed(const statement *s, tsr_value tokens, tsr_value weight)
{
    const tsr_attribute dtype = tsr_attribute_dtype("dtype", TSR_F32);
    const tsr_value x = apply(s, "embedding", 0, NULL, weight, tokens, TSR_NONE);
    return gather(s, apply(s, "cast", 1, &dtype, x, TSR_NONE, TSR_NONE), s->model->layouts.ranks);
}

tsr_status llama_state(const llama_model *model, tsr_program *p)
{
    const llama_layouts *const on = &model->layouts;
    const llama_weights *const w = &model->weights;
    statement s = {.model = model, .p = p};
    s.tokens = tsr_length(p, "tokens", model->capacity);
    s.total = tsr_length(p, "total", model->capacity);
    const int64_t kept = tsr_length(p, "wanted", model->capacity);
    const tsr_value tokens = tsr_input(p, "tokens", on->ranks, TSR_I64, 1, &s.tokens, NULL);
    s.positions = tsr_input(p, "positions", on->attention, TSR_I64, 1, &s.tokens, NULL);
    s.first = tsr_input(p, "first", on->attention, TSR_I64, 0, NULL, NULL);
    const tsr_value wanted = tsr_input(p, "wanted", on->ranks, TSR_I64, 1, &kept, NULL);
    const tsr_value embedding = parameter(&s, "model.embed_tokens.weight", w->embedding);
    tsr_value x = embed(&s, tokens, embedding);
    for (; s.layer < model->config->layers; s.layer++)
        x = layer(&s, x);
    const tsr_attribute dim = tsr_attribute_int("dim", 0);
    x = norm(&s, "model.norm.weight", w->norm, apply(&s, "index_select", 1, &dim, x, wanted, TSR_NONE));
    const bool tied = model->config->tied_embeddings;
    const tsr_value output = tied ? embedding : parameter(&s, "lm_head.weight", w->output.weight);
    tsr_output(p, "logits", gather(&s, apply(&s, "linear", 0, NULL, x, output, TSR_NONE), on->ranks), NULL);
    return tsr_program_status(p, NULL);
}
