/* What kernels of a program compute, and how long that takes by a cost profile. */
#include "ops/programs/told/work.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

/* A product of (m, k) and (k, n), `batch` times, `times` over. */
typedef struct sizes {
    double batch, m, n, k, times;
} sizes;

/* The local tensor of a step's operand. */
static const tsr_tensor *operand(const tsr_executable *x, const tsr_step *step, int index)
{
    return &tsr_form_of(x, step->operands[index])->local;
}

/* Elements of a local tensor. */
static double count(const tsr_tensor *t)
{
    double elements = t->ndim >= 0;
    for (int dim = 0; dim < t->ndim; dim++)
        elements *= (double)t->shape[dim];
    return elements;
}

/* The size of dim `from_end`, counted from the last (1) on. */
static double size_of(const tsr_tensor *t, int from_end)
{
    return t->ndim >= from_end ? (double)t->shape[t->ndim - from_end] : 1;
}

static double divide(double a, double b)
{
    return b > 0 ? a / b : 0;
}

/* A product whose dims are each in two of three tensors, but for those that number `batch`
 * products. */
static sizes size_by_counts(double a, double b, double out, double batch)
{
    return (sizes){batch, sqrt(divide(a * out, b * batch)), sqrt(divide(b * out, a * batch)),
                   sqrt(divide(a * b, out * batch)), 1};
}

/* linear and its gradients. */
static sizes size_linear(const tsr_executable *x, const tsr_step *step)
{
    return size_by_counts(count(operand(x, step, 0)), count(operand(x, step, 1)),
                          count(&tsr_form_of(x, step->results[0])->local), 1);
}

/* A product of a and b, as wide as operand 1 has columns. */
static sizes size_matmul(const tsr_executable *x, const tsr_step *step)
{
    const double m = size_of(operand(x, step, 0), 2), n = size_of(operand(x, step, 1), 1);
    const double out = count(&tsr_form_of(x, step->results[0])->local);
    return (sizes){divide(out, m * n), m, n, size_of(operand(x, step, 0), 1), 1};
}

/* Gradients of it, of dout, a and b. */
static sizes size_matmul_gradient(const tsr_executable *x, const tsr_step *step)
{
    const tsr_tensor *const dout = operand(x, step, 0);
    const double m = size_of(dout, 2), n = size_of(dout, 1);
    return (sizes){divide(count(dout), m * n), m, n, size_of(operand(x, step, 1), 1), 1};
}

/* Each row of operand 0 meets one of the matrices of operand 1. */
static sizes size_grouped(const tsr_executable *x, const tsr_step *step)
{
    const tsr_tensor *const rows = operand(x, step, 0), *const w = operand(x, step, 1);
    const double groups = size_of(w, 3);
    return (sizes){groups, divide(size_of(rows, 2), groups), size_of(w, 1), size_of(w, 2), 1};
}

static sizes size_grouped_gradient_w(const tsr_executable *x, const tsr_step *step)
{
    const tsr_tensor *const rows = operand(x, step, 0), *const dout = operand(x, step, 1);
    const double groups = size_of(&tsr_form_of(x, step->results[0])->local, 3);
    return (sizes){groups, divide(size_of(rows, 2), groups), size_of(dout, 1), size_of(rows, 1), 1};
}

/* The slots that this rank's experts can expect, if all experts have as many. Each goes through
 * gates, ups and down: in the gradient through gates and ups again, and through each of the three
 * twice. */
static sizes size_experts(const tsr_executable *x, const tsr_step *step)
{
    const bool is_gradient = strcmp(step->c.op->name, "experts_gradient") == 0;
    const tsr_tensor *const ids = operand(x, step, 1 + is_gradient), *const gate_up = operand(x, step, 2 + is_gradient),
                            *const down = operand(x, step, 3 + is_gradient);
    const double all = (double)tsr_layout_shape(tsr_form_of(x, step->operands[2 + is_gradient])->layout)[0],
                 made = size_of(down, 2);
    const double rows = divide(count(ids) * size_of(gate_up, 3), all), width = size_of(gate_up, 1);
    return (sizes){1, rows, size_of(down, 1), is_gradient ? 6 * width + 2 * made : 2 * width + made, 1};
}

/* A loss of x (.., k) and w (v, k). */
static sizes size_loss(const tsr_executable *x, const tsr_step *step)
{
    const bool is_gradient = strcmp(step->c.op->name, "linear_cross_entropy_gradient") == 0;
    const tsr_tensor *const rows = operand(x, step, is_gradient), *const w = operand(x, step, 1 + is_gradient);
    const double k = size_of(rows, 1);
    return (sizes){1, divide(count(rows), k), size_of(w, 2), k, is_gradient ? 3 : 1};
}

/* The letters of equations, A to z, by their distance from A. */
#define LETTERS ('z' - 'A' + 1)

/* The size of each letter of an equation, from the operands at `first` and after; the letters of
 * operand i and of the result in sets[i] and sets[count], by bits. */
static int read_equation(const tsr_executable *x, const tsr_step *step, int first, double size[LETTERS],
                         uint64_t sets[TSR_OP_MOST_OPERANDS + 1])
{
    int at = 0, dim = 0;
    for (const char *c = step->c.attributes[0].words; c && *c; c++) {
        const bool arrow = c[0] == '-' && c[1] == '>';
        if (*c == ',' || arrow) {
            at++;
            dim = 0;
        } else if ((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z')) {
            const int value = first + at < TSR_OP_MOST_OPERANDS ? step->operands[first + at] : TSR_NONE;
            if (value >= 0 && dim < tsr_form_of(x, value)->local.ndim && !strstr(step->c.attributes[0].words, "..."))
                size[*c - 'A'] = fmax(size[*c - 'A'], (double)tsr_form_of(x, value)->local.shape[dim]);
            sets[at] |= UINT64_C(1) << (*c - 'A');
            dim++;
        }
    }
    return at;
}

/* The product of the sizes of letters. */
static double multiply(const double size[LETTERS], uint64_t letters)
{
    double all = 1;
    for (int i = 0; i < LETTERS; i++)
        if (letters >> i & 1)
            all *= size[i];
    return all;
}

static sizes size_einsum(const tsr_executable *x, const tsr_step *step)
{
    double size[LETTERS] = {0};
    uint64_t sets[TSR_OP_MOST_OPERANDS + 1] = {0}, all = 0;
    const int operands = read_equation(x, step, strcmp(step->c.op->name, "einsum") != 0, size, sets);
    for (int i = 0; i < operands; i++)
        all |= sets[i];
    if (operands < 2)
        return (sizes){.batch = 0};
    const uint64_t a = sets[0], b = all & ~(sets[0] & ~sets[1]), out = sets[operands], each = a & b & out;
    return (sizes){multiply(size, each), multiply(size, a & ~b), multiply(size, b & ~a), multiply(size, a & b & ~each),
                   1};
}

static const struct {
    const char *op;
    sizes (*of)(const tsr_executable *x, const tsr_step *step);
} products[] = {
    {"linear", size_linear},
    {"linear_gradient_x", size_linear},
    {"linear_gradient_w", size_linear},
    {"linear_q8", size_linear},
    {"linear_q8_gradient_x", size_linear},
    {"matmul", size_matmul},
    {"matmul_gradient_a", size_matmul_gradient},
    {"matmul_gradient_b", size_matmul_gradient},
    {"einsum", size_einsum},
    {"einsum_gradient_a", size_einsum},
    {"einsum_gradient_b", size_einsum},
    {"einsum_gradient_c", size_einsum},
    {"einsum_gradient_d", size_einsum},
    {"grouped_matmul", size_grouped},
    {"grouped_matmul_gradient_x", size_grouped},
    {"grouped_matmul_gradient_w", size_grouped_gradient_w},
    {"experts", size_experts},
    {"experts_gradient", size_experts},
    {"linear_cross_entropy", size_loss},
    {"linear_cross_entropy_gradient", size_loss},
};

/* A count that was computed in f64, INT64_MAX at most. */
static int64_t round_count(double count)
{
    return count < 0x1p63 ? (int64_t)(count + 0.5) : INT64_MAX;
}

static int64_t least_of(const sizes *s)
{
    const double least = fmin(s->m, fmin(s->n, s->k));
    return least < 1 ? 1 : round_count(least);
}

/* The value of an attribute that is an integer; 0 without it. */
static int64_t find_integer(const tsr_step *step, const char *name)
{
    for (const tsr_attribute *a = step->c.attributes; a->name; a++)
        if (strcmp(a->name, name) == 0)
            return a->integer;
    return 0;
}

/* The keys that all queries see together. Causal queries are the last of as many as there are keys;
 * a query sees those up to its own, or the last `window` of them. */
static double count_seen(const tsr_step *step, double queries, double keys)
{
    const double window = (double)find_integer(step, "window"), most = window > 0 && window < keys ? window : keys;
    if (!find_integer(step, "causal"))
        return queries * keys;
    const double some = fmin(queries, keys), full = fmin(some, keys - most + 1), rest = some - full;
    return full * most + rest * (keys - full) - rest * (rest - 1) / 2;
}

/* Each query meets each key that it sees twice, in the gradient five times. */
static tsr_kernel_work count_attention(const tsr_executable *x, const tsr_step *step, bool is_gradient)
{
    const tsr_tensor *const q = operand(x, step, is_gradient), *const k = operand(x, step, 1 + is_gradient);
    const double queries = size_of(q, 2), seen = count_seen(step, queries, size_of(k, 2));
    return (tsr_kernel_work){
        .product = TSR_PRODUCT_ATTEND,
        .flops = round_count((is_gradient ? 10 : 4) * divide(count(q), queries) * seen),
        .least = queries < 1 ? 1 : (int64_t)queries,
    };
}

bool tsr_is_product(const tsr_op *op)
{
    bool found = strcmp(op->name, "attention") == 0 || strcmp(op->name, "attention_gradient") == 0;
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++)
        found |= strcmp(op->name, products[i].op) == 0;
    return found;
}

tsr_kernel_work tsr_count_work(const tsr_executable *x, const tsr_step *step)
{
    const char *const name = step->c.op->name;
    const bool is_gradient = strcmp(name, "attention_gradient") == 0;
    if (is_gradient || strcmp(name, "attention") == 0)
        return count_attention(x, step, is_gradient);
    for (size_t i = 0; i < sizeof products / sizeof products[0]; i++) {
        if (strcmp(name, products[i].op) != 0)
            continue;
        const sizes s = products[i].of(x, step);
        return (tsr_kernel_work){.product = TSR_PRODUCT_MULTIPLY,
                                 .flops = round_count(2 * s.times * s.batch * s.m * s.n * s.k),
                                 .least = least_of(&s)};
    }
    return (tsr_kernel_work){.least = 1};
}

/* Bytes that decide which cache has a kernel's operands. What the step before has written is near;
 * a parameter or state was read in the run before, and all others, and the workspace, since. */
static double count_reach(const tsr_executable *x, const tsr_step *step, int64_t touched)
{
    bool reads_bound = false;
    double bytes = (double)x->workspace_bytes;
    for (int i = 0; i < step->operand_count; i++)
        if (step->operands[i] >= 0)
            reads_bound |= x->values[x->values[step->operands[i]].base].place == TSR_PLACE_BOUND;
    for (size_t i = 0; reads_bound && i < x->bound_count; i++)
        bytes += (double)tsr_form_of(x, x->bound[i])->bytes;
    return reads_bound && bytes > (double)touched ? bytes : (double)touched;
}

double tsr_kernel_seconds(const tsr_executable *x, const tsr_step *step, const tsr_kernel_work *work, int64_t touched)
{
    const tsr_profile *const profile = tsr_context_profile(x->context);
    const double bytes = (double)touched, flops = (double)work->flops;
    if (profile && work->flops == 0)
        return tsr_profile_call_seconds(profile) + tsr_profile_pass_seconds(profile, bytes);
    if (profile)
        return tsr_profile_call_seconds(profile) + tsr_profile_product_seconds(profile, work->product, work->least,
                                                                               count_reach(x, step, touched), bytes,
                                                                               flops);
    return fmax(bytes / tsr_context_links(x->context).inside.bandwidth, flops / TSR_PROFILE_FLOPS);
}

double tsr_copy_seconds(const tsr_executable *x, int64_t bytes)
{
    const tsr_profile *const profile = tsr_context_profile(x->context);
    const double touched = 2 * (double)bytes;
    if (!profile || !tsr_profile_has_tables(profile))
        return touched / tsr_context_links(x->context).inside.bandwidth;
    return tsr_profile_work_seconds(profile, TSR_WORK_KEEP, TSR_RUN_WHOLE, touched, (double)bytes);
}
