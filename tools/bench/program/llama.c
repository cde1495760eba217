/* A whole Llama as examples/llama states it: with lengths for the tokens of a run, for those so far
 * and for those whose logits are wanted, and with caches of keys and values. */
#include "bench/program/models.h"

#include <tessera/layout.h>
#include <tessera/program_ops.h>

#include <math.h>
#include <stdio.h>

/* What is being recorded. */
typedef struct recording {
    const model *m;
    tsr_program *p;
    tsr_value positions, first;
    int64_t tokens, total, head_dim; /* two lengths, and the size of a head */
    int64_t layer;                   /* -1: none */
} recording;

/* A tensor's layout: `cut` along the last mesh dim, Replicate along the others. NULL: none, after
 * the error of the program. */
static tsr_layout *lay_out(const recording *r, const char *cut, int ndim, const int64_t *shape)
{
    char placements[256];
    tsr_layout *layout = NULL;
    model_placements(r->m, "R", cut, placements);
    return tsr_layout_parse(r->m->mesh, placements, ndim, shape, TSR_F32, &layout) == TSR_OK ? layout : NULL;
}

static const char *name(const recording *r, const char *part, char text[64])
{
    if (r->layer < 0)
        snprintf(text, 64, "%s", part);
    else
        snprintf(text, 64, "layers.%lld.%s", (long long)r->layer, part);
    return text;
}

static tsr_value weight(const recording *r, const char *part, const char *cut, int64_t rows, int64_t columns)
{
    char text[64];
    const int64_t shape[] = {rows, columns};
    tsr_layout *const layout = lay_out(r, cut, rows > 1 ? 2 : 1, rows > 1 ? shape : shape + 1);
    const tsr_value value = tsr_parameter(r->p, name(r, part, text), layout);
    tsr_layout_destroy(layout);
    return value;
}

static tsr_value linear(const recording *r, const char *part, const char *cut, int64_t rows, int64_t columns,
                        tsr_value x)
{
    return tsr_op_linear(r->p, x, weight(r, part, cut, rows, columns), TSR_NONE);
}

static tsr_value norm(const recording *r, const char *part, tsr_value x)
{
    return tsr_op_rms_norm(r->p, x, weight(r, part, "R", 1, r->m->sizes.hidden), MODEL_EPSILON);
}

/* The value, whole on every rank along the last mesh dim. */
static tsr_value gather(const recording *r, tsr_value x)
{
    char placements[256];
    model_placements(r->m, "R", "R", placements);
    return tsr_op_redistribute(r->p, x, placements);
}

/* A linear layer's result by heads (tokens, heads, dim); weights are cut between heads of keys. */
static tsr_value by_heads(const recording *r, const char *part, int64_t heads, tsr_value x)
{
    char cut[64];
    const int64_t shape[] = {r->tokens, heads, r->head_dim}, unit = heads / r->m->sizes.kv_heads * r->head_dim;
    snprintf(cut, sizeof cut, "S(0;unit=%lld)", (long long)unit);
    return tsr_op_reshape(r->p, linear(r, part, cut, heads * r->head_dim, r->m->sizes.hidden, x), 3, shape);
}

static tsr_value turn(const recording *r, tsr_value x)
{
    tsr_rope_options options = TSR_ROPE_OPTIONS_INIT;
    options.base = MODEL_ROPE_BASE;
    return tsr_op_rope(r->p, x, r->positions, &options);
}

/* Adds keys or values to their cache; returns all so far (heads, total, dim). */
static tsr_value remember(const recording *r, const char *part, tsr_value x)
{
    char text[64];
    const model_sizes *const s = &r->m->sizes;
    const int64_t shape[] = {s->kv_heads, s->tokens, r->head_dim};
    tsr_layout *const layout = lay_out(r, "S(0)", 3, shape);
    const tsr_value cache = tsr_state(r->p, name(r, part, text), layout);
    tsr_layout_destroy(layout);
    tsr_op_store(r->p, cache, tsr_op_transpose(r->p, x, 0, 1), r->first);
    return tsr_op_slice(r->p, cache, 1, 0, r->total, 1);
}

static tsr_value attend(const recording *r, tsr_value x)
{
    char cut[64];
    const model_sizes *const s = &r->m->sizes;
    const int64_t width = s->heads * r->head_dim, unit = width / s->kv_heads, shape[] = {r->tokens, width};
    tsr_attention_options options = TSR_ATTENTION_OPTIONS_INIT;
    options.causal = 1;
    const tsr_value q = turn(r, by_heads(r, "q", s->heads, x));
    const tsr_value k = remember(r, "keys", turn(r, by_heads(r, "k", s->kv_heads, x)));
    const tsr_value v = remember(r, "values", by_heads(r, "v", s->kv_heads, x));
    const tsr_value y = tsr_op_attention(r->p, tsr_op_transpose(r->p, q, 0, 1), k, v, TSR_NONE, &options);
    const tsr_value joined = tsr_op_reshape(r->p, tsr_op_transpose(r->p, y, 0, 1), 2, shape);
    snprintf(cut, sizeof cut, "S(1;unit=%lld)", (long long)unit);
    return gather(r, linear(r, "o", cut, s->hidden, width, joined));
}

static tsr_value layer(const recording *r, tsr_value x)
{
    const int64_t hidden = r->m->sizes.hidden, inner = r->m->sizes.intermediate;
    x = tsr_op_add(r->p, x, attend(r, norm(r, "norm", x)));
    const tsr_value z = norm(r, "mlp_norm", x);
    const tsr_value gate = linear(r, "gate", "S(0)", inner, hidden, z), up = linear(r, "up", "S(0)", inner, hidden, z);
    return tsr_op_add(r->p, x, gather(r, linear(r, "down", "S(1)", hidden, inner, tsr_op_silu_mul(r->p, gate, up))));
}

/* An input that the ranks of the mesh have whole; ndim 0: one number. */
static tsr_value whole_input(const recording *r, const char *text, int ndim, int64_t size)
{
    return tsr_input(r->p, text, r->m->mesh, TSR_I64, ndim, &size, NULL);
}

void model_record_llama(model *m)
{
    const model_sizes *const s = &m->sizes;
    recording r = {.m = m, .p = m->program, .layer = -1, .head_dim = s->hidden / s->heads};
    r.tokens = tsr_length(r.p, "tokens", s->tokens);
    r.total = tsr_length(r.p, "total", s->tokens);
    const int64_t kept = tsr_length(r.p, "wanted", s->tokens);
    const tsr_value tokens = whole_input(&r, "tokens", 1, r.tokens);
    r.positions = whole_input(&r, "positions", 1, r.tokens);
    r.first = whole_input(&r, "first", 0, 0);
    const tsr_value wanted = whole_input(&r, "wanted", 1, kept);
    tsr_value x =
        gather(&r, tsr_op_embedding(r.p, weight(&r, "embedding", "S(0)", MODEL_VOCABULARY, s->hidden), tokens));
    for (r.layer = 0; r.layer < s->layers; r.layer++)
        x = layer(&r, x);
    r.layer = -1;
    x = norm(&r, "norm", tsr_op_index_select(r.p, x, wanted, 0));
    tsr_output(r.p, "logits", gather(&r, linear(&r, "head", "S(0)", MODEL_VOCABULARY, s->hidden, x)), NULL);
}
