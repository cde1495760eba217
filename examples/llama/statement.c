#include "statement.h"

#include <stdio.h>

/* What is being stated. */
typedef struct statement {
    const llama_layouts *on;
    const llama_config *config;
    tsr_program *p;
    tsr_value positions, first;
    int64_t tokens, total, capacity; /* two lengths, and their maximum */
    int64_t layer;                   /* that is stated; -1: none */
} statement;

/* The name of a module, of the layer where there is one. */
static const char *name_module(const statement *s, const char *name, char text[112])
{
    char prefix[48] = "";
    if (s->layer >= 0)
        snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)s->layer);
    snprintf(text, 112, "%s%s", prefix, name);
    return text;
}

/* A parameter; the layout, which goes to the program, is that of the plan where there is one. NULL:
 * none. */
static tsr_value parameter(const statement *s, const char *name, const char *part, tsr_layout *layout)
{
    char text[128], module[112];
    tsr_value value = TSR_NONE;
    snprintf(text, sizeof text, "%s.%s", name_module(s, name, module), part);
    if (layout && s->on->plan)
        value = tsr_parallel_plan_parameter(s->on->plan, s->p, text, s->on->ranks, tsr_layout_dtype(layout),
                                            tsr_layout_ndim(layout), tsr_layout_shape(layout), NULL);
    else if (layout)
        value = tsr_parameter(s->p, text, layout);
    tsr_layout_destroy(layout);
    return value;
}

/* What the plan does with a module's input, and with its output. */
static tsr_value enter(const statement *s, const char *name, tsr_value x)
{
    char module[112];
    return s->on->plan ? tsr_parallel_plan_input(s->on->plan, s->p, name_module(s, name, module), x) : x;
}

static tsr_value leave(const statement *s, const char *name, tsr_value x)
{
    char module[112];
    return s->on->plan ? tsr_parallel_plan_output(s->on->plan, s->p, name_module(s, name, module), x, NULL) : x;
}

static tsr_value linear(const statement *s, llama_linear_kind kind, tsr_value x)
{
    llama_linear_layouts l;
    const char *const name = llama_linear_name(kind);
    if (llama_layouts_linear(s->on, kind, &l) != TSR_OK)
        return TSR_NONE;
    const bool is_q8 = l.scales != NULL;
    const tsr_value w = parameter(s, name, "weight", l.weight), scales = parameter(s, name, "scales", l.scales);
    const tsr_value b = parameter(s, name, "bias", l.bias);
    x = enter(s, name, x);
    return leave(s, name, is_q8 ? tsr_op_linear_q8(s->p, x, w, scales, b) : tsr_op_linear(s->p, x, w, b));
}

/* A norm whose weight every rank of the mesh has. */
static tsr_value norm(const statement *s, const char *name, const tsr_mesh *mesh, int64_t width, tsr_value x)
{
    tsr_layout *layout;
    if (llama_layouts_replicated(mesh, 1, &width, &layout) != TSR_OK)
        return TSR_NONE;
    return tsr_op_rms_norm(s->p, x, parameter(s, name, "weight", layout), s->config->norm_epsilon);
}

/* The embedding's weight, or the output's. */
static tsr_value vocabulary(const statement *s, const char *name)
{
    tsr_layout *layout;
    return llama_layouts_vocabulary(s->on, &layout) == TSR_OK ? parameter(s, name, "weight", layout) : TSR_NONE;
}

/* The value on a mesh of at most two dims, with the same placement along each. */
static tsr_value lay(const statement *s, tsr_value x, const tsr_mesh *mesh, tsr_placement placement)
{
    tsr_layout *layout;
    const tsr_placement placements[] = {placement, placement};
    const tsr_layout *const own = tsr_value_layout(s->p, x);
    if (!own || tsr_layout_create(mesh, placements, tsr_layout_ndim(own), tsr_layout_shape(own), tsr_layout_dtype(own),
                                  &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value there = tsr_op_to_mesh(s->p, x, layout);
    tsr_layout_destroy(layout);
    return there;
}

/* The value, whole on every rank of the mesh. */
static tsr_value gather(const statement *s, tsr_value x, const tsr_mesh *mesh)
{
    return lay(s, x, mesh, tsr_replicate());
}

/* Where there is one head, a rank has it or not: says so of its dim, by a redistribution that moves
 * nothing, or of its elements. */
static tsr_value say_one_head(const statement *s, int64_t heads, const char *placements, tsr_value x)
{
    char text[64];
    snprintf(text, sizeof text, placements, (long long)s->config->head_dim);
    return heads == 1 && !s->on->spread ? tsr_op_redistribute(s->p, x, text) : x;
}

/* (tokens, heads * dim) as (tokens, heads, dim). */
static tsr_value split(const statement *s, tsr_value x, int64_t heads)
{
    const int64_t shape[] = {s->tokens, heads, s->config->head_dim};
    return say_one_head(s, heads, "S(1)", tsr_op_reshape(s->p, x, 3, shape));
}

static tsr_value join(const statement *s, tsr_value x)
{
    const int64_t shape[] = {s->tokens, s->config->heads * s->config->head_dim};
    return tsr_op_reshape(s->p, say_one_head(s, s->config->heads, "S(2;unit=%lld)", x), 2, shape);
}

/* Queries or keys (tokens, heads, dim), turned to their positions. */
static tsr_value project(const statement *s, llama_linear_kind kind, const char *norm_name, int64_t heads, tsr_value x)
{
    const llama_config *const c = s->config;
    const tsr_rope_options options = llama_config_rope(c);
    tsr_value y = split(s, linear(s, kind, x), heads);
    if (c->has_head_norms)
        y = norm(s, norm_name, s->on->attention, c->head_dim, y);
    return tsr_op_rope(s->p, y, s->positions, &options);
}

/* Adds keys or values (tokens, heads, dim) to their cache; returns all so far (heads, total,
 * dim). */
static tsr_value remember(const statement *s, const char *name, tsr_value x)
{
    char text[64];
    tsr_layout *layout;
    const tsr_value by_heads = tsr_op_transpose(s->p, x, 0, 1);
    const tsr_layout *const own = tsr_value_layout(s->p, by_heads);
    const int64_t shape[] = {s->config->kv_heads, s->capacity, s->config->head_dim};
    if (!own ||
        tsr_layout_create(tsr_layout_mesh(own), tsr_layout_placements(own), 3, shape, TSR_F32, &layout) != TSR_OK)
        return TSR_NONE;
    snprintf(text, sizeof text, "cache.%lld.%s", (long long)s->layer, name);
    const tsr_value cache = tsr_state(s->p, text, layout);
    tsr_layout_destroy(layout);
    tsr_op_store(s->p, cache, by_heads, s->first);
    return tsr_op_slice(s->p, cache, 1, 0, s->total, 1);
}

/* Attention of the rank's own heads; only the sum of o communicates. */
static tsr_value attend(const statement *s, tsr_value x)
{
    const llama_config *const c = s->config;
    tsr_attention_options options = TSR_ATTENTION_OPTIONS_INIT;
    options.causal = 1;
    options.window = llama_config_window(c, s->layer);
    const tsr_value q = project(s, LLAMA_QUERY, "self_attn.q_norm", c->heads, x);
    const tsr_value k = remember(s, "keys", project(s, LLAMA_KEY, "self_attn.k_norm", c->kv_heads, x));
    const tsr_value v = remember(s, "values", split(s, linear(s, LLAMA_VALUE, x), c->kv_heads));
    const tsr_value y = tsr_op_attention(s->p, tsr_op_transpose(s->p, q, 0, 1), k, v, TSR_NONE, &options);
    return linear(s, LLAMA_ATTENTION_OUTPUT, join(s, tsr_op_transpose(s->p, y, 0, 1)));
}

static tsr_value mlp(const statement *s, tsr_value x)
{
    const tsr_value gate = linear(s, LLAMA_GATE, x), up = linear(s, LLAMA_UP, x);
    return linear(s, LLAMA_DOWN, tsr_op_silu_mul(s->p, gate, up));
}

/* The weights (tokens, chosen) of the experts to which each token goes, whose numbers go to
 * `*ids`. */
static tsr_value route(const statement *s, tsr_value x, tsr_layout *layout, tsr_value *ids)
{
    const int64_t dim = 1;
    const llama_mixture_config *const mixture = &s->config->mixture;
    const tsr_value router = parameter(s, "mlp.gate", "weight", layout);
    const tsr_value logits = leave(s, "mlp.gate", tsr_op_linear(s->p, enter(s, "mlp.gate", x), router, TSR_NONE));
    const tsr_value chosen = tsr_op_topk(s->p, tsr_op_softmax(s->p, logits, 1), mixture->chosen, 1, ids);
    return mixture->normed ? tsr_op_div(s->p, chosen, tsr_op_sum(s->p, chosen, 1, &dim, 1)) : chosen;
}

/* The weighted sum of what a token's experts give. Each rank computes its own experts, or its part
 * of them, and then, of all tokens, the sum for its own features. Where experts are whole, only one
 * rank has a term that is not 0, and the bits are the same on any number of ranks. */
static tsr_value mix(const statement *s, tsr_value x)
{
    llama_expert_layouts l;
    tsr_value ids;
    const tsr_mesh *const experts = s->on->experts;
    if (llama_layouts_experts(s->on, &l) != TSR_OK)
        return TSR_NONE;
    const tsr_value weights = route(s, x, l.router, &ids);
    const tsr_value gate_up = parameter(s, "mlp.experts", "gate_up_proj", l.gate_up);
    const tsr_value down = parameter(s, "mlp.experts", "down_proj", l.down);
    x = enter(s, "mlp.experts", gather(s, x, experts));
    const tsr_value y = tsr_op_experts(s->p, x, gather(s, ids, experts), gate_up, down, NULL);
    return leave(s, "mlp.experts", tsr_op_combine(s->p, lay(s, y, s->on->ranks, tsr_shard(2)), weights));
}

static tsr_value layer(const statement *s, tsr_value x)
{
    const tsr_mesh *const ranks = s->on->ranks;
    const tsr_value y = norm(s, "input_layernorm", ranks, s->config->hidden_size, x);
    x = tsr_op_add(s->p, x, gather(s, attend(s, gather(s, y, s->on->attention)), ranks));
    const tsr_value z = norm(s, "post_attention_layernorm", ranks, s->config->hidden_size, x);
    return tsr_op_add(s->p, x, gather(s, llama_config_has_experts(s->config, s->layer) ? mix(s, z) : mlp(s, z), ranks));
}

tsr_status llama_state(const llama_layouts *on, int64_t capacity, tsr_program *p)
{
    statement s = {.on = on, .config = on->config, .p = p, .capacity = capacity, .layer = -1};
    s.tokens = tsr_length(p, "tokens", capacity);
    s.total = tsr_length(p, "total", capacity);
    const int64_t kept = tsr_length(p, "wanted", capacity);
    const tsr_value tokens = tsr_input(p, "tokens", on->ranks, TSR_I64, 1, &s.tokens, NULL);
    s.positions = tsr_input(p, "positions", on->attention, TSR_I64, 1, &s.tokens, NULL);
    s.first = tsr_input(p, "first", on->attention, TSR_I64, 0, NULL, NULL);
    const tsr_value wanted = tsr_input(p, "wanted", on->ranks, TSR_I64, 1, &kept, NULL);
    const tsr_value embedding = vocabulary(&s, "model.embed_tokens");
    tsr_value x = tsr_op_embedding(p, embedding, enter(&s, "model.embed_tokens", tokens));
    x = gather(&s, tsr_op_cast(p, leave(&s, "model.embed_tokens", x), TSR_F32), on->ranks);
    for (s.layer = 0; s.layer < on->config->layers; s.layer++)
        x = layer(&s, x);
    s.layer = -1;
    x = norm(&s, "model.norm", on->ranks, on->config->hidden_size, tsr_op_index_select(p, x, wanted, 0));
    const tsr_value output = on->config->tied_embeddings ? embedding : vocabulary(&s, "lm_head");
    x = leave(&s, "lm_head", tsr_op_linear(p, enter(&s, "lm_head", x), output, TSR_NONE));
    tsr_output(p, "logits", gather(&s, x, on->ranks), NULL);
    return tsr_program_status(p, NULL);
}
