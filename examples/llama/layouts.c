#include "layouts.h"

#include <tessera/sys/status.h>

#include <stdio.h>

#define TEXT_BYTES 128

static tsr_status make_attention_mesh(llama_layouts *layouts)
{
    const int64_t ranks = tsr_mesh_count(layouts->ranks), kv_heads = layouts->config->kv_heads;
    layouts->spread = ranks > kv_heads && ranks % kv_heads == 0 && layouts->config->heads > kv_heads;
    if (!layouts->spread) {
        layouts->attention = tsr_mesh_retain(layouts->ranks);
        return TSR_OK;
    }
    const int64_t shape[] = {kv_heads, ranks / kv_heads};
    const char *const names[] = {"kv", "group"};
    return tsr_mesh_unflatten(layouts->ranks, "tp", 2, shape, names, &layouts->attention);
}

static tsr_status make_expert_mesh(llama_layouts *layouts)
{
    const int64_t ranks = tsr_mesh_count(layouts->ranks), experts = layouts->config->mixture.experts;
    if (experts == 0 || ranks <= experts || ranks % experts != 0) {
        layouts->experts = tsr_mesh_retain(layouts->ranks);
        return TSR_OK;
    }
    const int64_t shape[] = {experts, ranks / experts};
    const char *const names[] = {"expert", "part"};
    return tsr_mesh_unflatten(layouts->ranks, "tp", 2, shape, names, &layouts->experts);
}

tsr_status llama_layouts_init(llama_layouts *layouts, const llama_config *config, tsr_dtype dtype, bool is_q8,
                              tsr_comm *comm)
{
    const int64_t ranks = tsr_comm_size(comm);
    const char *const names[] = {"tp"};
    *layouts = (llama_layouts){.config = config, .dtype = dtype, .is_q8 = is_q8};
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, names, NULL, &layouts->ranks));
    tsr_status status = make_attention_mesh(layouts);
    if (status == TSR_OK)
        status = make_expert_mesh(layouts);
    if (status != TSR_OK)
        llama_layouts_finish(layouts);
    return status;
}

tsr_status llama_layouts_follow(llama_layouts *layouts, const tsr_parallel_rules *rules)
{
    size_t count;
    const llama_config *const config = layouts->config;
    const tsr_parallel_rule *const all = tsr_parallel_rules_all(rules, &count);
    tsr_parallel_plan_options options = TSR_PARALLEL_PLAN_OPTIONS_INIT;
    options.dim = layouts->spread ? "kv" : "tp";
    options.group = layouts->spread ? "group" : NULL;
    options.heads = config->heads;
    options.kv_heads = config->kv_heads;
    options.head_dim = config->head_dim;
    TSR_TRY(tsr_parallel_plan_create(tsr_mesh_context(layouts->ranks), count, all, &options, &layouts->plan));
    tsr_mesh_destroy(layouts->ranks);
    tsr_mesh_destroy(layouts->experts);
    layouts->ranks = tsr_mesh_retain(layouts->attention);
    layouts->experts = tsr_mesh_retain(layouts->attention);
    return TSR_OK;
}

void llama_layouts_finish(llama_layouts *layouts)
{
    tsr_mesh_destroy(layouts->attention);
    tsr_mesh_destroy(layouts->experts);
    tsr_mesh_destroy(layouts->ranks);
    tsr_parallel_plan_destroy(layouts->plan);
    *layouts = (llama_layouts){0};
}

/* Elements of a weight that share a scale. */
#define SCALED 32

/* Writes the placements that cut query heads along tensor dim `dim`, in whole groups, or, on a
 * grid, in single heads of each group; `of` elements count as one. */
static void cut_queries(const llama_layouts *layouts, int dim, int64_t of, char *text)
{
    const llama_config *const config = layouts->config;
    const long long head = config->head_dim / of, group = config->heads / config->kv_heads * config->head_dim / of;
    if (layouts->spread)
        snprintf(text, TEXT_BYTES, "S(%d;unit=%lld),S(%d;unit=%lld)", dim, group, dim, head);
    else
        snprintf(text, TEXT_BYTES, "S(%d;unit=%lld)", dim, group);
}

/* Writes the placements that cut key/value heads, of `size` elements each, along tensor dim 0. On a
 * grid they are copied along the group. */
static void cut_keys(const llama_layouts *layouts, int64_t size, char *text)
{
    snprintf(text, TEXT_BYTES, "S(0;unit=%lld)%s", (long long)size, layouts->spread ? ",R" : "");
}

/* Writes the placement that cuts the inner features of the MLP. */
static void cut_inner(const llama_layouts *layouts, int dim, int64_t of, char *text)
{
    if (layouts->plan && layouts->spread)
        snprintf(text, TEXT_BYTES, "R,R");
    else if (layouts->is_q8)
        snprintf(text, TEXT_BYTES, "S(%d;unit=%d)", dim, (int)(SCALED / of));
    else
        snprintf(text, TEXT_BYTES, "S(%d)", dim);
}

/* A linear layer's mesh, sizes and placements; those of scales where SCALED elements count as
 * one. */
typedef struct cut {
    const tsr_mesh *mesh;
    int64_t out, in;
    bool has_bias;
    char weight[TEXT_BYTES], scales[TEXT_BYTES], bias[TEXT_BYTES];
} cut;

static void cut_attention(const llama_layouts *layouts, llama_linear_kind kind, cut *c)
{
    const llama_config *const config = layouts->config;
    c->mesh = layouts->attention;
    c->has_bias = config->attention_bias;
    if (kind == LLAMA_ATTENTION_OUTPUT) {
        c->out = config->hidden_size;
        c->in = config->heads * config->head_dim;
        cut_queries(layouts, 1, 1, c->weight);
        cut_queries(layouts, 1, SCALED, c->scales);
        snprintf(c->bias, TEXT_BYTES, "%s", layouts->spread ? "R,R" : "R");
        return;
    }
    c->in = config->hidden_size;
    c->out = (kind == LLAMA_QUERY ? config->heads : config->kv_heads) * config->head_dim;
    if (kind == LLAMA_QUERY)
        cut_queries(layouts, 0, 1, c->weight);
    else
        cut_keys(layouts, config->head_dim, c->weight);
    snprintf(c->scales, TEXT_BYTES, "%s", c->weight);
    snprintf(c->bias, TEXT_BYTES, "%s", c->weight);
}

static void cut_mlp(const llama_layouts *layouts, llama_linear_kind kind, cut *c)
{
    const llama_config *const config = layouts->config;
    const bool is_down = kind == LLAMA_DOWN;
    c->mesh = layouts->ranks;
    c->has_bias = config->mlp_bias;
    c->out = is_down ? config->hidden_size : config->intermediate_size;
    c->in = is_down ? config->intermediate_size : config->hidden_size;
    cut_inner(layouts, is_down, 1, c->weight);
    cut_inner(layouts, is_down, is_down ? SCALED : 1, c->scales);
    snprintf(c->bias, TEXT_BYTES, "%s", !is_down ? c->weight : layouts->plan && layouts->spread ? "R,R" : "R");
}

const char *llama_linear_name(llama_linear_kind kind)
{
    static const char *const names[LLAMA_LINEAR_KINDS] = {
        [LLAMA_QUERY] = "self_attn.q_proj", [LLAMA_KEY] = "self_attn.k_proj",
        [LLAMA_VALUE] = "self_attn.v_proj", [LLAMA_ATTENTION_OUTPUT] = "self_attn.o_proj",
        [LLAMA_GATE] = "mlp.gate_proj",     [LLAMA_UP] = "mlp.up_proj",
        [LLAMA_DOWN] = "mlp.down_proj",
    };
    return names[kind];
}

static tsr_status make_linear(const llama_layouts *layouts, const cut *c, llama_linear_layouts *out)
{
    const int64_t shape[] = {c->out, c->in}, scales[] = {c->out, c->in / SCALED};
    const tsr_dtype weight = layouts->is_q8 ? TSR_I8 : layouts->dtype, bias = layouts->is_q8 ? TSR_F32 : layouts->dtype;
    TSR_TRY(tsr_layout_parse(c->mesh, c->weight, 2, shape, weight, &out->weight));
    if (layouts->is_q8)
        TSR_TRY(tsr_layout_parse(c->mesh, c->scales, 2, scales, TSR_F32, &out->scales));
    return c->has_bias ? tsr_layout_parse(c->mesh, c->bias, 1, &c->out, bias, &out->bias) : TSR_OK;
}

tsr_status llama_layouts_linear(const llama_layouts *layouts, llama_linear_kind kind, llama_linear_layouts *out)
{
    cut c = {0};
    const bool is_mlp = kind == LLAMA_GATE || kind == LLAMA_UP || kind == LLAMA_DOWN;
    *out = (llama_linear_layouts){NULL};
    if (is_mlp)
        cut_mlp(layouts, kind, &c);
    else
        cut_attention(layouts, kind, &c);
    const tsr_status status = make_linear(layouts, &c, out);
    if (status != TSR_OK) {
        tsr_layout_destroy(out->weight);
        tsr_layout_destroy(out->scales);
        *out = (llama_linear_layouts){NULL};
    }
    return status;
}

static tsr_status make_experts(const llama_layouts *layouts, llama_expert_layouts *out)
{
    const llama_mixture_config *const mixture = &layouts->config->mixture;
    const int64_t hidden = layouts->config->hidden_size;
    const int64_t router[] = {mixture->experts, hidden}, gate_up[] = {mixture->experts, 2 * mixture->size, hidden};
    const int64_t down[] = {mixture->experts, hidden, mixture->size};
    const tsr_placement whole[] = {tsr_replicate(), tsr_replicate()};
    const bool is_grid = tsr_mesh_ndim(layouts->experts) > 1;
    const char *cuts[] = {"S(0;balanced)", "S(0;balanced)"};
    if (layouts->plan)
        cuts[0] = cuts[1] = is_grid ? "R,R" : "R";
    else if (is_grid)
        cuts[0] = "S(0),S(1;interleave=2)", cuts[1] = "S(0),S(2)";
    TSR_TRY(tsr_layout_create(layouts->ranks, whole, 2, router, layouts->dtype, &out->router));
    TSR_TRY(tsr_layout_parse(layouts->experts, cuts[0], 3, gate_up, layouts->dtype, &out->gate_up));
    return tsr_layout_parse(layouts->experts, cuts[1], 3, down, layouts->dtype, &out->down);
}

tsr_status llama_layouts_experts(const llama_layouts *layouts, llama_expert_layouts *out)
{
    *out = (llama_expert_layouts){NULL};
    const tsr_status status = make_experts(layouts, out);
    if (status != TSR_OK) {
        tsr_layout_destroy(out->router);
        tsr_layout_destroy(out->gate_up);
        tsr_layout_destroy(out->down);
        *out = (llama_expert_layouts){NULL};
    }
    return status;
}

tsr_status llama_layouts_vocabulary(const llama_layouts *layouts, tsr_layout **out)
{
    const int64_t shape[] = {layouts->config->vocab_size, layouts->config->hidden_size};
    return tsr_layout_parse(layouts->ranks, layouts->plan && layouts->spread ? "R,R" : "S(0)", 2, shape, layouts->dtype,
                            out);
}

tsr_status llama_layouts_replicated(const tsr_mesh *mesh, int ndim, const int64_t *shape, tsr_layout **out)
{
    const tsr_placement whole[] = {tsr_replicate(), tsr_replicate()};
    return tsr_layout_create(mesh, whole, ndim, shape, TSR_F32, out);
}
