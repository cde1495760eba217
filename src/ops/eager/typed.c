#include "ops/eager/gradient.h"
#include "ops/eager/run.h"
#include "ops/rows/table.h"

#include <string.h>

/* The row of a name that the table has. */
static const tsr_op *row(const char *name)
{
    return tsr_op_lookup(name, strlen(name));
}

/* Lists of operands, attributes and wanted gradients. */
#define OPERANDS(...) ((const tsr_dtensor *const[]){__VA_ARGS__})
#define ATTRIBUTES(...)                                                                                                \
    (sizeof((const tsr_attribute[]){__VA_ARGS__}) / sizeof(tsr_attribute)), ((const tsr_attribute[]){__VA_ARGS__})
#define NO_ATTRIBUTES 0, NULL
#define WANTED(...)   ((tsr_dtensor **const[]){__VA_ARGS__})

/* The three functions of an op with one operand and, behind it, `settings`, a list of parameters
 * that ends in a comma. */
#define UNARY_WITH(name, op, settings, attributes)                                                                     \
    tsr_status tsr_##name(const tsr_dtensor *x, settings tsr_dtensor **out)                                            \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row(op), attributes, OPERANDS(x), out);                                     \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x, settings tsr_dtensor *out)                                      \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row(op), attributes, OPERANDS(x), &out);                       \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *x, settings const tsr_dtensor *dout, tsr_dtensor **dx)         \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row(op), attributes, OPERANDS(x), dout, WANTED(dx));       \
    }
#define UNARY(name, op) UNARY_WITH(name, op, , NO_ATTRIBUTES)

/* The three functions of an op with the operands `a` and `b`. */
#define BINARY(name, a, b)                                                                                             \
    tsr_status tsr_##name(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor **out)                               \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row(#name), NO_ATTRIBUTES, OPERANDS(a, b), out);                            \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *a, const tsr_dtensor *b, tsr_dtensor *out)                         \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row(#name), NO_ATTRIBUTES, OPERANDS(a, b), &out);              \
    }                                                                                                                  \
    tsr_status tsr_##name##_backward(const tsr_dtensor *a, const tsr_dtensor *b, const tsr_dtensor *dout,              \
                                     tsr_dtensor **d##a, tsr_dtensor **d##b)                                           \
    {                                                                                                                  \
        return tsr_eager_backward("tsr_" #name "_backward", row(#name), NO_ATTRIBUTES, OPERANDS(a, b), dout,           \
                                  WANTED(d##a, d##b));                                                                 \
    }

/* Settings, and the attributes that they are. */
#define APPROXIMATE_SETTING int tanh,
#define APPROXIMATE         ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none"))
#define FACTOR_SETTING      double factor,
#define FACTOR              ATTRIBUTES(tsr_attribute_float("factor", factor))
#define DTYPE_SETTING       tsr_dtype dtype,
#define DTYPE               ATTRIBUTES(tsr_attribute_dtype("dtype", dtype))
#define DIMS_SETTING        int count, const int64_t *dims, int keep,
#define DIMS                ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep))
#define DIM_SETTING         int dim,
#define DIM                 ATTRIBUTES(tsr_attribute_int("dim", dim))

BINARY(add, x, y)
BINARY(sub, x, y)
BINARY(mul, x, y)
BINARY(div, x, y)
BINARY(maximum, x, y)
BINARY(minimum, x, y)
BINARY(silu_mul, gate, up)
UNARY(neg, "neg")
UNARY(abs, "abs")
UNARY(exp, "exp")
UNARY(ln, "log")
UNARY(sqrt, "sqrt")
UNARY(rsqrt, "rsqrt")
UNARY(tanh, "tanh")
UNARY(sigmoid, "sigmoid")
UNARY(silu, "silu")
UNARY(relu, "relu")
UNARY_WITH(gelu, "gelu", APPROXIMATE_SETTING, APPROXIMATE)
UNARY_WITH(scale, "scale", FACTOR_SETTING, FACTOR)
UNARY_WITH(cast, "cast", DTYPE_SETTING, DTYPE)
UNARY_WITH(sum, "sum", DIMS_SETTING, DIMS)
UNARY_WITH(mean, "mean", DIMS_SETTING, DIMS)
UNARY_WITH(softmax, "softmax", DIM_SETTING, DIM)
UNARY_WITH(log_softmax, "log_softmax", DIM_SETTING, DIM)

tsr_status tsr_where(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_where", row("where"), NO_ATTRIBUTES, OPERANDS(condition, x, y), out);
}

tsr_status tsr_where_into(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_where_into", row("where"), NO_ATTRIBUTES, OPERANDS(condition, x, y), &out);
}

tsr_status tsr_where_backward(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y,
                              const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_where_backward", row("where"), NO_ATTRIBUTES, OPERANDS(condition, x, y), dout,
                              WANTED(NULL, dx, dy));
}
