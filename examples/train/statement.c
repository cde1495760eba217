#include "statement.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef enum linear_kind { QUERY, KEY, VALUE, ATTENTION_OUTPUT, GATE, UP, DOWN, LINEARS } linear_kind;
typedef enum norm_kind { BEFORE_ATTENTION, BEFORE_MLP, OF_QUERIES, OF_KEYS, NORMS } norm_kind;

/* Where a layer's weights lie in lists of them: matrices, then biases, then norms. */
enum { BIASES = LINEARS, LAYER_NORMS = 2 * LINEARS, LAYER_WEIGHTS = 2 * LINEARS + NORMS };

/* The weights of a layer, as they are used; TSR_NONE: it has none. */
typedef struct layer_weights {
    tsr_value values[LAYER_WEIGHTS];
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
    train_weights *weights;
    size_t room; /* of the list of weights */
} statement;

void train_weights_finish(train_weights *weights)
{
    free(weights->values);
    free(weights->views);
    *weights = (train_weights){0};
}

static tsr_dtype kept_dtype(const train_model *model)
{
    return model->dtype == TSR_F64 ? TSR_F64 : TSR_F32;
}

/* True of a matrix that is kept with one dim, so that it can be cut in the midst of rows. */
static bool is_flat(const statement *s, int ndim)
{
    return s->on->by_elements && ndim == 2;
}

static void list(statement *s, tsr_value value, int ndim, const int64_t *shape)
{
    train_weights *const all = s->weights;
    if (all->count == s->room)
        return;
    if (is_flat(s, ndim))
        all->views[all->count] = (tsr_optimizer_view){2, {shape[0], shape[1]}};
    all->values[all->count++] = value;
}

/* Writes the placements of a weight, as it is kept, with one dim if it is flat, or as it is
 * gathered. */
static void place(const statement *s, const char *tp, bool kept, int ndim, const int64_t *shape,
                  char placements[TRAIN_TEXT_BYTES])
{
    char cut[TRAIN_CUT_BYTES];
    snprintf(cut, sizeof cut, "%s", tp);
    if (is_flat(s, ndim))
        train_layouts_flatten(shape, cut);
    train_layouts_weight(s->on, cut, kept, placements);
}

/* A weight that tp cuts as `tp` says, as it is kept; bf16 is what of it is gathered. */
static tsr_value keep(statement *s, const char *name, const char *tp, int ndim, const int64_t *shape)
{
    char text[128], prefix[48] = "", placements[TRAIN_TEXT_BYTES];
    tsr_layout *layout;
    if (s->layer >= 0)
        snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)s->layer);
    snprintf(text, sizeof text, "%s%s", prefix, name);
    place(s, tp, true, ndim, shape, placements);
    const int64_t flat[] = {ndim == 2 ? shape[0] * shape[1] : shape[0]};
    if (tsr_layout_parse(s->on->mesh, placements, is_flat(s, ndim) ? 1 : ndim, is_flat(s, ndim) ? flat : shape,
                         kept_dtype(s->model), &layout) != TSR_OK)
        return TSR_NONE;
    const tsr_value w = s->trains ? tsr_state(s->p, text, layout) : tsr_parameter(s->p, text, layout);
    tsr_layout_destroy(layout);
    list(s, w, ndim, shape);
    if (is_flat(s, ndim) && !train_shapes_add(s->model->shapes, text, shape))
        return TSR_NONE;
    return s->model->dtype == TSR_BF16 && ndim > 1 && s->layer >= 0 ? tsr_op_cast(s->p, w, TSR_BF16) : w;
}

/* Gathers a weight along fsdp: once more in the backward, rather than that it is kept until then.
 * */
static tsr_value gather(const statement *s, tsr_value w, const char *tp, int ndim, const int64_t *shape)
{
    char placements[TRAIN_TEXT_BYTES];
    place(s, tp, false, ndim, shape, placements);
    return train_layouts_size(s->on, TRAIN_FSDP) > 1 ? tsr_op_recompute(s->p, tsr_op_redistribute(s->p, w, placements))
                                                     : w;
}

/* What is made of a gathered weight goes with it. */
static tsr_value drop(const statement *s, tsr_value x)
{
    return train_layouts_size(s->on, TRAIN_FSDP) > 1 ? tsr_op_recompute(s->p, x) : x;
}

/* A gathered weight varies: each rank has terms of its gradient, of its own tokens. One with one
 * dim is a matrix again; nothing moves. */
static tsr_value use(const statement *s, tsr_value w, const char *tp, int ndim, const int64_t *shape)
{
    char placements[TRAIN_TEXT_BYTES];
    if (is_flat(s, ndim)) {
        train_layouts_weight(s->on, tp, false, placements);
        w = drop(s, tsr_op_reshape(s->p, w, ndim, shape));
        w = drop(s, tsr_op_redistribute(s->p, w, placements));
    }
    return drop(s, tsr_op_vary(s->p, w));
}

static tsr_value weight(statement *s, const char *name, const char *tp, int ndim, const int64_t *shape)
{
    return use(s, gather(s, keep(s, name, tp, ndim, shape), tp, ndim, shape), tp, ndim, shape);
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

static tsr_value keep_norm(statement *s, norm_kind kind)
{
    static const char *const names[] = {"input_layernorm.weight", "post_attention_layernorm.weight",
                                        "self_attn.q_norm.weight", "self_attn.k_norm.weight"};
    const bool of_heads = kind == OF_QUERIES || kind == OF_KEYS;
    if (of_heads && !s->config->has_head_norms)
        return TSR_NONE;
    return keep(s, names[kind], "R", 1, of_heads ? &s->config->head_dim : &s->config->hidden_size);
}

/* Gathers the weights of a layer, one move behind the other, so that they share an exchange. */
static layer_weights gather_layer(statement *s, int64_t layer)
{
    layer_weights w;
    char tp[LAYER_WEIGHTS][64], text[64];
    int64_t shapes[LAYER_WEIGHTS][2] = {{0}};
    s->layer = layer;
    for (int i = 0; i < LINEARS; i++) {
        const dense d = describe(s, (linear_kind)i);
        const int64_t shape[] = {d.outputs, d.inputs};
        memcpy(shapes[i], shape, sizeof shape);
        snprintf(tp[i], sizeof tp[i], "%s", d.tp);
        snprintf(tp[BIASES + i], sizeof tp[i], "%s", d.tp[2] == '0' ? d.tp : "R");
        snprintf(text, sizeof text, "%s.weight", d.name);
        w.values[i] = keep(s, text, tp[i], 2, shape);
        snprintf(text, sizeof text, "%s.bias", d.name);
        w.values[BIASES + i] = d.has_bias ? keep(s, text, tp[BIASES + i], 1, shape) : TSR_NONE;
    }
    for (int i = 0; i < NORMS; i++) {
        snprintf(tp[LAYER_NORMS + i], sizeof tp[i], "R");
        w.values[LAYER_NORMS + i] = keep_norm(s, (norm_kind)i);
    }
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        if (w.values[i] != TSR_NONE)
            w.values[i] = gather(s, w.values[i], tp[i], i < LINEARS ? 2 : 1, shapes[i]);
    for (int i = 0; i < LAYER_WEIGHTS; i++)
        if (w.values[i] != TSR_NONE)
            w.values[i] = use(s, w.values[i], tp[i], i < LINEARS ? 2 : 1, shapes[i]);
    return w;
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

/* States a layer, once the weights of the one behind it are gathered: where messages travel
 * meanwhile, they have this layer's time. */
static tsr_value layer(statement *s, int64_t number, tsr_value x)
{
    s->now = s->next;
    if (number + 1 < s->config->layers)
        s->next = gather_layer(s, number + 1);
    s->layer = number;
    x = tsr_op_add(s->p, x, attend(s, norm(s, BEFORE_ATTENTION, tsr_op_vary(s->p, x))));
    return tsr_op_add(s->p, x, transform(s, norm(s, BEFORE_MLP, tsr_op_vary(s->p, x))));
}

static tsr_value input(const statement *s, const char *name, int ndim, const int64_t *shape)
{
    char placements[TRAIN_TEXT_BYTES];
    train_layouts_activation(s->on, ndim == 2 ? 0 : -1, ndim - 1, "R", placements);
    return tsr_input(s->p, name, s->on->mesh, TSR_I64, ndim, shape, placements);
}

tsr_value train_state_loss(const train_model *model, bool trains, tsr_program *p, train_weights *weights)
{
    const llama_config *const c = model->config;
    statement s = {.model = model, .config = c, .on = model->layouts, .p = p, .trains = trains, .layer = -1};
    tsr_cross_entropy_options options = TSR_CROSS_ENTROPY_OPTIONS_INIT;
    const int64_t shape[] = {model->batch, model->length}, table[] = {c->vocab_size, c->hidden_size};
    s.room = (size_t)c->layers * 16 + 3;
    weights->values = calloc(s.room, sizeof *weights->values);
    weights->views = calloc(s.room, sizeof *weights->views);
    s.room = weights->values && weights->views ? s.room : 0;
    s.weights = weights;
    options.ignore_index = TSR_IGNORE_NONE;
    const tsr_value tokens = input(&s, "tokens", 2, shape), targets = input(&s, "targets", 2, shape);
    s.positions = input(&s, "positions", 1, shape + 1);
    const tsr_value embedding = weight(&s, "model.embed_tokens.weight", "S(0)", 2, table);
    tsr_value x = tsr_op_all_reduce(p, tsr_op_embedding(p, embedding, tokens), 0);
    s.next = gather_layer(&s, 0);
    for (int64_t i = 0; i < c->layers; i++)
        x = layer(&s, i, x);
    s.layer = -1;
    const tsr_value last = weight(&s, "model.norm.weight", "R", 1, &c->hidden_size);
    x = tsr_op_rms_norm(p, tsr_op_vary(p, x), last, c->norm_epsilon);
    const tsr_value output = c->tied_embeddings ? embedding : weight(&s, "lm_head.weight", "S(0)", 2, table);
    return tsr_op_all_reduce(p, tsr_op_linear_cross_entropy(p, x, output, targets, &options), 0);
}

static void keep_gradients(tsr_program *p, const train_weights *weights, const tsr_value *gradients)
{
    for (size_t i = 0; i < weights->count; i++) {
        char name[136];
        snprintf(name, sizeof name, "d.%s", tsr_value_name(p, weights->values[i]));
        tsr_output(p, name, gradients[i], NULL);
    }
}

/* True of a weight that Muon is for: a matrix, but for those with a row for each token of the
 * vocabulary. */
static bool is_for_muon(const tsr_program *p, tsr_value w, const tsr_optimizer_view *view)
{
    const char *const name = tsr_value_name(p, w);
    return (view->ndim == 2 || tsr_layout_ndim(tsr_value_layout(p, w)) == 2) && strncmp(name, "model.layers.", 13) == 0;
}

/* Puts the weights that Muon is for before the others, with their gradients; returns their number.
 * */
static size_t sort_for_muon(const tsr_program *p, const train_weights *weights, tsr_value *gradients)
{
    size_t first = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const tsr_value w = weights->values[i], d = gradients[i];
        const tsr_optimizer_view view = weights->views[i];
        if (tsr_program_status(p, NULL) != TSR_OK || !is_for_muon(p, w, &view))
            continue;
        weights->values[i] = weights->values[first];
        weights->views[i] = weights->views[first];
        weights->views[first] = view;
        gradients[i] = gradients[first];
        weights->values[first] = w;
        gradients[first++] = d;
    }
    return first;
}

/* Updates weights by two optimizers, the first `first` by one. All gradients are clipped together.
 * */
static tsr_value update(const train_weights *weights, tsr_value *gradients, size_t first, tsr_optimizer_options of[2],
                        double clip, const tsr_mesh *mesh, tsr_program *p)
{
    tsr_value size;
    const tsr_value rate = tsr_input(p, "rate", mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value step = tsr_input(p, "step", mesh, TSR_F64, 0, NULL, NULL);
    const size_t begins[] = {0, first, weights->count};
    for (int i = 0; i < 2; i++)
        of[i].views = weights->views + begins[i];
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_reduce(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i],
                                 &of[i]);
    tsr_optimizer_clip(p, weights->count, gradients, clip, &size);
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_update(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i], rate,
                                 of[i].kind == TSR_MUON ? TSR_NONE : step, TSR_NONE, &of[i]);
    return size;
}

static void record_step(const train_weights *weights, tsr_value loss, const train_model *model,
                        const tsr_optimizer_options *optimizer, double clip, bool keeps, tsr_program *p,
                        tsr_value *gradients)
{
    const tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    tsr_optimizer_options of[] = {*optimizer, adamw};
    of[1].shard_over = optimizer->shard_over;
    tsr_gradients(p, loss, weights->count, weights->values, gradients);
    if (keeps)
        keep_gradients(p, weights, gradients);
    const size_t first = optimizer->kind == TSR_MUON ? sort_for_muon(p, weights, gradients) : weights->count;
    const tsr_value size = update(weights, gradients, first, of, clip, model->layouts->mesh, p);
    tsr_output(p, "loss", tsr_op_cast(p, loss, TSR_F64), NULL);
    tsr_output(p, "norm", size, NULL);
}

tsr_status train_state_step(const train_model *model, const tsr_optimizer_options *optimizer, double clip,
                            bool keeps_gradients, tsr_program *p)
{
    train_weights weights = {0};
    const tsr_value loss = train_state_loss(model, true, p, &weights);
    tsr_value *const gradients = calloc(weights.count + 1, sizeof *gradients);
    if (!weights.values || !weights.views || !gradients) {
        free(gradients);
        train_weights_finish(&weights);
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for the gradients of %zu weights", weights.count);
    }
    record_step(&weights, loss, model, optimizer, clip, keeps_gradients, p, gradients);
    free(gradients);
    train_weights_finish(&weights);
    return tsr_program_status(p, NULL);
}

tsr_status train_state_validation(const train_model *model, tsr_program *p)
{
    train_weights weights = {0};
    const tsr_value loss = train_state_loss(model, false, p, &weights);
    train_weights_finish(&weights);
    tsr_output(p, "loss", tsr_op_cast(p, loss, TSR_F64), NULL);
    return tsr_program_status(p, NULL);
}
