#include "layouts.h"

#include <tessera/sys/status.h>

#include <stdio.h>

#define TEXT_BYTES 128

static tsr_status make_attention_mesh(llama_layouts *layouts)
{
    const int64_t ranks = tsr_mesh_count(layouts->ranks), kv_heads = layouts->config->kv_heads;
    layouts->spread = ranks > kv_heads && ranks % kv_heads == 0;
    if (!layouts->spread) {
        layouts->attention = tsr_mesh_retain(layouts->ranks);
        return TSR_OK;
    }
    const int64_t shape[] = {kv_heads, ranks / kv_heads};
    const char *const names[] = {"kv", "group"};
    return tsr_mesh_unflatten(layouts->ranks, "tp", 2, shape, names, &layouts->attention);
}

tsr_status llama_layouts_init(llama_layouts *layouts, const llama_config *config, tsr_dtype dtype, tsr_comm *comm)
{
    const int64_t ranks = tsr_comm_size(comm);
    const char *const names[] = {"tp"};
    *layouts = (llama_layouts){.config = config, .dtype = dtype};
    TSR_TRY(tsr_mesh_create(comm, 1, &ranks, names, NULL, &layouts->ranks));
    const tsr_status status = make_attention_mesh(layouts);
    if (status != TSR_OK)
        llama_layouts_finish(layouts);
    return status;
}

void llama_layouts_finish(llama_layouts *layouts)
{
    tsr_mesh_destroy(layouts->attention);
    tsr_mesh_destroy(layouts->ranks);
    *layouts = (llama_layouts){0};
}

/* Writes the placements that cut query heads along tensor dim `dim`: into whole groups, or, on a
 * grid, into single heads of each group. */
static void cut_queries(const llama_layouts *layouts, int dim, char *text)
{
    const llama_config *const config = layouts->config;
    const long long head = config->head_dim, group = config->heads / config->kv_heads * head;
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

/* A linear layer's mesh, sizes and placements. */
typedef struct cut {
    const tsr_mesh *mesh;
    int64_t out, in;
    char weight[TEXT_BYTES], bias[TEXT_BYTES];
} cut;

static void cut_linear(const llama_layouts *layouts, llama_linear_kind kind, cut *out)
{
    const llama_config *const config = layouts->config;
    const int64_t queries = config->heads * config->head_dim, keys = config->kv_heads * config->head_dim;
    const char *const whole = layouts->spread ? "R,R" : "R";
    switch (kind) {
    case LLAMA_QUERY:
        *out = (cut){layouts->attention, queries, config->hidden_size, "", ""};
        cut_queries(layouts, 0, out->weight);
        cut_queries(layouts, 0, out->bias);
        break;
    case LLAMA_KEY:
    case LLAMA_VALUE:
        *out = (cut){layouts->attention, keys, config->hidden_size, "", ""};
        cut_keys(layouts, config->head_dim, out->weight);
        cut_keys(layouts, config->head_dim, out->bias);
        break;
    case LLAMA_ATTENTION_OUTPUT:
        *out = (cut){layouts->attention, config->hidden_size, queries, "", ""};
        cut_queries(layouts, 1, out->weight);
        snprintf(out->bias, TEXT_BYTES, "%s", whole);
        break;
    case LLAMA_GATE:
    case LLAMA_UP:
        *out = (cut){layouts->ranks, config->intermediate_size, config->hidden_size, "S(0)", "S(0)"};
        break;
    default: /* LLAMA_DOWN */
        *out = (cut){layouts->ranks, config->hidden_size, config->intermediate_size, "S(1)", "R"};
        break;
    }
}

tsr_status llama_layouts_linear(const llama_layouts *layouts, llama_linear_kind kind, tsr_layout **weight,
                                tsr_layout **bias)
{
    cut linear = {0};
    cut_linear(layouts, kind, &linear);
    tsr_layout *made;
    TSR_TRY(tsr_layout_parse(linear.mesh, linear.weight, 2, (const int64_t[]){linear.out, linear.in}, layouts->dtype,
                             &made));
    const tsr_status status = tsr_layout_parse(linear.mesh, linear.bias, 1, &linear.out, layouts->dtype, bias);
    if (status == TSR_OK)
        *weight = made;
    else
        tsr_layout_destroy(made);
    return status;
}

tsr_status llama_layouts_vocabulary(const llama_layouts *layouts, tsr_layout **out)
{
    const int64_t shape[] = {layouts->config->vocab_size, layouts->config->hidden_size};
    return tsr_layout_parse(layouts->ranks, "S(0)", 2, shape, layouts->dtype, out);
}

tsr_status llama_layouts_replicated(const tsr_mesh *mesh, int ndim, const int64_t *shape, tsr_layout **out)
{
    const tsr_placement whole[] = {tsr_replicate(), tsr_replicate()};
    return tsr_layout_create(mesh, whole, ndim, shape, TSR_F32, out);
}

tsr_status llama_layouts_partial_hidden(const llama_layouts *layouts, int64_t rows, tsr_layout **out)
{
    const int64_t shape[] = {rows, layouts->config->hidden_size};
    return tsr_layout_parse(layouts->ranks, "P", 2, shape, TSR_F32, out);
}

tsr_status llama_layouts_cache(const llama_layouts *layouts, int64_t a, int64_t b, tsr_layout **out)
{
    const int64_t shape[] = {layouts->config->kv_heads, a, b};
    char text[TEXT_BYTES];
    cut_keys(layouts, 1, text);
    return tsr_layout_parse(layouts->attention, text, 3, shape, TSR_F32, out);
}

/* Counts the heads in this rank's rows of a layer; cuts fall between heads. */
static tsr_status count_heads(const llama_layouts *layouts, llama_linear_kind kind, int64_t *out)
{
    tsr_layout *weight, *bias;
    int64_t shape[2];
    TSR_TRY(llama_layouts_linear(layouts, kind, &weight, &bias));
    const tsr_status status = tsr_layout_local(weight, NULL, shape, NULL);
    tsr_layout_destroy(weight);
    tsr_layout_destroy(bias);
    if (status == TSR_OK)
        *out = shape[0] / layouts->config->head_dim;
    return status;
}

tsr_status llama_layouts_heads(const llama_layouts *layouts, llama_heads *out)
{
    llama_heads heads = {.group = layouts->config->heads / layouts->config->kv_heads,
                         .head_dim = layouts->config->head_dim};
    TSR_TRY(count_heads(layouts, LLAMA_QUERY, &heads.count));
    TSR_TRY(count_heads(layouts, LLAMA_KEY, &heads.kv_count));
    *out = heads;
    return TSR_OK;
}
