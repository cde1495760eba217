#include "bench/ops/cases.h"

#include <math.h>

double ops_bench_value(int operand, int64_t index)
{
    return (double)((index * 37 + operand * 11) % 101 - 50) / 32;
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

/* The row of element i of a matrix, and its length. */
static int64_t row_of(const ops_bench_shapes *shapes, int64_t i, int64_t *length)
{
    *length = shapes->shape[0][1];
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

/* Causal attention of (heads, tokens, dim). */
static double attention(const ops_bench_shapes *shapes, int64_t i)
{
    const int64_t tokens = shapes->shape[0][1], dim = shapes->shape[0][2];
    const int64_t row = i / dim, head = row / tokens, query = row % tokens;
    double sum = 0, value = 0;
    for (int64_t key = 0; key <= query; key++) {
        double score = 0;
        for (int64_t d = 0; d < dim; d++)
            score += ops_bench_value(0, row * dim + d) * ops_bench_value(1, (head * tokens + key) * dim + d);
        const double weight = exp(score / sqrt((double)dim));
        sum += weight;
        value += weight * ops_bench_value(2, (head * tokens + key) * dim + i % dim);
    }
    return value / sum;
}

static double cross_entropy(const ops_bench_shapes *shapes, int64_t i)
{
    const int64_t classes = shapes->shape[0][1];
    double sum = 0;
    for (int64_t j = 0; j < classes; j++)
        sum += exp(ops_bench_value(0, i * classes + j));
    return log(sum) - ops_bench_value(0, i * classes + i * 7919 % classes);
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

/* Products of causal attention: two of the triangle forward, five backward. */
#define ATTENTION(tokens)                                                                                              \
    {                                                                                                                  \
        .op = "attention", .name = "attention",                                                                        \
        .attributes = {{.name = "causal", .kind = TSR_ATTRIBUTE_INT, .integer = 1}},                                   \
        .operands = {HEADS(tokens), HEADS(tokens), HEADS(tokens)}, .operand_count = 3, .backward = true,               \
        .flops = 2 * 8.0 * tokens * tokens * 64, .backward_flops = 5 * 8.0 * tokens * tokens * 64,                     \
        .oracle = attention, .tolerance = 1e-4                                                                         \
    }
#define HEADS(tokens)                                                                                                  \
    {                                                                                                                  \
        3, {8, tokens, 64}, TSR_F32, 0, 0                                                                              \
    }

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
    {.op = "add", .name = "add", .operands = {MATRIX, MATRIX}, .operand_count = 2, .oracle = add, .tolerance = ROUNDED},
    {.op = "silu_mul",
     .name = "silu_mul",
     .operands = {MATRIX, MATRIX},
     .operand_count = 2,
     .oracle = silu_mul,
     .tolerance = ROUNDED},
    {.op = "gelu", .name = "gelu", .operands = {MATRIX}, .operand_count = 1, .oracle = gelu, .tolerance = ROUNDED},
    {.op = "gelu",
     .name = "gelu tanh",
     .attributes = {{.name = "approximate", .kind = TSR_ATTRIBUTE_WORD, .words = "tanh"}},
     .operands = {MATRIX},
     .operand_count = 1,
     .oracle = gelu_tanh,
     .tolerance = ROUNDED},
    {.op = "tanh", .name = "tanh", .operands = {MATRIX}, .operand_count = 1, .oracle = tangent, .tolerance = ROUNDED},
    {.op = "rms_norm",
     .name = "rms_norm",
     .operands = {MATRIX, VECTOR},
     .operand_count = 2,
     .oracle = rms_norm,
     .tolerance = SUMMED},
    {.op = "layer_norm",
     .name = "layer_norm",
     .operands = {MATRIX, VECTOR, VECTOR},
     .operand_count = 3,
     .oracle = layer_norm,
     .tolerance = SUMMED},
    {.op = "softmax",
     .name = "softmax",
     .operands = {MATRIX},
     .operand_count = 1,
     .oracle = softmax,
     .tolerance = SUMMED},
    ATTENTION(1024),
    ATTENTION(4096),
    {.op = "cross_entropy",
     .name = "cross_entropy",
     .attributes = {{.name = "reduction", .kind = TSR_ATTRIBUTE_WORD, .words = "none"}},
     .operands = {{2, {1024, 50257}, TSR_F32, 1, 0}, {1, {1024}, TSR_I64, -1, 50257}},
     .operand_count = 2,
     .backward = true,
     .oracle = cross_entropy,
     .tolerance = SUMMED},
    {.op = NULL},
};
