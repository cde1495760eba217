/* Each typed function is its row: the same bits and layouts as tsr_op_call(), tsr_op_call_into()
 * and tsr_op_backward() with the row's name and attributes. */
#include "attribute_values.h"
#include "layers.h"
#include "wholes.h"

#include <tessera/sys/status.h>

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#define MOST 64

/* Operands: x, y, r (Replicate) and p (Partial) are 4x4 f32; m is a mask of that shape, and i has
 * ids below 4, and k numbers from 1; w has 4 elements, and j 4 ids. */
typedef struct given {
    tsr_dtensor *x, *y, *r, *p, *m, *i, *k, *w, *j;
} given;

typedef tsr_status call_form(const given *g, tsr_dtensor **out);
typedef tsr_status into_form(const given *g, tsr_dtensor *out);
typedef tsr_status backward_form(const given *g, const tsr_dtensor *dout, tsr_dtensor **d);

typedef struct typed_row {
    const char *op, *operands; /* a letter for each operand */
    call_form *call;
    into_form *into;
    backward_form *backward;
    tsr_attribute attributes[5];
} typed_row;

static const int64_t last[] = {1}, both[] = {0, 1}, turned[] = {1, 0}, one_dim[] = {16}, longer[] = {3, 4, 4};

#define UNWRAP(...) __VA_ARGS__

/* Ops with a gradient: the function's name, the row's, the operands, what the functions are given,
 * where gradients go, and the row's attributes. */
#define X1 (&d[0])
#define X2 (&d[0], &d[1])
#define SMOOTH(X)                                                                                                      \
    X(add, "add", "xy", (g->x, g->y), X2, {NULL})                                                                      \
    X(sub, "sub", "xy", (g->x, g->y), X2, {NULL})                                                                      \
    X(mul, "mul", "xw", (g->x, g->w), X2, {NULL})                                                                      \
    X(div, "div", "xy", (g->x, g->y), X2, {NULL})                                                                      \
    X(pow, "pow", "xy", (g->x, g->y), X2, {NULL})                                                                      \
    X(maximum, "maximum", "xy", (g->x, g->y), X2, {NULL})                                                              \
    X(minimum, "minimum", "xy", (g->x, g->y), X2, {NULL})                                                              \
    X(silu_mul, "silu_mul", "xy", (g->x, g->y), X2, {NULL})                                                            \
    X(neg, "neg", "x", (g->x), X1, {NULL})                                                                             \
    X(abs, "abs", "x", (g->x), X1, {NULL})                                                                             \
    X(exp, "exp", "x", (g->x), X1, {NULL})                                                                             \
    X(ln, "log", "x", (g->x), X1, {NULL})                                                                              \
    X(sqrt, "sqrt", "x", (g->x), X1, {NULL})                                                                           \
    X(rsqrt, "rsqrt", "x", (g->x), X1, {NULL})                                                                         \
    X(tanh, "tanh", "x", (g->x), X1, {NULL})                                                                           \
    X(sigmoid, "sigmoid", "x", (g->x), X1, {NULL})                                                                     \
    X(silu, "silu", "x", (g->x), X1, {NULL})                                                                           \
    X(relu, "relu", "x", (g->x), X1, {NULL})                                                                           \
    X(gelu, "gelu", "x", (g->x, 1), X1, WORD("approximate", "tanh"))                                                   \
    X(scale, "scale", "x", (g->x, 0.75), X1, FLOAT("factor", 0.75))                                                    \
    X(clamp, "clamp", "x", (g->x, 1, 2), X1, FLOAT("max", 2), FLOAT("min", 1))                                         \
    X(reciprocal, "reciprocal", "x", (g->x), X1, {NULL})                                                               \
    X(square, "square", "x", (g->x), X1, {NULL})                                                                       \
    X(expm1, "expm1", "x", (g->x), X1, {NULL})                                                                         \
    X(log1p, "log1p", "x", (g->x), X1, {NULL})                                                                         \
    X(softplus, "softplus", "x", (g->x), X1, {NULL})                                                                   \
    X(leaky_relu, "leaky_relu", "x", (g->x, 0.125), X1, FLOAT("slope", 0.125))                                         \
    X(elu, "elu", "x", (g->x, 0.5), X1, FLOAT("alpha", 0.5))                                                           \
    X(masked_fill, "masked_fill", "xm", (g->x, g->m, 7), X1, FLOAT("value", 7))                                        \
    X(where, "where", "mxy", (g->m, g->x, g->y), (&d[1], &d[2]), {NULL})                                               \
    X(sum, "sum", "x", (g->x, 1, last, 1), X1, INTS("dim", 1, 1), INT("keep", 1))                                      \
    X(mean, "mean", "x", (g->x, 2, both, 0), X1, INTS("dim", 2, 0, 1), INT("keep", 0))                                 \
    X(max, "max", "x", (g->x, 1, last, 0), X1, INTS("dim", 1, 1), INT("keep", 0))                                      \
    X(min, "min", "x", (g->x, 1, last, 1), X1, INTS("dim", 1, 1), INT("keep", 1))                                      \
    X(prod, "prod", "x", (g->x, 1, last, 0), X1, INTS("dim", 1, 1), INT("keep", 0))                                    \
    X(var, "var", "x", (g->x, 1, last, 0, 2), X1, INTS("dim", 1, 1), INT("keep", 0), FLOAT("correction", 2))           \
    X(std, "std", "x", (g->x, 1, last, 1, 0), X1, INTS("dim", 1, 1), INT("keep", 1), FLOAT("correction", 0))           \
    X(softmax, "softmax", "x", (g->x, 0), X1, INT("dim", 0))                                                           \
    X(log_softmax, "log_softmax", "x", (g->x, 1), X1, INT("dim", 1))                                                   \
    X(logsumexp, "logsumexp", "x", (g->x, 1, last, 1), X1, INTS("dim", 1, 1), INT("keep", 1))                          \
    X(norm, "norm", "x", (g->x, 1, 1, last, 1), X1, FLOAT("p", 1), INTS("dim", 1, 1), INT("keep", 1))                  \
    X(rms_norm, "rms_norm", "xw", (g->x, g->w, 0.5), X2, FLOAT("epsilon", 0.5))                                        \
    X(layer_norm, "layer_norm", "xww", (g->x, g->w, g->w, 0.5), (&d[0], &d[1], &d[2]), FLOAT("epsilon", 0.5))          \
    X(matmul, "matmul", "xr", (g->x, g->r), X2, {NULL})                                                                \
    X(cumsum, "cumsum", "x", (g->x, 0), X1, INT("dim", 0))                                                             \
    X(reshape, "reshape", "x", (g->x, 1, one_dim), X1, INTS("shape", 1, 16))                                           \
    X(transpose, "transpose", "x", (g->x, 0, 1), X1, INT("dim0", 0), INT("dim1", 1))                                   \
    X(permute, "permute", "x", (g->x, 2, turned), X1, INTS("dims", 2, 1, 0))                                           \
    X(expand, "expand", "x", (g->x, 3, longer), X1, INTS("shape", 3, 3, 4, 4))                                         \
    X(unsqueeze, "unsqueeze", "x", (g->x, 1), X1, INT("dim", 1))                                                       \
    X(slice, "slice", "x", (g->x, 1, 1, 4, 2), X1, INT("dim", 1), INT("start", 1), INT("end", 4), INT("step", 2))      \
    X(narrow, "narrow", "x", (g->x, 1, 1, 2), X1, INT("dim", 1), INT("start", 1), INT("length", 2))                    \
    X(pad, "pad", "x", (g->x, 1, 2, 1, 5), X1, INT("dim", 1), INT("before", 2), INT("after", 1), FLOAT("value", 5))    \
    X(flip, "flip", "x", (g->x, 1, last), X1, INTS("dim", 1, 1))                                                       \
    X(roll, "roll", "x", (g->x, 1, 3), X1, INT("dim", 1), INT("shift", 3))                                             \
    X(tril, "tril", "x", (g->x, 1), X1, INT("diagonal", 1))                                                            \
    X(index_select, "index_select", "xj", (g->x, g->j, 1), X1, INT("dim", 1))                                          \
    X(gather, "gather", "xi", (g->x, g->i, 1), X1, INT("dim", 1))                                                      \
    X(scatter_add, "scatter_add", "xiy", (g->x, g->i, g->y, 1), (&d[0], &d[2]), INT("dim", 1))                         \
    X(embedding, "embedding", "rj", (g->r, g->j), X1, {NULL})                                                          \
    X(triu, "triu", "x", (g->x, -1), X1, INT("diagonal", -1))

#define STEPS(X)                                                                                                       \
    X(sign, "sign", "x", (g->x), {NULL})                                                                               \
    X(floor, "floor", "x", (g->x), {NULL})                                                                             \
    X(ceil, "ceil", "x", (g->x), {NULL})                                                                               \
    X(round, "round", "x", (g->x), {NULL})                                                                             \
    X(isnan, "isnan", "x", (g->x), {NULL})                                                                             \
    X(isinf, "isinf", "x", (g->x), {NULL})                                                                             \
    X(isfinite, "isfinite", "x", (g->x), {NULL})                                                                       \
    X(logical_not, "logical_not", "m", (g->m), {NULL})                                                                 \
    X(floor_divide, "floor_divide", "ik", (g->i, g->k), {NULL})                                                        \
    X(remainder, "remainder", "ik", (g->i, g->k), {NULL})                                                              \
    X(eq, "eq", "xy", (g->x, g->y), {NULL})                                                                            \
    X(ne, "ne", "xy", (g->x, g->y), {NULL})                                                                            \
    X(lt, "lt", "xy", (g->x, g->y), {NULL})                                                                            \
    X(le, "le", "xy", (g->x, g->y), {NULL})                                                                            \
    X(gt, "gt", "xy", (g->x, g->y), {NULL})                                                                            \
    X(ge, "ge", "xy", (g->x, g->y), {NULL})                                                                            \
    X(logical_and, "logical_and", "mm", (g->m, g->m), {NULL})                                                          \
    X(logical_or, "logical_or", "mm", (g->m, g->m), {NULL})                                                            \
    X(any, "any", "m", (g->m, 1, last, 0), INTS("dim", 1, 1), INT("keep", 0))                                          \
    X(all, "all", "m", (g->m, 1, last, 1), INTS("dim", 1, 1), INT("keep", 1))                                          \
    X(argmax, "argmax", "x", (g->x, 1), INT("dim", 1))                                                                 \
    X(argmin, "argmin", "x", (g->x, 0), INT("dim", 0))                                                                 \
    X(one_hot, "one_hot", "i", (g->i, 4), INT("classes", 4))                                                           \
    X(bincount, "bincount", "j", (g->j, 4), INT("length", 4))

#define FORMS(name, op, operands, args, ...)                                                                           \
    static tsr_status call_##name(const given *g, tsr_dtensor **out)                                                   \
    {                                                                                                                  \
        return tsr_##name(UNWRAP args, out);                                                                           \
    }                                                                                                                  \
    static tsr_status into_##name(const given *g, tsr_dtensor *out)                                                    \
    {                                                                                                                  \
        return tsr_##name##_into(UNWRAP args, out);                                                                    \
    }
#define FORMS_WITH_GRADIENT(name, op, operands, args, gradients, ...)                                                  \
    FORMS(name, op, operands, args, )                                                                                  \
    static tsr_status backward_##name(const given *g, const tsr_dtensor *dout, tsr_dtensor **d)                        \
    {                                                                                                                  \
        return tsr_##name##_backward(UNWRAP args, dout, UNWRAP gradients);                                             \
    }
SMOOTH(FORMS_WITH_GRADIENT)
STEPS(FORMS)

#define ROW(name, op, operands, args, ...) {op, operands, call_##name, into_##name, NULL, {__VA_ARGS__}},
#define ROW_WITH_GRADIENT(name, op, operands, args, gradients, ...)                                                    \
    {op, operands, call_##name, into_##name, backward_##name, {__VA_ARGS__}},
static tsr_status call_all_reduce(const given *g, tsr_dtensor **out)
{
    return tsr_all_reduce(g->p, 1, out);
}

static tsr_status into_all_reduce(const given *g, tsr_dtensor *out)
{
    return tsr_all_reduce_into(g->p, 1, out);
}

static tsr_status backward_all_reduce(const given *g, const tsr_dtensor *dout, tsr_dtensor **d)
{
    return tsr_all_reduce_backward(g->p, 1, dout, &d[0]);
}

static tsr_status call_vary(const given *g, tsr_dtensor **out)
{
    return tsr_vary(g->r, out);
}

static tsr_status into_vary(const given *g, tsr_dtensor *out)
{
    return tsr_vary_into(g->r, out);
}

static tsr_status backward_vary(const given *g, const tsr_dtensor *dout, tsr_dtensor **d)
{
    return tsr_vary_backward(g->r, dout, &d[0]);
}

static const typed_row rows[] = {
    SMOOTH(ROW_WITH_GRADIENT) STEPS(ROW){
        "all_reduce", "p", call_all_reduce, into_all_reduce, backward_all_reduce, {WORD("gradient", "partial")}},
    {"vary", "r", call_vary, into_vary, backward_vary, {{NULL}}},
};

static const tsr_dtensor *get_operand(const given *g, char letter)
{
    switch (letter) {
    case 'x':
        return g->x;
    case 'y':
        return g->y;
    case 'm':
        return g->m;
    case 'w':
        return g->w;
    case 'i':
        return g->i;
    case 'j':
        return g->j;
    case 'k':
        return g->k;
    case 'r':
        return g->r;
    default:
        return g->p;
    }
}

static tsr_status expect_same(const typed_row *row, const char *form, const tsr_dtensor *got, const tsr_dtensor *wanted)
{
    double values[2][MOST] = {{0}};
    if (!tsr_layout_equal(tsr_dtensor_layout(got), tsr_dtensor_layout(wanted)))
        return tsr_status_set(TSR_ERROR_INTERNAL, "%s, %s: the layouts differ", row->op, form);
    TSR_TRY(support_read(got, values[0]));
    TSR_TRY(support_read(wanted, values[1]));
    return memcmp(values[0], values[1], sizeof values[0]) == 0
               ? TSR_OK
               : tsr_status_set(TSR_ERROR_INTERNAL, "%s, %s: the values differ", row->op, form);
}

/* What a row is called with. */
typedef struct row_call {
    const typed_row *row;
    const tsr_op *op;
    size_t count;
    const tsr_dtensor *operands[TSR_OP_MOST_OPERANDS];
} row_call;

static tsr_status compare_into(const given *g, const row_call *c, const tsr_dtensor *wanted)
{
    tsr_dtensor *out;
    TSR_TRY(tsr_dtensor_create(tsr_dtensor_layout(wanted), tsr_device_host(), &out));
    tsr_status status = c->row->into(g, out);
    if (status == TSR_OK)
        status = expect_same(c->row, "into", out, wanted);
    tsr_dtensor_destroy(out);
    return status;
}

/* The result itself is the gradient, or its sum where it is Partial. */
static tsr_status make_gradient(const tsr_dtensor *result, tsr_dtensor **out)
{
    tsr_layout *layout;
    char placements[64];
    TSR_TRY(tsr_layout_gradient(tsr_dtensor_layout(result), &layout));
    tsr_layout_print(layout, placements, sizeof placements);
    tsr_layout_destroy(layout);
    return tsr_redistribute_to(result, placements, out);
}

static tsr_status compare_backward(const given *g, const row_call *c, const tsr_dtensor *result)
{
    tsr_dtensor *got[TSR_OP_MOST_OPERANDS] = {NULL}, *wanted[TSR_OP_MOST_OPERANDS] = {NULL}, *dout;
    tsr_dtensor **places[TSR_OP_MOST_OPERANDS] = {NULL};
    TSR_TRY(make_gradient(result, &dout));
    tsr_status status = c->row->backward(g, dout, got);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++)
        places[i] = got[i] ? &wanted[i] : NULL;
    if (status == TSR_OK)
        status = tsr_op_backward(c->op, c->count, c->row->attributes, c->operands, dout, places);
    for (int i = 0; i < TSR_OP_MOST_OPERANDS; i++) {
        if (status == TSR_OK && got[i])
            status = expect_same(c->row, "backward", got[i], wanted[i]);
        tsr_dtensor_destroy(got[i]);
        tsr_dtensor_destroy(wanted[i]);
    }
    tsr_dtensor_destroy(dout);
    return status;
}

static tsr_status compare_row(const given *g, const typed_row *row)
{
    row_call c = {.row = row};
    tsr_dtensor *got = NULL, *wanted;
    TSR_TRY(tsr_op_find(NULL, row->op, &c.op));
    while (row->attributes[c.count].name)
        c.count++;
    for (int i = 0; row->operands[i]; i++)
        c.operands[i] = get_operand(g, row->operands[i]);
    TSR_TRY(tsr_op_call(c.op, c.count, row->attributes, c.operands, &wanted));
    tsr_status status = row->call(g, &got);
    if (status == TSR_OK)
        status = expect_same(row, "call", got, wanted);
    if (status == TSR_OK)
        status = compare_into(g, &c, wanted);
    if (status == TSR_OK && row->backward)
        status = compare_backward(g, &c, wanted);
    tsr_dtensor_destroy(got);
    tsr_dtensor_destroy(wanted);
    return status;
}

static tsr_status make_given(const tsr_mesh *mesh, given *g)
{
    static const int64_t square[] = {4, 4};
    double x[16], y[16], bits[16], ids[16], positive[16];
    for (int k = 0; k < 16; k++) {
        x[k] = 0.5 + 0.25 * (k * 5 % 16);
        y[k] = 0.75 + 0.25 * (k * 7 % 16);
        bits[k] = k % 3 == 0;
        ids[k] = k * 3 % 4;
        positive[k] = 1 + k % 3;
    }
    TSR_TRY(support_make(mesh, "S(0)", TSR_F32, 2, square, x, &g->x));
    TSR_TRY(support_make(mesh, "S(0)", TSR_F32, 2, square, y, &g->y));
    TSR_TRY(support_make(mesh, "S(0)", TSR_BOOL, 2, square, bits, &g->m));
    TSR_TRY(support_make(mesh, "S(0)", TSR_I64, 2, square, ids, &g->i));
    TSR_TRY(support_make(mesh, "S(0)", TSR_I64, 2, square, positive, &g->k));
    TSR_TRY(support_make(mesh, "R", TSR_I64, 1, square, ids, &g->j));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 1, square, y, &g->w));
    TSR_TRY(support_make(mesh, "R", TSR_F32, 2, square, y, &g->r));
    return tsr_redistribute_to(g->r, "P", &g->p);
}

static void destroy_given(given *g)
{
    tsr_dtensor *const all[] = {g->x, g->y, g->m, g->w, g->i, g->k, g->j, g->r, g->p};
    for (size_t k = 0; k < sizeof all / sizeof all[0]; k++)
        tsr_dtensor_destroy(all[k]);
}

static tsr_status compare_all(tsr_comm *comm, void *arg)
{
    tsr_mesh *mesh;
    given g = {0};
    (void)arg;
    TSR_TRY(tsr_mesh_parse(comm, NULL, "2", &mesh));
    tsr_status status = make_given(mesh, &g);
    for (size_t k = 0; status == TSR_OK && k < sizeof rows / sizeof rows[0]; k++)
        status = compare_row(&g, &rows[k]);
    destroy_given(&g);
    tsr_mesh_destroy(mesh);
    return status;
}

static void typed_functions_are_their_rows(void **state)
{
    (void)state;
    layers_run(2, compare_all, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(typed_functions_are_their_rows)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
