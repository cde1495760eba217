#include "bench/ops/cases.h"

#include <math.h>
#include <string.h>

double ops_bench_value(int operand, int64_t index)
{
    return (double)((index * 37 + operand * 11) % 101 - 50) / 32;
}

int64_t ops_bench_id(int64_t index, int64_t below)
{
    return index * 7919 % below;
}

static double add(const ops_bench_shapes *shapes, int64_t i)
{
    (void)shapes;
    return ops_bench_value(0, i) + ops_bench_value(1, i);
}

static double silu_mul(const ops_bench_shapes *shapes, int64_t i)
{
    const double gate = ops_bench_value(0, i);
    (void)shapes;
    return gate / (1 + exp(-gate)) * ops_bench_value(1, i);
}

static double gelu(const ops_bench_shapes *shapes, int64_t i)
{
    const double x = ops_bench_value(0, i);
    (void)shapes;
    return x * 0.5 * erfc(-x / sqrt(2.0));
}

static double gelu_tanh(const ops_bench_shapes *shapes, int64_t i)
{
    const double x = ops_bench_value(0, i);
    (void)shapes;
    return 0.5 * x * (1 + tanh(sqrt(2 / 3.14159265358979323846) * (x + 0.044715 * x * x * x)));
}

static double tangent(const ops_bench_shapes *shapes, int64_t i)
{
    (void)shapes;
    return tanh(ops_bench_value(0, i));
}

static double unchanged(const ops_bench_shapes *shapes, int64_t i)
{
    (void)shapes;
    return ops_bench_value(0, i);
}

/* The first element of the row of element i, and the length of a row. */
static int64_t row_of(const ops_bench_shapes *shapes, int64_t i, int64_t *length)
{
    *length = shapes->shape[0][shapes->ndim[0] - 1];
    return i / *length * *length;
}

static double softmax(const ops_bench_shapes *shapes, int64_t i)
{
    int64_t length;
    const int64_t begin = row_of(shapes, i, &length);
    double sum = 0;
    for (int64_t j = 0; j < length; j++)
        sum += exp(ops_bench_value(0, begin + j));
    return exp(ops_bench_value(0, i)) / sum;
}

static double rms_norm(const ops_bench_shapes *shapes, int64_t i)
{
    int64_t length;
    const int64_t begin = row_of(shapes, i, &length);
    double sum = 0;
    for (int64_t j = 0; j < length; j++)
        sum += ops_bench_value(0, begin + j) * ops_bench_value(0, begin + j);
    return ops_bench_value(0, i) / sqrt(sum / (double)length + 1e-5) * ops_bench_value(1, i - begin);
}

static double layer_norm(const ops_bench_shapes *shapes, int64_t i)
{
    int64_t length;
    const int64_t begin = row_of(shapes, i, &length);
    double sum = 0, squares = 0;
    for (int64_t j = 0; j < length; j++)
        sum += ops_bench_value(0, begin + j);
    const double mean = sum / (double)length;
    for (int64_t j = 0; j < length; j++)
        squares += pow(ops_bench_value(0, begin + j) - mean, 2);
    return (ops_bench_value(0, i) - mean) / sqrt(squares / (double)length + 1e-5) * ops_bench_value(1, i - begin) +
           ops_bench_value(2, i - begin);
}

/* Weights of a query before they are divided by their sum; one that has as many queries as keys is
 * causal, one with a single query attends to all keys. */
typedef struct query {
    int64_t queries, keys, dim;
    int64_t row, first_key; /* rows of q, and of k and v */
    int64_t seen;           /* keys that it attends to */
    double scale, sum;
} query;

static double weight_of(const query *q, int64_t key)
{
    double score = 0;
    for (int64_t d = 0; d < q->dim; d++)
        score += ops_bench_value(0, q->row * q->dim + d) * ops_bench_value(1, (q->first_key + key) * q->dim + d);
    return exp(score * q->scale);
}

static query query_of(const ops_bench_shapes *shapes, int64_t row)
{
    query q = {.queries = shapes->shape[0][1], .keys = shapes->shape[1][1], .dim = shapes->shape[0][2], .row = row};
    q.first_key = row / q.queries * q.keys;
    q.seen = q.keys - q.queries + row % q.queries + 1;
    q.scale = 1 / sqrt((double)q.dim);
    for (int64_t key = 0; key < q.seen; key++)
        q.sum += weight_of(&q, key);
    return q;
}

static double attention(const ops_bench_shapes *shapes, int64_t i)
{
    const query q = query_of(shapes, i / shapes->shape[0][2]);
    double value = 0;
    for (int64_t key = 0; key < q.seen; key++)
        value += weight_of(&q, key) * ops_bench_value(2, (q.first_key + key) * q.dim + i % q.dim);
    return value / q.sum;
}

static double dout(int64_t i)
{
    return ops_bench_value(BENCH_OPERANDS, i);
}

/* The gradient of a query's weight of a key, and what all of them have in common. */
static double dweight(const query *q, int64_t key)
{
    double sum = 0;
    for (int64_t d = 0; d < q->dim; d++)
        sum += dout(q->row * q->dim + d) * ops_bench_value(2, (q->first_key + key) * q->dim + d);
    return sum;
}

static double mean_dweight(const query *q)
{
    double sum = 0;
    for (int64_t key = 0; key < q->seen; key++)
        sum += weight_of(q, key) / q->sum * dweight(q, key);
    return sum;
}

static double dscore(const query *q, int64_t key, double mean)
{
    return weight_of(q, key) / q->sum * (dweight(q, key) - mean) * q->scale;
}

static double attention_dq(const ops_bench_shapes *shapes, int64_t i)
{
    const query q = query_of(shapes, i / shapes->shape[0][2]);
    const double mean = mean_dweight(&q);
    double sum = 0;
    for (int64_t key = 0; key < q.seen; key++)
        sum += dscore(&q, key, mean) * ops_bench_value(1, (q.first_key + key) * q.dim + i % q.dim);
    return sum;
}

/* Gradients of causal q, k and v: those of a key come from the queries that see it, from its own
 * position on. */
static double attention_gradient(const ops_bench_shapes *shapes, int operand, int64_t i)
{
    const int64_t dim = shapes->shape[0][2], tokens = shapes->shape[0][1], first = i / dim;
    double sum = 0;
    if (operand == 0)
        return attention_dq(shapes, i);
    for (int64_t row = first; row < first / tokens * tokens + tokens; row++) {
        const query q = query_of(shapes, row);
        if (operand == 1)
            sum += dscore(&q, first % tokens, mean_dweight(&q)) * ops_bench_value(0, row * dim + i % dim);
        else
            sum += weight_of(&q, first % tokens) / q.sum * dout(row * dim + i % dim);
    }
    return sum;
}

static double sum_of_exps(int64_t begin, int64_t length)
{
    double sum = 0;
    for (int64_t j = 0; j < length; j++)
        sum += exp(ops_bench_value(0, begin + j));
    return sum;
}

static double cross_entropy(const ops_bench_shapes *shapes, int64_t i)
{
    const int64_t classes = shapes->shape[0][1];
    return log(sum_of_exps(i * classes, classes)) - ops_bench_value(0, i * classes + ops_bench_id(i, classes));
}

static double cross_entropy_gradient(const ops_bench_shapes *shapes, int operand, int64_t i)
{
    const int64_t classes = shapes->shape[0][1], row = i / classes;
    (void)operand;
    const double share = exp(ops_bench_value(0, i)) / sum_of_exps(row * classes, classes);
    return dout(row) * (share - (i % classes == ops_bench_id(row, classes)));
}

#define ROWS   4096
#define LENGTH 16384
#define MATRIX                                                                                                         \
    {                                                                                                                  \
        2, {ROWS, LENGTH}, TSR_F32, 0, 0                                                                               \
    }
#define VECTOR                                                                                                         \
    {                                                                                                                  \
        1, {LENGTH}, TSR_F32, -1, 0                                                                                    \
    }

/* Products of causal attention: two of the triangle forward, five backward, of which each
 * multiplies and adds half of what there is. */
#define ATTENTION(tokens)                                                                                              \
    {                                                                                                                  \
        .op = "attention", .name = "attention",                                                                        \
        .attributes = {{.name = "causal", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},                                   \
        .operands = {HEADS(tokens), HEADS(tokens), HEADS(tokens)}, .operand_count = 3, .form = BENCH_HEADS,            \
        .products = 2, .backward_products = 5, .oracle = attention, .gradient = attention_gradient, .last_rows = 8,    \
        .tolerance = 1e-4                                                                                              \
    }
#define HEADS(tokens)                                                                                                  \
    {                                                                                                                  \
        3, {8, tokens, 64}, TSR_F32, 0, 0                                                                              \
    }

/* Updates of optimizers, in place. What they take from rate and betas leaves all elements as they
 * are, so that they can be compared after any number of calls. */
#define NUMBER(value)                                                                                                  \
    {                                                                                                                  \
        0, {0}, TSR_F32, -1, 0, true, value                                                                            \
    }
#define STATE                                                                                                          \
    {                                                                                                                  \
        2, {1024, LENGTH}, TSR_F32, 0, 0                                                                               \
    }
#define SQUARES                                                                                                        \
    {                                                                                                                  \
        2, {1024, LENGTH}, TSR_F32, 0, 0, true, 1                                                                      \
    }
#define FLOAT(attribute, value)                                                                                        \
    {                                                                                                                  \
        .name = attribute, .kind = TSR_ATTRIBUTE_FLOAT, .number = (value)                                              \
    }
#define UPDATE(row, count)                                                                                             \
    .op = row, .name = row, .operand_count = count, .form = BENCH_ELEMENTS, .oracle = unchanged, .updates = true

/* f32 results of one or two roundings, and of functions within 2 units in the last place. */
#define ROUNDED (1.0 / (1 << 22))
/* Of sums of thousands of terms. */
#define SUMMED (1.0 / (1 << 17))

const ops_bench_case ops_bench_cases[] = {
    {.op = "add",
     .name = "add 64 bytes",
     .operands = {{1, {16}, TSR_F32, 0, 0}, {1, {16}, TSR_F32, 0, 0}},
     .operand_count = 2,
     .oracle = add,
     .tolerance = ROUNDED},
    {.op = "add",
     .name = "add",
     .operands = {MATRIX, MATRIX},
     .operand_count = 2,
     .form = BENCH_ELEMENTS,
     .oracle = add,
     .tolerance = ROUNDED},
    {.op = "silu_mul",
     .name = "silu_mul",
     .operands = {MATRIX, MATRIX},
     .operand_count = 2,
     .form = BENCH_ELEMENTS,
     .oracle = silu_mul,
     .tolerance = ROUNDED},
    {.op = "gelu",
     .name = "gelu",
     .operands = {MATRIX},
     .operand_count = 1,
     .form = BENCH_ELEMENTS,
     .oracle = gelu,
     .tolerance = ROUNDED},
    {.op = "gelu",
     .name = "gelu tanh",
     .attributes = {{.name = "approximate", .kind = TSR_ATTRIBUTE_WORD, .words = "tanh"}},
     .operands = {MATRIX},
     .operand_count = 1,
     .form = BENCH_ELEMENTS,
     .oracle = gelu_tanh,
     .tolerance = ROUNDED},
    {.op = "tanh",
     .name = "tanh",
     .operands = {MATRIX},
     .operand_count = 1,
     .form = BENCH_ELEMENTS,
     .oracle = tangent,
     .tolerance = ROUNDED},
    {.op = "rms_norm",
     .name = "rms_norm",
     .operands = {MATRIX, VECTOR},
     .operand_count = 2,
     .form = BENCH_ROWS,
     .oracle = rms_norm,
     .tolerance = SUMMED},
    {.op = "layer_norm",
     .name = "layer_norm",
     .operands = {MATRIX, VECTOR, VECTOR},
     .operand_count = 3,
     .form = BENCH_ROWS,
     .oracle = layer_norm,
     .tolerance = SUMMED},
    {.op = "softmax",
     .name = "softmax",
     .operands = {MATRIX},
     .operand_count = 1,
     .form = BENCH_ROWS,
     .oracle = softmax,
     .tolerance = SUMMED},
    ATTENTION(1024),
    ATTENTION(4096),
    /* A step of decoding: its product with every key, and with every value. */
    {.op = "attention",
     .name = "decode attention",
     .operands = {HEADS(1), HEADS(16384), HEADS(16384)},
     .operand_count = 3,
     .products = 4,
     .oracle = attention,
     .tolerance = 1e-4},
    {.op = "cross_entropy",
     .name = "cross_entropy",
     .attributes = {{.name = "reduction", .kind = TSR_ATTRIBUTE_WORD, .words = "none"}},
     .operands = {{2, {1024, 50257}, TSR_F32, 1, 0}, {1, {1024}, TSR_I64, -1, 50257}},
     .operand_count = 2,
     .form = BENCH_CLASSES,
     .oracle = cross_entropy,
     .gradient = cross_entropy_gradient,
     .tolerance = SUMMED},
    {UPDATE("sgd_update", 3), .operands = {STATE, STATE, NUMBER(0)}},
    {UPDATE("momentum_update", 4), .attributes = {FLOAT("momentum", 1), FLOAT("dampening", 1)},
     .operands = {STATE, STATE, STATE, NUMBER(0)}},
    {UPDATE("adamw_update", 7), .attributes = {FLOAT("beta1", 1), FLOAT("beta2", 1)},
     .operands = {STATE, STATE, STATE, SQUARES, NUMBER(1), NUMBER(0), NUMBER(1)}},
    {UPDATE("lion_update", 5), .attributes = {FLOAT("beta1", 1), FLOAT("beta2", 1)},
     .operands = {STATE, STATE, STATE, NUMBER(1), NUMBER(0)}},
    {.op = NULL},
};

bool ops_bench_fits(const ops_bench_case *c, int ndim)
{
    switch (c->form) {
    case BENCH_ELEMENTS:
        return ndim >= 1;
    case BENCH_ROWS:
        return ndim >= 2;
    case BENCH_HEADS:
        return ndim == 3;
    case BENCH_CLASSES:
        return ndim == 2;
    default:
        return false;
    }
}

void ops_bench_reshape(ops_bench_case *c, int ndim, const int64_t *shape)
{
    for (int i = 0; i < c->operand_count; i++) {
        ops_bench_operand *const o = &c->operands[i];
        if (o->ndim == 0)
            continue;
        if (i == 0 || c->form == BENCH_ELEMENTS || c->form == BENCH_HEADS) {
            o->ndim = ndim;
            memcpy(o->shape, shape, (size_t)ndim * sizeof *shape);
        } else {
            o->shape[0] = c->form == BENCH_ROWS ? shape[ndim - 1] : shape[0];
        }
        if (o->below)
            o->below = shape[ndim - 1];
    }
}

double ops_bench_flops(const ops_bench_case *c, bool backward)
{
    const int64_t *const q = c->operands[0].shape, *const k = c->operands[1].shape;
    const double products = backward ? c->backward_products : c->products;
    return products > 0 ? products * (double)q[0] * (double)q[1] * (double)k[1] * (double)q[2] : 0;
}
