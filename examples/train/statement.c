#include "statement.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum linear_kind { QUERY, KEY, VALUE, ATTENTION_OUTPUT, GATE, UP, DOWN, LINEARS } linear_kind;
typedef enum norm_kind { BEFORE_ATTENTION, BEFORE_MLP, OF_QUERIES, OF_KEYS, NORMS } norm_kind;

typedef enum expert_kind { ROUTER, EXPERTS_IN, EXPERTS_OUT, EXPERT_WEIGHTS } expert_kind;

/* Where a layer's weights lie in lists of them: matrices, biases, norms, then those of experts. */
enum {
    BIASES = LINEARS,
    LAYER_NORMS = 2 * LINEARS,
    OF_EXPERTS = LAYER_NORMS + NORMS,
    LAYER_WEIGHTS = OF_EXPERTS + EXPERT_WEIGHTS
};

/* What a weight is, and how ranks cut it. */
typedef struct form {
    int ndim;
    int64_t shape[3];
    char tp[TRAIN_CUT_BYTES];
    int fsdp; /* the tensor dim that fsdp cuts, where it is not kept with one dim */
} form;

/* The weights of a layer, gathered, or as they are used; TSR_NONE: it has none. */
typedef struct layer_weights {
    tsr_value values[LAYER_WEIGHTS];
    form forms[LAYER_WEIGHTS];
} layer_weights;

/* What is being stated. */
typedef struct statement {
    const train_model *model;
    const llama_config *config;
    const train_layouts *on;
    tsr_program *p;
    bool trains;
    int64_t layer;           /* that is stated; -1: none */
    layer_weights now, next; /* of this layer, and of the one behind it */
    tsr_value positions;
    tsr_value counts, chances; /* of experts, summed over tokens and layers: how many slots they got, and how likely
                                  they were; TSR_NONE: no layer had them yet */
    int64_t routed;            /* layers that have experts */
    tsr_random_key key;        /* of dropout, that of a run */
    uint64_t drops;            /* so far */
    train_weights *weights;
    size_t room; /* of the list of weights */
} statement;

void train_weights_finish(train_weights *weights)
{
    free(weights->values);
    free(weights->used);
    free(weights->views);
    *weights = (train_weights){0};
}

tsr_status train_weights_check(const train_weights *weights, const tsr_program *program)
{
    const char *sentence;
    const tsr_status status = tsr_program_status(program, &sentence);
    if (weights->failure.status != TSR_OK)
        return tsr_status_restore(&weights->failure, weights->failure.status);
    return status == TSR_OK ? TSR_OK : tsr_status_set(status, "%s", sentence);
}

/* Notes the first weight that cannot be kept, for what is made of TSR_NONE has an error of its own,
 * and a layer without a bias has none. */
static tsr_value lack(const statement *s, tsr_status status)
{
    if (s->weights->failure.status == TSR_OK)
        tsr_status_keep_returned(&s->weights->failure, status);
    return TSR_NONE;
}

tsr_dtype train_kept_dtype(const train_model *model)
{
    return model->dtype == TSR_F64 ? TSR_F64 : TSR_F32;
}

/* A form that tp cuts as `tp` says. */
static form form_of(const char *tp, int ndim, const int64_t *shape)
{
    form f = {.ndim = ndim};
    memcpy(f.shape, shape, (size_t)ndim * sizeof *shape);
    snprintf(f.tp, sizeof f.tp, "%s", tp);
    return f;
}

/* True of a matrix that is kept with one dim, so that it can be cut in the midst of rows. */
static bool is_flat(const statement *s, const form *f)
{
    return s->on->by_elements && f->ndim == 2;
}

static void list(statement *s, tsr_value value, const form *f)
{
    train_weights *const all = s->weights;
    if (all->count == s->room)
        return;
    if (is_flat(s, f))
        all->views[all->count] = (tsr_optimizer_view){2, {f->shape[0], f->shape[1]}};
    all->used[all->count] = value;
    all->values[all->count++] = value;
}

/* Notes that a weight, as far as it is prepared for its use, is now another value. */
static tsr_value follow(const statement *s, tsr_value from, tsr_value to)
{
    for (size_t i = 0; i < s->weights->count; i++)
        s->weights->used[i] = s->weights->used[i] == from ? to : s->weights->used[i];
    return to;
}

/* The layout in which a weight is kept. */
static tsr_status lay_kept(const statement *s, const form *f, tsr_layout **out)
{
    char cut[TRAIN_CUT_BYTES], placements[TRAIN_TEXT_BYTES];
    const bool flat = is_flat(s, f);
    const int64_t count = f->shape[0] * f->shape[1];
    snprintf(cut, sizeof cut, "%s", f->tp);
    if (flat)
        train_layouts_flatten(f->shape, cut);
    train_layouts_weight(s->on, cut, flat ? 0 : f->fsdp, placements);
    return tsr_layout_parse(s->on->mesh, placements, flat ? 1 : f->ndim, flat ? &count : f->shape,
                            train_kept_dtype(s->model), out);
}

/* A weight as it is kept; bf16 is what of it is gathered. */
static tsr_value keep(statement *s, const char *name, const form *f)
{
    char text[TRAIN_NAME_BYTES], prefix[48] = "";
    tsr_layout *layout;
    if (s->layer >= 0)
        snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)s->layer);
    snprintf(text, sizeof text, "%s%s", prefix, name);
    const tsr_status status = lay_kept(s, f, &layout);
    if (status != TSR_OK)
        return lack(s, status);
    const tsr_value w = s->trains ? tsr_state(s->p, text, layout) : tsr_parameter(s->p, text, layout);
    tsr_layout_destroy(layout);
    list(s, w, f);
    if (is_flat(s, f) && s->model->shapes && !train_shapes_add(s->model->shapes, text, f->shape))
        return lack(s, tsr_status_set(TSR_ERROR_MEMORY, "no memory for the shape of %s", text));
    return s->model->dtype == TSR_BF16 && f->ndim > 1 && s->layer >= 0 ? follow(s, w, tsr_op_cast(s->p, w, TSR_BF16))
                                                                       : w;
}

/* Gathers a weight along fsdp: a matrix once more in the backward, rather than that it is kept
 * until then. */
static tsr_value gather(const statement *s, tsr_value w, const form *f)
{
    char cut[TRAIN_CUT_BYTES], placements[TRAIN_TEXT_BYTES];
    snprintf(cut, sizeof cut, "%s", f->tp);
    if (is_flat(s, f))
        train_layouts_flatten(f->shape, cut);
    train_layouts_weight(s->on, cut, -1, placements);
    if (train_layouts_size(s->on, TRAIN_FSDP) == 1)
        return w;
    const tsr_value whole = tsr_op_redistribute(s->p, w, placements);
    return follow(s, w, f->ndim == 1 ? whole : tsr_op_recompute(s->p, whole));
}

/* What is made of a gathered weight is dropped with it, and made again. */
static tsr_value again(const statement *s, tsr_value w)
{
    return train_layouts_size(s->on, TRAIN_FSDP) > 1 ? tsr_op_recompute(s->p, w) : w;
}

/* A gathered weight varies: each rank has terms of its gradient, of its own tokens. One with one
 * dim is then a matrix again, where nothing moves; its terms have one dim, as it has. */
static tsr_value use(const statement *s, tsr_value w, const form *f)
{
    char placements[TRAIN_TEXT_BYTES];
    const tsr_value varying = follow(s, w, again(s, tsr_op_vary(s->p, w)));
    if (!is_flat(s, f))
        return varying;
    train_layouts_weight(s->on, f->tp, -1, placements);
    const tsr_value matrix = again(s, tsr_op_reshape(s->p, varying, f->ndim, f->shape));
    return again(s, tsr_op_redistribute(s->p, matrix, placements));
}

static tsr_value weight(statement *s, const char *name, const form *f)
{
    return use(s, gather(s, keep(s, name, f), f), f);
}

/* The placement that cuts query heads, and that of key/value heads, along tensor dim `dim` of
 * `head` elements a head. */
static void cut_heads(const statement *s, bool queries, int dim, int64_t head, char text[64])
{
    const int64_t group = s->config->heads / s->config->kv_heads;
    const int64_t unit = queries && !s->on->shares_keys ? group * head : head;
    snprintf(text, 64, "S(%d;unit=%lld)", dim, (long long)unit);
}

/* A linear layer. */
typedef struct dense {
    const char *name;
    char tp[64]; /* how tp cuts its weight */
    bool has_bias;
    int64_t outputs, inputs;
} dense;

static dense describe_attention(const statement *s, linear_kind kind)
{
    static const char *const names[] = {"self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj", "self_attn.o_proj"};
    const llama_config *const c = s->config;
    const bool is_output = kind == ATTENTION_OUTPUT, queries = kind == QUERY || is_output;
    const int64_t width = (queries ? c->heads : c->kv_heads) * c->head_dim;
    dense d = {names[kind], "", c->attention_bias, is_output ? c->hidden_size : width,
               is_output ? width : c->hidden_size};
    cut_heads(s, queries, is_output, c->head_dim, d.tp);
    return d;
}

static dense describe(const statement *s, linear_kind kind)
{
    const llama_config *const c = s->config;
    if (kind <= ATTENTION_OUTPUT)
        return describe_attention(s, kind);
    if (kind == DOWN)
        return (dense){"mlp.down_proj", "S(1)", c->mlp_bias, c->hidden_size, c->intermediate_size};
    return (dense){kind == GATE ? "mlp.gate_proj" : "mlp.up_proj", "S(0)", c->mlp_bias, c->intermediate_size,
                   c->hidden_size};
}

/* Keeps a weight of a layer, in its place. */
static void keep_in(statement *s, layer_weights *w, int at, const char *name, form f)
{
    w->forms[at] = f;
    w->values[at] = keep(s, name, &f);
}

static void keep_norm(statement *s, norm_kind kind, layer_weights *w)
{
    static const char *const names[] = {"input_layernorm.weight", "post_attention_layernorm.weight",
                                        "self_attn.q_norm.weight", "self_attn.k_norm.weight"};
    const bool of_heads = kind == OF_QUERIES || kind == OF_KEYS;
    if (of_heads && !s->config->has_head_norms)
        return;
    keep_in(s, w, LAYER_NORMS + (int)kind, names[kind],
            form_of("R", 1, of_heads ? &s->config->head_dim : &s->config->hidden_size));
}

static void keep_linear(statement *s, linear_kind kind, layer_weights *w)
{
    char text[64];
    const dense d = describe(s, kind);
    const int64_t shape[] = {d.outputs, d.inputs};
    snprintf(text, sizeof text, "%s.weight", d.name);
    keep_in(s, w, kind, text, form_of(d.tp, 2, shape));
    snprintf(text, sizeof text, "%s.bias", d.name);
    if (d.has_bias)
        keep_in(s, w, BIASES + (int)kind, text, form_of(d.tp[2] == '0' ? d.tp : "R", 1, shape));
}

/* Experts are whole where tp has no more ranks than there are; else each is cut by its inner
 * features. fsdp cuts them by their hidden features, of which there are many. */
static void keep_experts(statement *s, layer_weights *w)
{
    const llama_config *const c = s->config;
    const llama_mixture_config *const m = &c->mixture;
    const int64_t router[] = {m->experts, c->hidden_size}, in[] = {m->experts, 2 * m->size, c->hidden_size};
    const int64_t out[] = {m->experts, c->hidden_size, m->size};
    const bool shares = s->on->shares_experts;
    form of_in = form_of(shares ? "S(1;interleave=2)" : "S(0;balanced)", 3, in);
    form of_out = form_of(shares ? "S(2)" : "S(0;balanced)", 3, out);
    of_in.fsdp = 2;
    of_out.fsdp = 1;
    keep_in(s, w, OF_EXPERTS + ROUTER, "mlp.gate.weight", form_of("R", 2, router));
    keep_in(s, w, OF_EXPERTS + EXPERTS_IN, "mlp.experts.gate_up_proj", of_in);
    keep_in(s, w, OF_EXPERTS + EXPERTS_OUT, "mlp.experts.down_proj", of_out);
}

/* Gathers the weights of a layer, one move behind the other, so that they share an exchange. */
static layer_weights gather_layer(statement *s, int64_t layer)
{
    layer_weights w = {0};
    const bool has_experts = llama_config_has_experts(s->config, layer);
    s->layer = layer;
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        w.values[i] = TSR_NONE;
    for (int i = 0; i < LINEARS; i++)
        if (i <= ATTENTION_OUTPUT || !has_experts)
            keep_linear(s, (linear_kind)i, &w);
    for (int i = 0; i < NORMS; i++)
        keep_norm(s, (norm_kind)i, &w);
    if (has_experts)
        keep_experts(s, &w);
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        w.values[i] = w.values[i] != TSR_NONE ? gather(s, w.values[i], &w.forms[i]) : TSR_NONE;
    return w;
}

/* Until then no step reads what was gathered, so that it has time. */
static void use_layer(const statement *s, layer_weights *w)
{
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        w->values[i] = w->values[i] != TSR_NONE ? use(s, w->values[i], &w->forms[i]) : TSR_NONE;
}

static tsr_value linear(const statement *s, linear_kind kind, tsr_value x)
{
    return tsr_op_linear(s->p, x, s->now.values[kind], s->now.values[BIASES + (int)kind]);
}

static tsr_value norm(const statement *s, norm_kind kind, tsr_value x)
{
    return tsr_op_rms_norm(s->p, x, s->now.values[LAYER_NORMS + (int)kind], s->config->norm_epsilon);
}

static tsr_value lay(const statement *s, tsr_value x, int rows, int tokens, const char *tp)
{
    char placements[TRAIN_TEXT_BYTES];
    train_layouts_activation(s->on, rows, tokens, tp, placements);
    return tsr_op_redistribute(s->p, x, placements);
}

/* (rows, tokens, heads * dim) as (rows, tokens, heads, dim); nothing moves. */
static tsr_value split(const statement *s, tsr_value x, bool queries)
{
    char tp[64];
    const int64_t heads = queries ? s->config->heads : s->config->kv_heads;
    const int64_t shape[] = {s->model->batch, s->model->length, heads, s->config->head_dim};
    cut_heads(s, queries, 2, 1, tp);
    return lay(s, tsr_op_reshape(s->p, x, 4, shape), 0, 1, tp);
}

static tsr_value project(const statement *s, linear_kind kind, tsr_value x)
{
    return split(s, linear(s, kind, x), kind == QUERY);
}

static tsr_value turn(const statement *s, norm_kind kind, tsr_value x)
{
    const tsr_rope_options options = llama_config_rope(s->config);
    if (s->config->has_head_norms)
        x = norm(s, kind, x);
    return tsr_op_rope(s->p, x, s->positions, &options);
}

/* Keys or values (rows, heads, tokens, dim) where queries are: whole along cp, and along tp where
 * it has more ranks than there are heads of them. */
static tsr_value share(const statement *s, tsr_value x)
{
    char tp[64];
    cut_heads(s, false, 1, 1, tp);
    if (s->on->shares_keys || train_layouts_size(s->on, TRAIN_CP) > 1)
        x = tsr_op_vary(s->p, lay(s, x, 0, -1, s->on->shares_keys ? "R" : tp));
    return x;
}

static tsr_value attend(const statement *s, tsr_value x)
{
    char tp[64];
    const llama_config *const c = s->config;
    const int64_t joined[] = {s->model->batch, s->model->length, c->heads * c->head_dim};
    tsr_attention_options options = TSR_ATTENTION_OPTIONS_INIT;
    options.causal = 1;
    options.window = llama_config_window(c, s->layer);
    const tsr_value q = tsr_op_transpose(s->p, turn(s, OF_QUERIES, project(s, QUERY, x)), 1, 2);
    const tsr_value k = tsr_op_transpose(s->p, turn(s, OF_KEYS, project(s, KEY, x)), 1, 2);
    const tsr_value v = tsr_op_transpose(s->p, project(s, VALUE, x), 1, 2);
    tsr_value y = tsr_op_attention(s->p, q, share(s, k), share(s, v), TSR_NONE, &options);
    cut_heads(s, true, 2, c->head_dim, tp);
    y = lay(s, tsr_op_reshape(s->p, tsr_op_transpose(s->p, y, 1, 2), 3, joined), 0, 1, tp);
    return tsr_op_all_reduce(s->p, linear(s, ATTENTION_OUTPUT, y), 0);
}

static tsr_value transform(const statement *s, tsr_value x)
{
    const tsr_value y = tsr_op_silu_mul(s->p, linear(s, GATE, x), linear(s, UP, x));
    return tsr_op_all_reduce(s->p, linear(s, DOWN, y), 0);
}

/* Adds what a layer tells of its experts; ids are of the chosen ones, and chances of all. */
static void count_experts(statement *s, tsr_value ids, tsr_value chances)
{
    const int64_t tokens = 0;
    if (!s->trains || s->config->mixture.balance == 0)
        return;
    const tsr_value counts = tsr_op_bincount(s->p, ids, s->config->mixture.experts);
    const tsr_value sums = tsr_op_sum(s->p, chances, 1, &tokens, 0);
    s->counts = s->routed > 0 ? tsr_op_add(s->p, s->counts, counts) : counts;
    s->chances = s->routed > 0 ? tsr_op_add(s->p, s->chances, sums) : sums;
    s->routed++;
}

/* The weighted sum of what a token's experts give. All windows that a rank has are one list of
 * tokens; along cp, which has parts of windows, windows change places before it and behind it. */
static tsr_value mix(statement *s, tsr_value x)
{
    tsr_value ids;
    char placements[TRAIN_TEXT_BYTES];
    const int64_t last = 1, batch = s->model->batch, length = s->model->length, hidden = s->config->hidden_size;
    const int64_t rows[] = {batch * length, hidden}, windows[] = {batch, length, hidden};
    const tsr_value *const w = s->now.values + OF_EXPERTS;
    train_layouts_windows(s->on, batch == 1, batch == 1 ? length : 1, placements);
    x = tsr_op_reshape(s->p, tsr_op_redistribute(s->p, x, placements), 2, rows);
    const tsr_value chances = tsr_op_softmax(s->p, tsr_op_linear(s->p, x, w[ROUTER], TSR_NONE), 1);
    tsr_value weights = tsr_op_topk(s->p, chances, s->config->mixture.chosen, 1, &ids);
    if (s->config->mixture.normed)
        weights = tsr_op_div(s->p, weights, tsr_op_sum(s->p, weights, 1, &last, 1));
    count_experts(s, ids, chances);
    const tsr_value y = tsr_op_experts(s->p, x, ids, w[EXPERTS_IN], w[EXPERTS_OUT], NULL);
    x = tsr_op_all_reduce(s->p, tsr_op_combine(s->p, y, weights), 0);
    return lay(s, tsr_op_reshape(s->p, x, 3, windows), 0, 1, "R");
}

/* x with some elements 0: each place where this is done has a key of its own, and each element its
 * own number, whichever rank has it. */
static tsr_value drop(statement *s, tsr_value x)
{
    const tsr_random_key own = tsr_random_key_fold_in(s->key, s->drops++);
    return s->trains && s->model->dropout > 0 ? tsr_op_dropout(s->p, x, s->model->dropout, &own) : x;
}

/* States a layer, once the weights of the one behind it are gathered: where messages travel
 * meanwhile, they have this layer's time. */
static tsr_value layer(statement *s, int64_t number, tsr_value x)
{
    s->now = s->next;
    if (number + 1 < s->config->layers)
        s->next = gather_layer(s, number + 1);
    use_layer(s, &s->now);
    s->layer = number;
    x = tsr_op_add(s->p, x, drop(s, attend(s, norm(s, BEFORE_ATTENTION, tsr_op_vary(s->p, x)))));
    const tsr_value y = norm(s, BEFORE_MLP, tsr_op_vary(s->p, x));
    return tsr_op_add(s->p, x, drop(s, llama_config_has_experts(s->config, number) ? mix(s, y) : transform(s, y)));
}

/* The loss that keeps tokens from going to the same experts (arXiv 2101.03961, equations 4 to 6, as
 * transformers takes it over all layers): for each expert the part of the tokens that it gets times
 * its mean chance, added up, times the number of experts. Along tp ranks have the same numbers, and
 * each takes some of the experts, so that the gradient counts once. */
static tsr_value balance(const statement *s)
{
    char sums[TRAIN_TEXT_BYTES], terms[TRAIN_TEXT_BYTES];
    if (s->routed == 0)
        return TSR_NONE;
    const double tokens = (double)(s->routed * s->model->batch * s->model->length);
    train_layouts_each(s->on, "R", "S(0;balanced)", sums);
    train_layouts_each(s->on, "P", "S(0;balanced)", terms);
    const tsr_value counts = tsr_op_redistribute(s->p, s->counts, sums);
    const tsr_value chances = tsr_op_redistribute(s->p, s->chances, terms);
    const tsr_value both = tsr_op_mul(s->p, tsr_op_cast(s->p, counts, train_kept_dtype(s->model)), chances);
    const tsr_value sum = tsr_op_all_reduce(s->p, tsr_op_sum(s->p, both, 0, NULL, 0), 0);
    const double share = train_is_part(s->model) ? (double)s->model->batch / (double)s->model->whole : 1;
    return tsr_op_scale(s->p, sum, share * (double)s->config->mixture.experts / (tokens * tokens));
}

static tsr_value input(const statement *s, const char *name, int ndim, const int64_t *shape)
{
    char placements[TRAIN_TEXT_BYTES];
    train_layouts_activation(s->on, ndim == 2 ? 0 : -1, ndim - 1, "R", placements);
    return tsr_input(s->p, name, s->on->mesh, TSR_I64, ndim, shape, placements);
}

bool train_is_part(const train_model *model)
{
    return model->whole > model->batch;
}

static statement begin(const train_model *model, bool trains, tsr_program *p, train_weights *weights)
{
    const llama_config *const c = model->config;
    statement s = {.model = model, .config = c, .on = model->layouts, .p = p, .trains = trains, .layer = -1};
    s.room = (size_t)c->layers * LAYER_WEIGHTS + 3;
    weights->values = calloc(s.room, sizeof *weights->values);
    weights->used = calloc(s.room, sizeof *weights->used);
    weights->views = calloc(s.room, sizeof *weights->views);
    s.weights = weights;
    if (!weights->values || !weights->used || !weights->views) {
        (void)lack(&s, tsr_status_set(TSR_ERROR_MEMORY, "no memory for a list of %zu weights", s.room));
        s.room = 0;
    }
    if (trains && model->dropout > 0)
        s.key = tsr_run_key(p, TRAIN_DROPOUT_KEY, TSR_RANDOM_PHILOX);
    return s;
}

static tsr_value keep_table(statement *s, const char *name)
{
    const int64_t shape[] = {s->config->vocab_size, s->config->hidden_size};
    const form f = form_of("S(0)", 2, shape);
    return weight(s, name, &f);
}

/* What all layers make of tokens. */
static tsr_value read_tokens(statement *s, tsr_value tokens, tsr_value embedding)
{
    tsr_value x = drop(s, tsr_op_all_reduce(s->p, tsr_op_embedding(s->p, embedding, tokens), 0));
    s->next = gather_layer(s, 0);
    for (int64_t i = 0; i < s->config->layers; i++)
        x = layer(s, i, x);
    s->layer = -1;
    return x;
}

static tsr_value norm_last(statement *s, tsr_value x)
{
    const form f = form_of("R", 1, &s->config->hidden_size);
    const tsr_value last = weight(s, "model.norm.weight", &f);
    return tsr_op_rms_norm(s->p, tsr_op_vary(s->p, x), last, s->config->norm_epsilon);
}

tsr_value train_state_loss(const train_model *model, bool trains, tsr_program *p, train_weights *weights,
                           tsr_value *router)
{
    const int64_t shape[] = {model->batch, model->length};
    tsr_cross_entropy_options options = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    statement s = begin(model, trains, p, weights);
    options.ignore_index = TSR_IGNORE_NONE;
    const tsr_value tokens = input(&s, "tokens", 2, shape), targets = input(&s, "targets", 2, shape);
    s.positions = input(&s, "positions", 1, shape + 1);
    const tsr_value embedding = keep_table(&s, "model.embed_tokens.weight");
    const tsr_value x = norm_last(&s, read_tokens(&s, tokens, embedding));
    if (router)
        *router = balance(&s);
    const tsr_value output = model->config->tied_embeddings ? embedding : keep_table(&s, "lm_head.weight");
    if (!train_is_part(model))
        return tsr_op_linear_cross_entropy(p, x, output, targets, &options);
    options.reduction = TSR_LOSS_SUM;
    const tsr_value sum = tsr_op_linear_cross_entropy(p, x, output, targets, &options);
    return tsr_op_scale(p, sum, 1.0 / (double)(model->whole * model->length));
}

tsr_status train_state_validation(const train_model *model, tsr_program *p)
{
    train_weights weights = {0};
    const tsr_value loss = tsr_op_all_reduce(p, train_state_loss(model, false, p, &weights, NULL), 0);
    tsr_output(p, "loss", tsr_op_cast(p, loss, TSR_F64), NULL);
    const tsr_status status = train_weights_check(&weights, p);
    train_weights_finish(&weights);
    return status;
}

tsr_status train_state_logits(const train_model *model, tsr_program *p)
{
    train_weights weights = {0};
    const int64_t shape[] = {model->batch, model->length}, one = 1;
    statement s = begin(model, false, p, &weights);
    const tsr_value tokens = input(&s, "tokens", 2, shape);
    s.positions = input(&s, "positions", 1, shape + 1);
    const tsr_value wanted = tsr_input(p, "wanted", s.on->mesh, TSR_I64, 1, &one, NULL);
    const tsr_value embedding = keep_table(&s, "model.embed_tokens.weight");
    tsr_value x = lay(&s, read_tokens(&s, tokens, embedding), -1, -1, "R");
    x = norm_last(&s, tsr_op_index_select(p, x, wanted, 1));
    const tsr_value output = model->config->tied_embeddings ? embedding : keep_table(&s, "lm_head.weight");
    tsr_output(p, "logits", lay(&s, tsr_op_linear(p, x, output, TSR_NONE), -1, -1, "R"), NULL);
    const tsr_status status = train_weights_check(&weights, p);
    train_weights_finish(&weights);
    return status;
}
