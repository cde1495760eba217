#include "ops/models/cuts.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Room for a cut as text. */
#define CUT_TEXT (2 * TSR_PLAN_TEXT)

/* Room for "parameter NAME (4x6), rule "..": "..": ". */
#define CALLER 512

/* A cut of a tensor dim along the plan's mesh dims. */
typedef struct cut {
    int dim;
    bool copied;                      /* along the group: Replicate */
    char modifiers[2][TSR_PLAN_TEXT]; /* along each mesh dim */
    char caller[CALLER];
} cut;

/* Which heads the rows or columns of a projection belong to. */
typedef enum head_kind { NO_HEADS, QUERIES, KEYS, FUSED, GROUPED } head_kind;

/* Projections by the end of their names. */
static const struct {
    const char *name;
    tsr_style_cut cut;
    head_kind kind;
} projections[] = {
    {"q_proj", TSR_STYLE_OUT, QUERIES},     {"k_proj", TSR_STYLE_OUT, KEYS},
    {"v_proj", TSR_STYLE_OUT, KEYS},        {"o_proj", TSR_STYLE_IN, QUERIES},
    {"out_proj", TSR_STYLE_IN, QUERIES},    {"attention.dense", TSR_STYLE_IN, QUERIES},
    {"qkv_proj", TSR_STYLE_OUT, FUSED},     {"in_proj_weight", TSR_STYLE_OUT, FUSED},
    {"in_proj_bias", TSR_STYLE_OUT, FUSED}, {"query_key_value", TSR_STYLE_OUT, GROUPED},
};

/* True if the first `length` characters of a name end in whole components `end`. */
static bool ends_in(const char *name, size_t length, const char *end)
{
    const size_t wanted = strlen(end);
    return length >= wanted && memcmp(name + length - wanted, end, wanted) == 0 &&
           (length == wanted || name[length - wanted - 1] == '.');
}

static head_kind find_heads(const tsr_plan_tensor *tensor)
{
    const char *const dot = strrchr(tensor->name, '.');
    const tsr_style_text *const style = &tensor->rule->style;
    /* What is gathered at once may be cut anywhere. */
    if (!tensor->plan->options.heads || style->modifiers[0] || style->style->output == TSR_PARALLEL_OUTPUT_GATHER)
        return NO_HEADS;
    for (size_t i = 0; i < sizeof projections / sizeof projections[0]; i++) {
        const char *const end = projections[i].name;
        if (projections[i].cut == style->style->cut &&
            (ends_in(tensor->name, strlen(tensor->name), end) ||
             (dot && ends_in(tensor->name, (size_t)(dot - tensor->name), end))))
            return projections[i].kind;
    }
    return NO_HEADS;
}

tsr_status tsr_plan_find_dims(const tsr_parallel_plan *plan, const tsr_mesh *mesh, tsr_plan_dims *out)
{
    const char *const given = plan->options.dim, *const group = plan->options.group;
    const int ndim = tsr_mesh_ndim(mesh);
    char text[128];
    int dim = -1, second = -1;
    for (int k = 0; k < ndim; k++) {
        const char *const name = tsr_mesh_name(mesh, k);
        if (name && strcmp(name, given ? given : "tp") == 0)
            dim = k;
        if (name && group && strcmp(name, group) == 0)
            second = k;
    }
    if (dim < 0 && !given && ndim == 1)
        dim = 0;
    if (dim < 0 && !given && ndim == 2 && second >= 0)
        dim = 1 - second;
    if (dim < 0) {
        tsr_mesh_print(mesh, text, sizeof text);
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "mesh %s has no dim \"%.64s\", along which the plan cuts; tsr_parallel_plan_options.dim "
                              "names another",
                              text, given ? given : "tp");
    }
    *out = (tsr_plan_dims){.count = 1, .at = {dim}};
    if (second >= 0 && second != dim)
        out->at[out->count++] = second;
    return TSR_OK;
}

/* Words what sentences on a tensor begin with. */
static void word_caller(const tsr_plan_tensor *tensor, char *text)
{
    char shape[128] = "";
    size_t length = 0;
    for (int dim = 0; dim < tensor->ndim && length < sizeof shape; dim++)
        length += (size_t)snprintf(shape + length, sizeof shape - length, "%s%lld", dim ? "x" : "",
                                   (long long)tensor->shape[dim]);
    snprintf(text, CALLER, "\"%.128s\" (%.100s), rule \"%.100s\": \"%.80s\"", tensor->name, shape,
             tensor->rule ? tensor->rule->text.pattern : "", tensor->rule ? tensor->rule->text.style : "");
}

/* Checks that the cut dim has as many features as the heads say. */
static tsr_status check_features(const tsr_plan_tensor *tensor, const cut *c, int64_t heads, int64_t size)
{
    const tsr_parallel_plan_options *const o = &tensor->plan->options;
    const int64_t wanted = heads * o->head_dim;
    if (size == wanted)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: dim %d has %lld features, but %lld heads of %lld have %lld; correct heads, kv_heads and "
                          "head_dim of the plan, or write modifiers, such as \"%s;unit=%lld\"",
                          c->caller, c->dim, (long long)size, (long long)heads, (long long)o->head_dim,
                          (long long)wanted, tensor->rule->style.style->name, (long long)o->head_dim);
}

/* With a group, heads of a rank along the plan's dim must belong to one key/value head. */
static tsr_status check_group(const tsr_plan_tensor *tensor, const cut *c, const tsr_plan_dims *dims)
{
    const tsr_parallel_plan_options *const o = &tensor->plan->options;
    const int64_t size = tsr_mesh_size(tensor->mesh, dims->at[0]);
    if (dims->count < 2 || tsr_mesh_size(tensor->mesh, dims->at[1]) == 1 || size >= o->kv_heads)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT,
                          "%s: mesh dim %d has %lld coordinates for %lld key/value heads; where mesh dim \"%s\" cuts "
                          "within groups of heads, it needs at least one for each",
                          c->caller, dims->at[0], (long long)size, (long long)o->kv_heads, o->group);
}

/* Parts of q, then k, then v, each cut at heads. */
static tsr_status cut_fused(const tsr_plan_tensor *tensor, const tsr_plan_dims *dims, int64_t size, cut *c)
{
    const tsr_parallel_plan_options *const o = &tensor->plan->options;
    int64_t ranks = 1;
    for (int i = 0; i < dims->count; i++)
        ranks *= tsr_mesh_size(tensor->mesh, dims->at[i]);
    TSR_TRY(check_features(tensor, c, o->heads + 2 * o->kv_heads, size));
    if (o->heads == o->kv_heads) {
        snprintf(c->modifiers[0], TSR_PLAN_TEXT, ";interleave=3;unit=%lld", (long long)o->head_dim);
        return TSR_OK;
    }
    if (o->kv_heads % ranks)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: %lld ranks do not divide %lld key/value heads, so that ranks would have queries "
                              "without their keys in a fused projection; split it into q_proj, k_proj and v_proj",
                              c->caller, (long long)ranks, (long long)o->kv_heads);
    const int64_t queries = o->heads * o->head_dim, keys = o->kv_heads * o->head_dim;
    snprintf(c->modifiers[0], TSR_PLAN_TEXT, ";blocks=%lld,%lld,%lld;unit=%lld", (long long)queries, (long long)keys,
             (long long)keys, (long long)o->head_dim);
    return TSR_OK;
}

/* Modifiers that make cuts fall between heads. */
static tsr_status cut_heads(const tsr_plan_tensor *tensor, const tsr_plan_dims *dims, head_kind kind, int64_t size,
                            cut *c)
{
    const tsr_parallel_plan_options *const o = &tensor->plan->options;
    const int64_t group = o->heads / o->kv_heads, together = kind == GROUPED ? group + 2 : kind == KEYS ? 1 : group;
    const int64_t unit = together * o->head_dim;
    if (kind == FUSED)
        return cut_fused(tensor, dims, size, c);
    if (kind == GROUPED) {
        TSR_TRY(check_features(tensor, c, o->heads + 2 * o->kv_heads, size));
        snprintf(c->modifiers[0], TSR_PLAN_TEXT, ";unit=%lld", (long long)unit);
        return TSR_OK;
    }
    TSR_TRY(check_features(tensor, c, kind == KEYS ? o->kv_heads : o->heads, size));
    TSR_TRY(check_group(tensor, c, dims));
    c->copied = kind == KEYS;
    snprintf(c->modifiers[0], TSR_PLAN_TEXT, ";unit=%lld", (long long)unit);
    snprintf(c->modifiers[1], TSR_PLAN_TEXT, ";unit=%lld", (long long)o->head_dim);
    return TSR_OK;
}

/* Refuses parts of a style that are not equal. */
static tsr_status check_parts(const cut *c, const tsr_placement *placement, int64_t size)
{
    if (placement->interleave < 2 || size % placement->interleave == 0)
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: dim %d has %lld features, which are not %lld equal parts", c->caller,
                          c->dim, (long long)size, (long long)placement->interleave);
}

/* Cuts dim `c->dim`, of `size`, of a tensor that is otherwise placed as `placements`; the lists of
 * the cut lie in `numbers`. */
static tsr_status cut_dim(const tsr_plan_tensor *tensor, const tsr_plan_dims *dims, int64_t size, cut *c,
                          tsr_placement *placements, int64_t (*numbers)[CUT_TEXT])
{
    const tsr_style_text *const style = &tensor->rule->style;
    const head_kind kind = find_heads(tensor);
    for (int i = 0; i < dims->count; i++)
        snprintf(c->modifiers[i], TSR_PLAN_TEXT, "%s%s", style->style->modifiers ? style->style->modifiers : "",
                 style->modifiers);
    if (kind != NO_HEADS)
        TSR_TRY(cut_heads(tensor, dims, kind, size, c));
    if (kind == FUSED || kind == GROUPED)
        memcpy(c->modifiers[1], c->modifiers[0], TSR_PLAN_TEXT);
    for (int i = 0; i < dims->count; i++) {
        char text[CUT_TEXT];
        int count;
        tsr_placement *const placement = &placements[dims->at[i]];
        if (i == 1 && c->copied) {
            *placement = tsr_replicate();
            continue;
        }
        snprintf(text, sizeof text, "S(%d%s)", c->dim, c->modifiers[i]);
        TSR_TRY(tsr_placements_parse(text, placement, 1, &count, numbers[i], CUT_TEXT, NULL));
        TSR_TRY(check_parts(c, placement, size));
    }
    return TSR_OK;
}

/* The dim that a style cuts; -1: none. */
static tsr_status find_dim(const tsr_plan_tensor *tensor, cut *c)
{
    const char *const dot = strrchr(tensor->name, '.');
    const bool is_bias = strcmp(dot ? dot + 1 : tensor->name, "bias") == 0;
    const int ndim = tensor->ndim;
    switch (tensor->rule->style.style->cut) {
    case TSR_STYLE_OUT:
        c->dim = ndim >= 2 ? ndim - 2 : 0;
        break;
    case TSR_STYLE_IN:
        c->dim = is_bias ? -1 : ndim - 1;
        break;
    case TSR_STYLE_FIRST:
        c->dim = 0;
        break;
    case TSR_STYLE_SECOND:
        c->dim = 1;
        break;
    default:
        c->dim = -1;
    }
    if (c->dim < ndim && (ndim > 0 || tensor->rule->style.style->cut == TSR_STYLE_WHOLE))
        return TSR_OK;
    return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: the style cuts a dim that a tensor of %d dims does not have",
                          c->caller, ndim);
}

/* Placements that the rule itself gives. */
static tsr_status read_placements(const tsr_plan_tensor *tensor, const tsr_plan_dims *dims, const char *caller,
                                  tsr_placement *placements, int64_t *numbers)
{
    tsr_placement read[TSR_MAX_DIMS];
    int count;
    TSR_TRY(tsr_placements_parse(tensor->rule->text.style, read, TSR_MAX_DIMS, &count, numbers, CUT_TEXT, NULL));
    if (count == tsr_mesh_ndim(tensor->mesh)) {
        memcpy(placements, read, (size_t)count * sizeof *read);
        return TSR_OK;
    }
    if (count != 1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: there are %d placements for %d mesh dims; give one for each, or one for the plan's",
                              caller, count, tsr_mesh_ndim(tensor->mesh));
    for (int i = 0; i < dims->count; i++)
        placements[dims->at[i]] = read[0];
    return TSR_OK;
}

static tsr_status make_layout(const tsr_plan_tensor *tensor, const char *caller, const tsr_placement *placements,
                              tsr_layout **out)
{
    const tsr_status status =
        tsr_layout_create(tensor->mesh, placements, tensor->ndim, tensor->shape, tensor->dtype, out);
    return status == TSR_OK ? status : tsr_status_set(status, "%s: %.500s", caller, tsr_status_message());
}

tsr_status tsr_plan_place(const tsr_plan_tensor *tensor, tsr_layout **out, bool *varies)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t numbers[TSR_PLAN_DIMS][CUT_TEXT];
    tsr_plan_dims dims;
    cut c = {.dim = -1};
    const tsr_plan_rule *const rule = tensor->rule;
    word_caller(tensor, c.caller);
    TSR_TRY(tsr_plan_find_dims(tensor->plan, tensor->mesh, &dims));
    for (int k = 0; k < TSR_MAX_DIMS; k++)
        placements[k] = tsr_replicate();
    if (rule && !rule->style.style)
        TSR_TRY(read_placements(tensor, &dims, c.caller, placements, numbers[0]));
    if (rule && rule->style.style)
        TSR_TRY(find_dim(tensor, &c));
    if (c.dim >= 0)
        TSR_TRY(cut_dim(tensor, &dims, tensor->shape[c.dim], &c, placements, numbers));
    *varies = c.copied || (rule && rule->style.style && rule->style.style->varies);
    return make_layout(tensor, c.caller, placements, out);
}

tsr_status tsr_plan_split(const tsr_plan_tensor *tensor, const tsr_layout *own, int dim, tsr_layout **out)
{
    tsr_placement placements[TSR_MAX_DIMS];
    int64_t numbers[TSR_PLAN_DIMS][CUT_TEXT];
    tsr_plan_dims dims;
    cut c = {.dim = dim};
    word_caller(tensor, c.caller);
    TSR_TRY(tsr_plan_find_dims(tensor->plan, tensor->mesh, &dims));
    memcpy(placements, tsr_layout_placements(own), (size_t)tsr_mesh_ndim(tensor->mesh) * sizeof *placements);
    TSR_TRY(cut_dim(tensor, &dims, tensor->shape[dim], &c, placements, numbers));
    return make_layout(tensor, c.caller, placements, out);
}
