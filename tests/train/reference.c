#include "reference.h"

#include "rows.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static number *make(int64_t count)
{
    number *const made = calloc((size_t)count + 1, sizeof *made);
    assert_non_null(made);
    return made;
}

void reference_add(reference *r, const char *name, int64_t count, const double *values)
{
    assert_true(r->count < REFERENCE_MOST);
    reference_weight *const w = &r->weights[r->count++];
    snprintf(w->name, sizeof w->name, "%s", name);
    w->count = count;
    w->values = make(count);
    w->gradients = make(count);
    for (int64_t i = 0; i < count; i++)
        w->values[i] = number_of(values[i]);
}

reference_weight *reference_find(reference *r, const char *name)
{
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->weights[i].name, name) == 0)
            return &r->weights[i];
    fail_msg("the reference has no weight %s", name);
    return NULL;
}

void reference_finish(reference *r)
{
    for (int i = 0; i < r->count; i++) {
        free(r->weights[i].values);
        free(r->weights[i].gradients);
    }
    *r = (reference){0};
}

/* A weight of a layer, or of the model where `layer` is -1; NULL: it has none. */
static reference_weight *weight(reference *r, int64_t layer, const char *name)
{
    char text[160];
    if (layer < 0)
        snprintf(text, sizeof text, "%s", name);
    else
        snprintf(text, sizeof text, "model.layers.%lld.%s", (long long)layer, name);
    for (int i = 0; i < r->count; i++)
        if (strcmp(r->weights[i].name, text) == 0)
            return &r->weights[i];
    return NULL;
}

static dense dense_of(reference *r, int64_t layer, const char *name, int64_t in)
{
    char text[80];
    snprintf(text, sizeof text, "%s.weight", name);
    reference_weight *const w = weight(r, layer, text);
    snprintf(text, sizeof text, "%s.bias", name);
    reference_weight *const b = weight(r, layer, text);
    assert_non_null(w);
    dense d = dense_with(w->values, w->gradients, w->count / in, in);
    d.b = b ? b->values : NULL;
    d.db = b ? b->gradients : NULL;
    return d;
}

/* Attention of windows and heads, whose rows are (tokens x heads, dim), and its gradients, where
 * dy.v
 * is there, which are added to dq, dk and dv. */
typedef struct attention {
    rows q, k, v, y, dy, dq, dk, dv;
    int64_t window;
} attention;

static void attend_row(const reference *r, const attention *a, int64_t token, int64_t head)
{
    const llama_config *const c = r->config;
    const int64_t row = token % r->length, begin = token - row, own = token * c->heads + head;
    const int64_t first = a->window > 0 && row + 1 > a->window ? row + 1 - a->window : 0, n = row + 1 - first;
    const int64_t other = (begin + first) * c->kv_heads + head / (c->heads / c->kv_heads), step = c->kv_heads;
    const number scale = number_function(1 / sqrt((double)c->head_dim), 0, number_of(0));
    number p[64], d[64];
    assert_true(n <= 64);
    for (int64_t j = 0; j < n; j++)
        p[j] = number_times(rows_inner(a->q, own, a->k, other + j * step), scale);
    number_softmax(n, p);
    for (int64_t j = 0; j < n && !a->dy.v; j++)
        rows_add_scaled(a->y, own, p[j], a->v, other + j * step, n);
    if (!a->dy.v)
        return;
    for (int64_t j = 0; j < n; j++) {
        d[j] = rows_inner(a->dy, own, a->v, other + j * step);
        rows_add_scaled(a->dv, other + j * step, p[j], a->dy, own, r->length * c->heads);
    }
    number_softmax_backward(n, p, d);
    for (int64_t j = 0; j < n; j++) {
        d[j] = number_times(d[j], scale);
        rows_add_scaled(a->dq, own, d[j], a->k, other + j * step, n);
        rows_add_scaled(a->dk, other + j * step, d[j], a->q, own, r->length * c->heads);
    }
}

static void attend(const reference *r, const attention *a)
{
    for (int64_t token = 0; token < r->batch * r->length; token++)
        for (int64_t head = 0; head < r->config->heads; head++)
            attend_row(r, a, token, head);
}

/* How many slots an expert got, and the sum of its chances, over all layers. */
typedef struct balance {
    int64_t routed;
    double counts[64];
    number chances[64];
} balance;

/* The experts of a token: their numbers and weights, and what the router thinks of all. */
typedef struct route {
    int64_t ids[8];
    number weights[8], chances[64], sum;
} route;

static route choose(const llama_mixture_config *m, const dense *router, rows x)
{
    route made = {.sum = {0, 0}};
    bool taken[64] = {false};
    assert_true(m->experts <= 64 && m->chosen <= 8);
    const rows logits = dense_forward(router, x);
    for (int64_t e = 0; e < m->experts; e++)
        made.chances[e] = (number){logits.v[e], logits.e[0]};
    rows_free(logits);
    number_softmax(m->experts, made.chances);
    for (int64_t k = 0; k < m->chosen; k++) {
        int64_t best = -1;
        for (int64_t e = 0; e < m->experts; e++)
            if (!taken[e] && (best < 0 || made.chances[e].value > made.chances[best].value))
                best = e;
        taken[best] = true;
        made.ids[k] = best;
        made.weights[k] = made.chances[best];
        made.sum = k > 0 ? number_add(made.sum, made.weights[k]) : made.weights[k];
    }
    for (int64_t k = 0; k < m->chosen && m->normed; k++)
        made.weights[k] = number_times(made.weights[k], number_inverse(made.sum));
    return made;
}

/* The gradient of the router's logits of a token, from those of its weights. */
static rows route_backward(const reference *r, const balance *all, const route *to, const number *dweights)
{
    const llama_mixture_config *const m = &r->config->mixture;
    const double tokens = (double)(all->routed * r->batch * r->length), part = m->balance * (double)m->experts;
    const number inverse = number_inverse(to->sum), sum = number_dot(m->chosen, dweights, 1, to->weights, 1);
    const rows made = rows_make(1, m->experts);
    number d[64];
    for (int64_t e = 0; e < m->experts; e++)
        d[e] = number_function(part * all->counts[e] / tokens / tokens, 0, number_of(0));
    for (int64_t k = 0; k < m->chosen; k++)
        number_add_to(&d[to->ids[k]],
                      m->normed ? number_times(inverse, number_subtract(dweights[k], sum)) : dweights[k]);
    number_softmax_backward(m->experts, to->chances, d);
    for (int64_t e = 0; e < m->experts; e++) {
        made.v[e] = d[e].value;
        made.e[0] = hypot(made.e[0], d[e].error);
    }
    return made;
}

/* Expert e's layers; gate and up share a tensor. */
static gated expert_of(reference *r, int64_t layer, int64_t e)
{
    const int64_t hidden = r->config->hidden_size, size = r->config->mixture.size, in = size * hidden;
    reference_weight *const both = weight(r, layer, "mlp.experts.gate_up_proj");
    reference_weight *const out = weight(r, layer, "mlp.experts.down_proj");
    assert_true(both && out);
    number *const w = both->values + 2 * e * in, *const dw = both->gradients + 2 * e * in;
    return (gated){.gate = dense_with(w, dw, size, hidden),
                   .up = dense_with(w + in, dw + in, size, hidden),
                   .down = dense_with(out->values + e * in, out->gradients + e * in, hidden, size)};
}

/* What experts make of a token, or, where dy is not NULL, its gradient: added to `out`. */
static void mix_token(reference *r, int64_t layer, balance *all, const dense *router, rows x, const rows *dy, rows out)
{
    const llama_mixture_config *const m = &r->config->mixture;
    const route to = choose(m, router, x);
    number dweights[8];
    for (int64_t k = 0; k < m->chosen; k++) {
        gated l = expert_of(r, layer, to.ids[k]);
        const rows y = gated_forward(&l, x);
        if (dy) {
            const rows d = rows_make(1, y.width);
            dweights[k] = rows_inner(*dy, 0, y, 0);
            rows_add_scaled(d, 0, to.weights[k], *dy, 0, 1);
            const rows dx = gated_backward(&l, x, d);
            rows_add(out, dx);
            rows_free(dx);
            rows_free(d);
        } else {
            rows_add_scaled(out, 0, to.weights[k], y, 0, m->chosen);
            all->counts[to.ids[k]]++;
        }
        rows_free(y);
        gated_free(&l);
    }
    for (int64_t e = 0; e < m->experts && !dy; e++)
        number_add_to(&all->chances[e], to.chances[e]);
    if (!dy)
        return;
    const rows dlogits = route_backward(r, all, &to, dweights), dx = dense_backward(router, x, dlogits);
    rows_add(out, dx);
    rows_free(dlogits);
    rows_free(dx);
}

static rows mix(reference *r, int64_t layer, balance *all, rows x, const rows *dy)
{
    const dense router = dense_of(r, layer, "mlp.gate", x.width);
    const rows out = rows_make(x.count, x.width);
    for (int64_t t = 0; t < x.count; t++) {
        const rows d = dy ? rows_one(*dy, t) : x;
        mix_token(r, layer, all, &router, rows_one(x, t), dy ? &d : NULL, rows_one(out, t));
    }
    all->routed += !dy;
    return out;
}

/* An MLP or experts, or its gradient. */
static rows transform(reference *r, int64_t layer, balance *all, rows x, const rows *dy)
{
    if (llama_config_has_experts(r->config, layer))
        return mix(r, layer, all, x, dy);
    gated l = {.gate = dense_of(r, layer, "mlp.gate_proj", x.width),
               .up = dense_of(r, layer, "mlp.up_proj", x.width),
               .down = dense_of(r, layer, "mlp.down_proj", r->config->intermediate_size)};
    rows y = gated_forward(&l, x);
    if (dy) {
        rows_free(y);
        y = gated_backward(&l, x, *dy);
    }
    gated_free(&l);
    return y;
}

/* What a layer keeps for its gradients: what it reads, behind attention, and both normed; heads
 * before they are turned, and turned. */
typedef struct layer {
    rows x, normed, middle, again, raw_q, raw_k, q, k, v, joined;
} layer;

static rows turn(reference *r, int64_t n, const char *name, int64_t heads, rows raw)
{
    const reference_weight *const w = weight(r, n, name);
    const rows x = w ? rows_norm(w->values, r->config->norm_epsilon, raw) : rows_of_heads(raw, 1);
    rows_rope(r->config->rope.theta, r->length, heads, false, x);
    return x;
}

/* From the gradient of turned heads, which it overwrites, to that of what made them. */
static rows turn_back(reference *r, int64_t n, const char *name, int64_t heads, rows raw, rows dx)
{
    reference_weight *const w = weight(r, n, name);
    rows_rope(r->config->rope.theta, r->length, heads, true, dx);
    const rows d = w ? rows_norm_backward(w->values, w->gradients, r->config->norm_epsilon, raw, dx)
                     : rows_of_heads(dx, 1),
               joined = rows_of_tokens(d, heads);
    rows_free(d);
    return joined;
}

static rows project(reference *r, int64_t n, const char *name, int64_t heads, rows x)
{
    const dense d = dense_of(r, n, name, x.width);
    const rows y = dense_forward(&d, x), split = rows_of_heads(y, heads);
    rows_free(y);
    return split;
}

static layer run_layer(reference *r, int64_t n, balance *all, rows x, rows *out)
{
    const llama_config *const c = r->config;
    layer l = {.x = x, .normed = rows_norm(weight(r, n, "input_layernorm.weight")->values, c->norm_epsilon, x)};
    const dense o = dense_of(r, n, "self_attn.o_proj", c->heads * c->head_dim);
    l.raw_q = project(r, n, "self_attn.q_proj", c->heads, l.normed);
    l.raw_k = project(r, n, "self_attn.k_proj", c->kv_heads, l.normed);
    l.v = project(r, n, "self_attn.v_proj", c->kv_heads, l.normed);
    l.q = turn(r, n, "self_attn.q_norm.weight", c->heads, l.raw_q);
    l.k = turn(r, n, "self_attn.k_norm.weight", c->kv_heads, l.raw_k);
    const attention a = {
        .q = l.q, .k = l.k, .v = l.v, .y = rows_make(l.q.count, c->head_dim), .window = llama_config_window(c, n)};
    attend(r, &a);
    l.joined = rows_of_tokens(a.y, c->heads);
    rows_free(a.y);
    l.middle = dense_forward(&o, l.joined);
    rows_add(l.middle, x);
    l.again = rows_norm(weight(r, n, "post_attention_layernorm.weight")->values, c->norm_epsilon, l.middle);
    *out = transform(r, n, all, l.again, NULL);
    rows_add(*out, l.middle);
    return l;
}

/* Adds to `d` the gradient of a norm's input. */
static void undo_norm(reference *r, int64_t n, const char *name, rows x, rows dy, rows d)
{
    reference_weight *const w = weight(r, n, name);
    const rows dx = rows_norm_backward(w->values, w->gradients, r->config->norm_epsilon, x, dy);
    rows_add(d, dx);
    rows_free(dx);
}

/* Adds to `sum` the gradient of a projection's input, and frees that of its result. */
static void undo_project(reference *r, int64_t n, const char *name, const layer *l, rows dy, rows sum)
{
    const dense d = dense_of(r, n, name, l->normed.width);
    const rows dx = dense_backward(&d, l->normed, dy);
    rows_add(sum, dx);
    rows_free(dx);
    rows_free(dy);
}

/* Turns `d`, the gradient of what the layer gives, into that of what it reads. */
static void undo_layer(reference *r, int64_t n, balance *all, const layer *l, rows d)
{
    const llama_config *const c = r->config;
    const dense o = dense_of(r, n, "self_attn.o_proj", l->joined.width);
    const rows again = transform(r, n, all, l->again, &d), normed = rows_make(d.count, d.width);
    undo_norm(r, n, "post_attention_layernorm.weight", l->middle, again, d);
    const rows joined = dense_backward(&o, l->joined, d), dy = rows_of_heads(joined, c->heads);
    const attention a = {.q = l->q,
                         .k = l->k,
                         .v = l->v,
                         .dy = dy,
                         .dq = rows_make(l->q.count, c->head_dim),
                         .dk = rows_make(l->k.count, c->head_dim),
                         .dv = rows_make(l->v.count, c->head_dim),
                         .window = llama_config_window(c, n)};
    attend(r, &a);
    undo_project(r, n, "self_attn.q_proj", l, turn_back(r, n, "self_attn.q_norm.weight", c->heads, l->raw_q, a.dq),
                 normed);
    undo_project(r, n, "self_attn.k_proj", l, turn_back(r, n, "self_attn.k_norm.weight", c->kv_heads, l->raw_k, a.dk),
                 normed);
    undo_project(r, n, "self_attn.v_proj", l, rows_of_tokens(a.dv, c->kv_heads), normed);
    undo_norm(r, n, "input_layernorm.weight", l->x, normed, d);
    const rows all_of[] = {again, normed, joined, dy, a.dq, a.dk, a.dv};
    for (size_t i = 0; i < sizeof all_of / sizeof *all_of; i++)
        rows_free(all_of[i]);
}

static void free_layer(const layer *l)
{
    const rows all[] = {l->x, l->normed, l->middle, l->again, l->raw_q, l->raw_k, l->q, l->k, l->v, l->joined};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++)
        rows_free(all[i]);
}

/* The loss of hidden values; returns their gradient. Softmax has the Jacobian diag(p) - p p^T,
 * whose
 * norm is at most the largest p, and the loss of a token the gradient p - 1, whose norm is below
 * |p| + 1. */
static rows lose(reference *r, const dense *output, rows x)
{
    const int64_t vocabulary = output->out;
    const number part = number_function(1 / (double)x.count, 0, number_of(0)), one = number_of(1);
    const rows logits = dense_forward(output, x);
    number *const p = make(vocabulary), *const losses = make(x.count);
    for (int64_t t = 0; t < x.count; t++) {
        double *const at = logits.v + t * vocabulary, wanted = at[r->targets[t]], lacks = logits.e[t];
        double sum = 0, largest = 0, most = at[0];
        for (int64_t i = 1; i < vocabulary; i++)
            most = fmax(most, at[i]);
        for (int64_t i = 0; i < vocabulary; i++) {
            p[i] = number_of(at[i]);
            sum += exp(at[i] - most);
        }
        number_softmax(vocabulary, p); /* with its own roundings alone */
        logits.e[t] = 0;
        for (int64_t i = 0; i < vocabulary; i++) {
            largest = fmax(largest, p[i].value);
            logits.e[t] = hypot(logits.e[t], p[i].error);
            at[i] = (p[i].value - (i == r->targets[t])) * part.value;
        }
        losses[t].value = log(sum) + most - wanted;
        losses[t].error = (rows_size(vocabulary, at) * (double)x.count + 1) * lacks +
                          (number_gamma(vocabulary) + 2 * NUMBER_ULPS * NUMBER_U) * (1 + fabs(log(sum)) + fabs(most));
        logits.e[t] = (logits.e[t] + largest * lacks) * part.value + NUMBER_ULPS * NUMBER_U * rows_size(vocabulary, at);
    }
    r->loss = number_times(number_dot(x.count, losses, 1, &one, 0), part);
    const rows dx = dense_backward(output, x, logits);
    rows_free(logits);
    free(p);
    free(losses);
    return dx;
}

static void judge_balance(reference *r, const balance *all)
{
    const double tokens = (double)(all->routed * r->batch * r->length);
    number counts[64];
    for (int64_t e = 0; e < r->config->mixture.experts; e++)
        counts[e] = number_of(all->counts[e]);
    const number sum = number_dot(r->config->mixture.experts, counts, 1, all->chances, 1);
    r->router = number_times(sum, number_function((double)r->config->mixture.experts / tokens / tokens, 0, sum));
}

static rows embed(const reference *r, const reference_weight *table)
{
    const int64_t hidden = r->config->hidden_size;
    const rows x = rows_make(r->batch * r->length, hidden);
    for (int64_t i = 0; i < x.count * hidden; i++)
        x.v[i] = table->values[r->tokens[i / hidden] * hidden + i % hidden].value;
    return x;
}

void reference_run(reference *r)
{
    const llama_config *const c = r->config;
    balance all = {0};
    layer layers[8];
    reference_weight *const table = reference_find(r, "model.embed_tokens.weight");
    const dense output = dense_of(r, -1, c->tied_embeddings ? "model.embed_tokens" : "lm_head", c->hidden_size);
    rows x = embed(r, table), next;
    assert_true(c->layers <= 8);
    for (int64_t n = 0; n < c->layers; n++, x = next)
        layers[n] = run_layer(r, n, &all, x, &next);
    const rows normed = rows_norm(reference_find(r, "model.norm.weight")->values, c->norm_epsilon, x);
    const rows dnormed = lose(r, &output, normed), d = rows_make(x.count, x.width);
    judge_balance(r, &all);
    undo_norm(r, -1, "model.norm.weight", x, dnormed, d);
    for (int64_t n = c->layers - 1; n >= 0; n--) {
        undo_layer(r, n, &all, &layers[n], d);
        free_layer(&layers[n]);
    }
    for (int64_t i = 0; i < d.count * d.width; i++)
        number_add_to(&table->gradients[r->tokens[i / d.width] * d.width + i % d.width],
                      (number){d.v[i], d.e[i / d.width]});
    const rows rest[] = {x, normed, dnormed, d};
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        rows_free(rest[i]);
}
