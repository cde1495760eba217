#include "bench/program/models.h"

#include <tessera/layout.h>

#include <math.h>
#include <stdio.h>
#include <string.h>

static const char *const names[MODEL_GIVEN] = {
    [MODEL_X] = "x",
    [MODEL_GATE] = "gate",
    [MODEL_UP] = "up",
    [MODEL_DOWN] = "down",
    [MODEL_NORM] = "norm",
    [MODEL_WQ] = "q",
    [MODEL_WK] = "k",
    [MODEL_WV] = "v",
    [MODEL_WO] = "o",
    [MODEL_MLP_NORM] = "mlp_norm",
    [MODEL_POSITIONS] = "positions",
};

static int64_t head_dim(const model_sizes *s)
{
    return s->hidden / s->heads;
}

int64_t model_rows(const model_sizes *s, int given)
{
    switch (given) {
    case MODEL_X:
        return s->sequences * s->tokens;
    case MODEL_GATE:
    case MODEL_UP:
        return s->intermediate;
    case MODEL_WK:
    case MODEL_WV:
        return s->kv_heads * head_dim(s);
    case MODEL_NORM:
    case MODEL_MLP_NORM:
        return 1;
    default:
        return s->hidden;
    }
}

int64_t model_columns(const model_sizes *s, int given)
{
    return given == MODEL_DOWN ? s->intermediate : s->hidden;
}

/* The bits of a number without order: SplitMix64's last step. */
static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ x >> 27) * UINT64_C(0x94D049BB133111EB);
    return x ^ x >> 31;
}

double model_value(const model_sizes *s, int given, int64_t index)
{
    const uint64_t mixed = mix(((uint64_t)index * 16 + (uint64_t)given + 1) * UINT64_C(0x9E3779B97F4A7C15));
    const double value = (double)(int64_t)(mixed >> 41) / (1 << 22) - 1;
    if (given == MODEL_X || given == MODEL_NORM || given == MODEL_MLP_NORM)
        return value;
    return ldexp(value, -(int)lround(log2((double)model_columns(s, given)) / 2));
}

void model_placements(const model *m, const char *others, const char *cut, char text[256])
{
    size_t length = 0;
    const int ndim = tsr_mesh_ndim(m->mesh);
    for (int k = 0; k < ndim; k++)
        length += (size_t)snprintf(text + length, 256 - length, "%s%s", k ? "," : "", k + 1 < ndim ? others : cut);
}

static void give_input(model *m, int given, tsr_dtype dtype, int ndim, const int64_t *shape, const char *others)
{
    char placements[256];
    model_placements(m, others, "R", placements);
    m->given[given] = tsr_input(m->program, names[given], m->mesh, dtype, ndim, shape, placements);
}

/* A weight, a matrix or, with one row, a vector. */
static void give_weight(model *m, int given, const char *cut)
{
    char placements[256];
    tsr_layout *layout = NULL;
    const int64_t rows = model_rows(&m->sizes, given), shape[] = {rows, model_columns(&m->sizes, given)};
    model_placements(m, "R", cut, placements);
    if (tsr_layout_parse(m->mesh, placements, rows > 1 ? 2 : 1, rows > 1 ? shape : shape + 1, TSR_F32, &layout) !=
        TSR_OK)
        layout = NULL;
    m->given[given] = tsr_parameter(m->program, names[given], layout);
    tsr_layout_destroy(layout);
}

/* Records an op, and notes it. */
static tsr_value apply(model *m, const char *op, bool computes, size_t count, const tsr_attribute *attributes,
                       const tsr_value operands[3])
{
    model_call *const call = &m->calls[m->call_count++];
    *call = (model_call){.op = op, .count = count, .computes = computes};
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        call->operands[i] = i < 3 ? operands[i] : TSR_NONE;
    for (size_t i = 0; i < count; i++)
        call->attributes[i] = attributes[i];
    call->result = tsr_program_apply(m->program, op, count, attributes, call->operands, NULL);
    return call->result;
}

#define COMPUTE(m, op, a, b, c) apply(m, op, true, 0, NULL, (const tsr_value[]){a, b, c})

static tsr_value linear(model *m, tsr_value x, int weight)
{
    return COMPUTE(m, "linear", x, m->given[weight], TSR_NONE);
}

static tsr_value all_reduce(model *m, tsr_value x)
{
    return apply(m, "all_reduce", false, 0, NULL, (const tsr_value[]){x, TSR_NONE, TSR_NONE});
}

static void give_mlp(model *m)
{
    const int64_t shape[] = {m->sizes.sequences, m->sizes.tokens, m->sizes.hidden};
    for (int i = 0; i < MODEL_GIVEN; i++)
        m->given[i] = TSR_NONE;
    m->call_count = 0;
    give_input(m, MODEL_X, TSR_F32, 3, shape, "S(0)");
    give_weight(m, MODEL_GATE, "S(0)");
    give_weight(m, MODEL_UP, "S(0)");
    give_weight(m, MODEL_DOWN, "S(1)");
}

static tsr_value mlp(model *m, tsr_value x)
{
    const tsr_value gate = linear(m, x, MODEL_GATE), up = linear(m, x, MODEL_UP);
    return all_reduce(m, linear(m, COMPUTE(m, "silu_mul", gate, up, TSR_NONE), MODEL_DOWN));
}

void model_record_mlp(model *m)
{
    give_mlp(m);
    tsr_output(m->program, "y", mlp(m, m->given[MODEL_X]), NULL);
}

/* Weights of attention are cut between heads of keys. */
static void give_attention(model *m)
{
    char cut[64];
    const model_sizes *const s = &m->sizes;
    const int64_t dim = head_dim(s), group = s->heads / s->kv_heads * dim;
    give_input(m, MODEL_POSITIONS, TSR_I64, 1, &s->tokens, "R");
    give_weight(m, MODEL_NORM, "R");
    give_weight(m, MODEL_MLP_NORM, "R");
    snprintf(cut, sizeof cut, "S(0;unit=%lld)", (long long)dim);
    give_weight(m, MODEL_WK, cut);
    give_weight(m, MODEL_WV, cut);
    snprintf(cut, sizeof cut, "S(0;unit=%lld)", (long long)group);
    give_weight(m, MODEL_WQ, cut);
    snprintf(cut, sizeof cut, "S(1;unit=%lld)", (long long)group);
    give_weight(m, MODEL_WO, cut);
}

static tsr_value norm(model *m, tsr_value x, int weight)
{
    const tsr_attribute epsilon = tsr_attribute_float("epsilon", MODEL_EPSILON);
    return apply(m, "rms_norm", true, 1, &epsilon, (const tsr_value[]){x, m->given[weight], TSR_NONE});
}

static tsr_value reshape(model *m, tsr_value x, int ndim, const int64_t *shape)
{
    const tsr_attribute to = tsr_attribute_ints("shape", ndim, shape);
    return apply(m, "reshape", false, 1, &to, (const tsr_value[]){x, TSR_NONE, TSR_NONE});
}

/* Swaps tokens and heads. */
static tsr_value swap(model *m, tsr_value x)
{
    const tsr_attribute dims[] = {tsr_attribute_int("dim0", 1), tsr_attribute_int("dim1", 2)};
    return apply(m, "transpose", false, 2, dims, (const tsr_value[]){x, TSR_NONE, TSR_NONE});
}

/* Queries, keys or values by head. */
static tsr_value heads_of(model *m, tsr_value x, int weight, int64_t heads)
{
    const model_sizes *const s = &m->sizes;
    const int64_t shape[] = {s->sequences, s->tokens, heads, head_dim(s)};
    const tsr_attribute base = tsr_attribute_float("base", MODEL_ROPE_BASE);
    tsr_value y = reshape(m, linear(m, x, weight), 4, shape);
    if (weight != MODEL_WV)
        y = apply(m, "rope", true, 1, &base, (const tsr_value[]){y, m->given[MODEL_POSITIONS], TSR_NONE});
    return swap(m, y);
}

static tsr_value attention(model *m, tsr_value x)
{
    const model_sizes *const s = &m->sizes;
    const int64_t shape[] = {s->sequences, s->tokens, s->hidden};
    const tsr_attribute attributes[] = {tsr_attribute_int("causal", 1),
                                        tsr_attribute_float("scale", 1 / sqrt((double)head_dim(s)))};
    const tsr_value q = heads_of(m, x, MODEL_WQ, s->heads), k = heads_of(m, x, MODEL_WK, s->kv_heads),
                    v = heads_of(m, x, MODEL_WV, s->kv_heads);
    const tsr_value mixed = apply(m, "attention", true, 2, attributes, (const tsr_value[]){q, k, v});
    return all_reduce(m, linear(m, reshape(m, swap(m, mixed), 3, shape), MODEL_WO));
}

void model_record_block(model *m)
{
    give_mlp(m);
    give_attention(m);
    const tsr_value x = m->given[MODEL_X];
    const tsr_value middle = COMPUTE(m, "add", x, attention(m, norm(m, x, MODEL_NORM)), TSR_NONE);
    tsr_output(m->program, "y", COMPUTE(m, "add", middle, mlp(m, norm(m, middle, MODEL_MLP_NORM)), TSR_NONE), NULL);
}
