#include "statement.h"

#include <stdio.h>

/* What is being stated. */
typedef struct statement {
    const llama_layouts *on;
    const llama_config *config;
    tsr_program *p;
    tsr_value positions, first;
    int64_t tokens, total, capacity; /* two lengths, and their maximum */
    int64_t layer;
} statement;

static tsr_value apply(const statement *s, const char *op, size_t count, const tsr_attribute *attributes, tsr_value a,
                       tsr_value b, tsr_value c)
{
    return tsr_program_apply(s->p, op, count, attributes, (const tsr_value[]){a, b, c, TSR_NONE}, NULL);
}

/* A parameter of the layer that is stated; the layout, which may be NULL, goes to the program. */
static tsr_value parameter(const statement *s, const char *name, const char *part, tsr_layout *layout)
{
    char text[128];
    snprintf(text, sizeof text, "model.layers.%lld.%s.%s", (long long)s->layer, name, part);
    const tsr_value value = layout ? tsr_parameter(s->p, text, layout) : TSR_NONE;
    tsr_layout_destroy(layout);
    return value;
}

static tsr_value linear(const statement *s, llama_linear_kind kind, tsr_value x)
{
    llama_linear_layouts l;
    const char *const name = llama_linear_name(kind);
    if (llama_layouts_linear(s->on, kind, &l) != TSR_OK)
        return TSR_NONE;
    const tsr_value w = parameter(s, name, "weight", l.weight), scales = parameter(s, name, "scales", l.scales);
    const tsr_value b = parameter(s, name, "bias", l.bias);
    const tsr_value narrow[] = {x, w, scales, b};
    return l.scales ? tsr_program_apply(s->p, "linear_q8", 0, NULL, narrow, NULL)
                    : apply(s, "linear", 0, NULL, x, w, b);
}

static tsr_value scale_rows(const statement *s, tsr_value x, tsr_value weight)
{
    const tsr_attribute epsilon = tsr_attribute_float("epsilon", s->config->norm_epsilon);
    return apply(s, "rms_norm", 1, &epsilon, x, weight, TSR_NONE);
}

/* A norm whose weight every rank of the mesh has. */
static tsr_value norm(const statement *s, const char *name, const tsr_mesh *mesh, int64_t width, tsr_value x)
{
    tsr_layout *layout;
    if (llama_layouts_replicated(mesh, 1, &width, &layout) != TSR_OK)
        return TSR_NONE;
    return scale_rows(s, x, parameter(s, name, "weight", layout));
}

/* The value, whole on every rank of the mesh. */
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

/* Where there is one head, a rank has it or not: says so of its dim, by a redistribution that moves
 * nothing, or of its elements. */
static tsr_value say_one_head(const statement *s, int64_t heads, const char *placements, tsr_value x)
{
    char text[64];
    snprintf(text, sizeof text, placements, (long long)s->config->head_dim);
    const tsr_attribute attribute = tsr_attribute_text("placements", text);
    return heads == 1 && !s->on->spread ? apply(s, "redistribute", 1, &attribute, x, TSR_NONE, TSR_NONE) : x;
}

/* (tokens, heads * dim) as (tokens, heads, dim). */
static tsr_value split(const statement *s, tsr_value x, int64_t heads)
{
    const int64_t sizes[] = {s->tokens, heads, s->config->head_dim};
    const tsr_attribute shape = tsr_attribute_ints("shape", 3, sizes);
    return say_one_head(s, heads, "S(1)", apply(s, "reshape", 1, &shape, x, TSR_NONE, TSR_NONE));
}

static tsr_value join(const statement *s, tsr_value x)
{
    const int64_t sizes[] = {s->tokens, s->config->heads * s->config->head_dim};
    const tsr_attribute shape = tsr_attribute_ints("shape", 2, sizes);
    x = say_one_head(s, s->config->heads, "S(2;unit=%lld)", x);
    return apply(s, "reshape", 1, &shape, x, TSR_NONE, TSR_NONE);
}

/* (tokens, heads, dim) as (heads, tokens, dim), or back. */
static tsr_value swap(const statement *s, tsr_value x)
{
    return apply(s, "transpose", 0, NULL, x, TSR_NONE, TSR_NONE);
}

static tsr_value rope(const statement *s, tsr_value x)
{
    const llama_rope_config *const r = &s->config->rope;
    const bool is_llama3 = r->type == LLAMA_ROPE_LLAMA3;
    const tsr_attribute attributes[] = {
        tsr_attribute_float("base", r->theta),
        tsr_attribute_float("factor", r->type == LLAMA_ROPE_DEFAULT ? 1 : r->factor),
        tsr_attribute_float("low_freq_factor", is_llama3 ? r->low_frequency_factor : 1),
        tsr_attribute_float("high_freq_factor", is_llama3 ? r->high_frequency_factor : 4),
        tsr_attribute_int("original_max_position", is_llama3 ? (int64_t)r->original_positions : 0)};
    return apply(s, "rope", 5, attributes, x, s->positions, TSR_NONE);
}

/* Queries or keys (tokens, heads, dim), turned to their positions. */
static tsr_value project(const statement *s, llama_linear_kind kind, const char *norm_name, int64_t heads, tsr_value x)
{
    tsr_value y = split(s, linear(s, kind, x), heads);
    if (s->config->has_head_norms)
        y = norm(s, norm_name, s->on->attention, s->config->head_dim, y);
    return rope(s, y);
}

/* Adds keys or values (tokens, heads, dim) to their cache; returns all so far (heads, total, dim). */
static tsr_value remember(const statement *s, const char *name, tsr_value x)
{
    char text[64];
    tsr_layout *layout;
    const tsr_attribute range[] = {tsr_attribute_int("dim", 1), tsr_attribute_int("end", s->total)};
    if (llama_layouts_cache(s->on, s->capacity, &layout) != TSR_OK)
        return TSR_NONE;
    snprintf(text, sizeof text, "cache.%lld.%s", (long long)s->layer, name);
    const tsr_value cache = tsr_state(s->p, text, layout);
    tsr_layout_destroy(layout);
    tsr_op_store(s->p, cache, swap(s, x), s->first);
    return apply(s, "slice", 2, range, cache, TSR_NONE, TSR_NONE);
}

/* Attention of the rank's own heads; only the sum of o communicates. */
static tsr_value attend(const statement *s, tsr_value x)
{
    const llama_config *const c = s->config;
    const tsr_attribute attributes[] = {tsr_attribute_int("causal", 1),
                                        tsr_attribute_int("window", llama_config_window(c, s->layer))};
    const tsr_value q = project(s, LLAMA_QUERY, "self_attn.q_norm", c->heads, x);
    const tsr_value k = remember(s, "keys", project(s, LLAMA_KEY, "self_attn.k_norm", c->kv_heads, x));
    const tsr_value v = remember(s, "values", split(s, linear(s, LLAMA_VALUE, x), c->kv_heads));
    return linear(s, LLAMA_ATTENTION_OUTPUT, join(s, swap(s, apply(s, "attention", 2, attributes, swap(s, q), k, v))));
}

/* The gated MLP; only the sum of down communicates. */
static tsr_value transform(const statement *s, tsr_value x)
{
    const tsr_value gate = linear(s, LLAMA_GATE, x), up = linear(s, LLAMA_UP, x);
    return linear(s, LLAMA_DOWN, apply(s, "silu_mul", 0, NULL, gate, up, TSR_NONE));
}

static tsr_value layer(const statement *s, tsr_value x)
{
    const tsr_mesh *const ranks = s->on->ranks;
    const tsr_value y = norm(s, "input_layernorm", ranks, s->config->hidden_size, x);
    x = apply(s, "add", 0, NULL, x, gather(s, attend(s, gather(s, y, s->on->attention)), ranks), TSR_NONE);
    const tsr_value z = norm(s, "post_attention_layernorm", ranks, s->config->hidden_size, x);
    return apply(s, "add", 0, NULL, x, gather(s, transform(s, z), ranks), TSR_NONE);
}

/* The embedding, or the output's weight. */
static tsr_value vocabulary(const statement *s, const char *name)
{
    tsr_layout *layout;
    if (llama_layouts_vocabulary(s->on, &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value weight = tsr_parameter(s->p, name, layout);
    tsr_layout_destroy(layout);
    return weight;
}

/* The embeddings of tokens in f32: each rank adds those of its part of the vocabulary. */
static tsr_value embed(const statement *s, tsr_value weight, tsr_value tokens)
{
    const tsr_attribute dtype = tsr_attribute_dtype("dtype", TSR_F32);
    const tsr_value x = apply(s, "embedding", 0, NULL, weight, tokens, TSR_NONE);
    return gather(s, apply(s, "cast", 1, &dtype, x, TSR_NONE, TSR_NONE), s->on->ranks);
}

static tsr_value model_norm(const statement *s, tsr_value x)
{
    tsr_layout *layout;
    if (llama_layouts_replicated(s->on->ranks, 1, &s->config->hidden_size, &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value weight = tsr_parameter(s->p, "model.norm.weight", layout);
    tsr_layout_destroy(layout);
    return scale_rows(s, x, weight);
}

tsr_status llama_state(const llama_layouts *on, int64_t capacity, tsr_program *p)
{
    statement s = {.on = on, .config = on->config, .p = p, .capacity = capacity};
    const tsr_attribute dim = tsr_attribute_int("dim", 0);
    s.tokens = tsr_length(p, "tokens", capacity);
    s.total = tsr_length(p, "total", capacity);
    const int64_t kept = tsr_length(p, "wanted", capacity);
    const tsr_value tokens = tsr_input(p, "tokens", on->ranks, TSR_I64, 1, &s.tokens, NULL);
    s.positions = tsr_input(p, "positions", on->attention, TSR_I64, 1, &s.tokens, NULL);
    s.first = tsr_input(p, "first", on->attention, TSR_I64, 0, NULL, NULL);
    const tsr_value wanted = tsr_input(p, "wanted", on->ranks, TSR_I64, 1, &kept, NULL);
    const tsr_value embedding = vocabulary(&s, "model.embed_tokens.weight");
    tsr_value x = embed(&s, embedding, tokens);
    for (; s.layer < on->config->layers; s.layer++)
        x = layer(&s, x);
    x = model_norm(&s, apply(&s, "index_select", 1, &dim, x, wanted, TSR_NONE));
    const tsr_value output = on->config->tied_embeddings ? embedding : vocabulary(&s, "lm_head.weight");
    tsr_output(p, "logits", gather(&s, apply(&s, "linear", 0, NULL, x, output, TSR_NONE), on->ranks), NULL);
    return tsr_program_status(p, NULL);
}
