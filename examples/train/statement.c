#include "statement.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What is being stated. */
typedef struct statement {
    const train_model *model;
    const llama_config *config;
    const train_layouts *on;
    tsr_program *p;
    bool trains;
    int64_t layer; /* that is stated; -1: none */
    tsr_value positions;
    train_weights *weights;
    size_t room; /* of the list of weights */
} statement;

void train_weights_finish(train_weights *weights)
{
    free(weights->values);
    *weights = (train_weights){0};
}

static tsr_dtype kept_dtype(const train_model *model)
{
    return model->dtype == TSR_F64 ? TSR_F64 : TSR_F32;
}

static void list(statement *s, tsr_value value)
{
    train_weights *const all = s->weights;
    if (all->count < s->room)
        all->values[all->count++] = value;
}

/* A weight that tp cuts as `tp` says, as it is used: of fsdp, gathered, once more in the backward rather
 * than kept until then. It varies: each rank has terms of its gradient, of its own tokens. */
static tsr_value weight(statement *s, const char *name, const char *tp, int ndim, const int64_t *shape)
{
    char text[128], prefix[48] = "", placements[TRAIN_TEXT_BYTES];
    tsr_layout *layout;
    if (s->layer >= 0)
        snprintf(prefix, sizeof prefix, "model.layers.%lld.", (long long)s->layer);
    snprintf(text, sizeof text, "%s%s", prefix, name);
    train_layouts_weight(s->on, tp, true, placements);
    if (tsr_layout_parse(s->on->mesh, placements, ndim, shape, kept_dtype(s->model), &layout) != TSR_OK)
        return TSR_NONE;
    tsr_value w = s->trains ? tsr_state(s->p, text, layout) : tsr_parameter(s->p, text, layout);
    tsr_layout_destroy(layout);
    list(s, w);
    if (s->model->dtype == TSR_BF16 && ndim > 1 && s->layer >= 0)
        w = tsr_op_cast(s->p, w, TSR_BF16);
    if (train_layouts_size(s->on, TRAIN_FSDP) > 1) {
        train_layouts_weight(s->on, tp, false, placements);
        w = tsr_op_recompute(s->p, tsr_op_redistribute(s->p, w, placements));
        return tsr_op_recompute(s->p, tsr_op_vary(s->p, w));
    }
    return tsr_op_vary(s->p, w);
}

/* A linear layer, whose weight is `name`.weight. */
static tsr_value linear(statement *s, const char *name, const char *tp, bool has_bias, int64_t outputs, int64_t inputs,
                        tsr_value x)
{
    char text[64];
    const int64_t shape[] = {outputs, inputs};
    snprintf(text, sizeof text, "%s.weight", name);
    const tsr_value w = weight(s, text, tp, 2, shape);
    snprintf(text, sizeof text, "%s.bias", name);
    const char *const of_bias = tp[2] == '0' ? tp : "R";
    return tsr_op_linear(s->p, x, w, has_bias ? weight(s, text, of_bias, 1, &outputs) : TSR_NONE);
}

static tsr_value norm(statement *s, const char *name, int64_t width, tsr_value x)
{
    return tsr_op_rms_norm(s->p, x, weight(s, name, "R", 1, &width), s->config->norm_epsilon);
}

/* The placement that cuts query heads, and that of key/value heads, along tensor dim `dim` of `head`
 * elements a head. */
static void cut_heads(const statement *s, bool queries, int dim, int64_t head, char text[64])
{
    const int64_t group = s->config->heads / s->config->kv_heads;
    const int64_t unit = queries && !s->on->shares_keys ? group * head : head;
    snprintf(text, 64, "S(%d;unit=%lld)", dim, (long long)unit);
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

static tsr_value project(statement *s, const char *name, bool queries, tsr_value x)
{
    char tp[64];
    const int64_t heads = queries ? s->config->heads : s->config->kv_heads, dim = s->config->head_dim;
    cut_heads(s, queries, 0, dim, tp);
    return split(s, linear(s, name, tp, s->config->attention_bias, heads * dim, s->config->hidden_size, x), queries);
}

static tsr_value turn(statement *s, const char *norm_name, tsr_value x)
{
    const tsr_rope_options options = llama_config_rope(s->config);
    if (s->config->has_head_norms)
        x = norm(s, norm_name, s->config->head_dim, x);
    return tsr_op_rope(s->p, x, s->positions, &options);
}

/* Keys or values (rows, heads, tokens, dim) where queries are: whole along cp, and along tp where it
 * has more ranks than there are heads of them. */
static tsr_value share(const statement *s, tsr_value x)
{
    char tp[64];
    cut_heads(s, false, 1, 1, tp);
    if (s->on->shares_keys || train_layouts_size(s->on, TRAIN_CP) > 1)
        x = tsr_op_vary(s->p, lay(s, x, 0, -1, s->on->shares_keys ? "R" : tp));
    return x;
}

static tsr_value attend(statement *s, tsr_value x)
{
    char tp[64];
    const llama_config *const c = s->config;
    const int64_t joined[] = {s->model->batch, s->model->length, c->heads * c->head_dim};
    tsr_attention_options options = TSR_ATTENTION_OPTIONS_INIT;
    options.causal = 1;
    options.window = llama_config_window(c, s->layer);
    tsr_value q = turn(s, "self_attn.q_norm.weight", project(s, "self_attn.q_proj", true, x));
    tsr_value k = turn(s, "self_attn.k_norm.weight", project(s, "self_attn.k_proj", false, x));
    tsr_value v = project(s, "self_attn.v_proj", false, x);
    q = tsr_op_transpose(s->p, q, 1, 2);
    k = share(s, tsr_op_transpose(s->p, k, 1, 2));
    v = share(s, tsr_op_transpose(s->p, v, 1, 2));
    tsr_value y = tsr_op_transpose(s->p, tsr_op_attention(s->p, q, k, v, TSR_NONE, &options), 1, 2);
    cut_heads(s, true, 2, c->head_dim, tp);
    y = lay(s, tsr_op_reshape(s->p, y, 3, joined), 0, 1, tp);
    cut_heads(s, true, 1, c->head_dim, tp);
    y = linear(s, "self_attn.o_proj", tp, c->attention_bias, c->hidden_size, c->heads * c->head_dim, y);
    return tsr_op_all_reduce(s->p, y, 0);
}

static tsr_value transform(statement *s, tsr_value x)
{
    const llama_config *const c = s->config;
    const tsr_value gate = linear(s, "mlp.gate_proj", "S(0)", c->mlp_bias, c->intermediate_size, c->hidden_size, x);
    const tsr_value up = linear(s, "mlp.up_proj", "S(0)", c->mlp_bias, c->intermediate_size, c->hidden_size, x);
    const tsr_value y = linear(s, "mlp.down_proj", "S(1)", c->mlp_bias, c->hidden_size, c->intermediate_size,
                               tsr_op_silu_mul(s->p, gate, up));
    return tsr_op_all_reduce(s->p, y, 0);
}

static tsr_value layer(statement *s, tsr_value x)
{
    const int64_t hidden = s->config->hidden_size;
    tsr_value y = norm(s, "input_layernorm.weight", hidden, tsr_op_vary(s->p, x));
    x = tsr_op_add(s->p, x, attend(s, y));
    y = norm(s, "post_attention_layernorm.weight", hidden, tsr_op_vary(s->p, x));
    return tsr_op_add(s->p, x, transform(s, y));
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
    s.room = weights->values ? s.room : 0;
    s.weights = weights;
    options.ignore_index = TSR_IGNORE_NONE;
    const tsr_value tokens = input(&s, "tokens", 2, shape), targets = input(&s, "targets", 2, shape);
    s.positions = input(&s, "positions", 1, shape + 1);
    const tsr_value embedding = weight(&s, "model.embed_tokens.weight", "S(0)", 2, table);
    tsr_value x = tsr_op_all_reduce(p, tsr_op_embedding(p, embedding, tokens), 0);
    for (s.layer = 0; s.layer < c->layers; s.layer++)
        x = layer(&s, x);
    s.layer = -1;
    x = norm(&s, "model.norm.weight", c->hidden_size, tsr_op_vary(p, x));
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

/* True of a weight that Muon is for: a matrix, but for those with a row for each token of the vocabulary. */
static bool is_for_muon(const tsr_program *p, tsr_value w)
{
    const char *const name = tsr_value_name(p, w);
    return tsr_layout_ndim(tsr_value_layout(p, w)) == 2 && strncmp(name, "model.layers.", 13) == 0;
}

/* Puts the weights that Muon is for before the others, with their gradients; returns their number. */
static size_t sort_for_muon(const tsr_program *p, const train_weights *weights, tsr_value *gradients)
{
    size_t first = 0;
    for (size_t i = 0; i < weights->count; i++) {
        const tsr_value w = weights->values[i], d = gradients[i];
        if (tsr_program_status(p, NULL) != TSR_OK || !is_for_muon(p, w))
            continue;
        weights->values[i] = weights->values[first];
        gradients[i] = gradients[first];
        weights->values[first] = w;
        gradients[first++] = d;
    }
    return first;
}

/* Updates weights by two optimizers, the first `first` by one. All gradients are clipped together. */
static tsr_value update(const train_weights *weights, tsr_value *gradients, size_t first,
                        const tsr_optimizer_options *const of[2], double clip, const tsr_mesh *mesh, tsr_program *p)
{
    tsr_value size;
    const tsr_value rate = tsr_input(p, "rate", mesh, TSR_F64, 0, NULL, NULL);
    const tsr_value step = tsr_input(p, "step", mesh, TSR_F64, 0, NULL, NULL);
    const size_t begins[] = {0, first, weights->count};
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_reduce(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i], of[i]);
    tsr_optimizer_clip(p, weights->count, gradients, clip, &size);
    for (int i = 0; i < 2; i++)
        if (begins[i + 1] > begins[i])
            tsr_optimizer_update(p, begins[i + 1] - begins[i], weights->values + begins[i], gradients + begins[i], rate,
                                 of[i]->kind == TSR_MUON ? TSR_NONE : step, TSR_NONE, of[i]);
    return size;
}

static void record_step(const train_weights *weights, tsr_value loss, const train_model *model,
                        const tsr_optimizer_options *optimizer, double clip, bool keeps, tsr_program *p,
                        tsr_value *gradients)
{
    tsr_optimizer_options adamw = TSR_ADAMW_INIT;
    const tsr_optimizer_options *const of[] = {optimizer, &adamw};
    adamw.shard_over = optimizer->shard_over;
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
    if (!weights.values || !gradients) {
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
