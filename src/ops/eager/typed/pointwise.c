#include "ops/eager/typed/typed.h"

#include <tessera/pointwise.h>

/* The two functions of an op without a gradient. */
#define UNARY_ALONE(name)                                                                                              \
    tsr_status tsr_##name(const tsr_dtensor *x, tsr_dtensor **out)                                                     \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(#name, x), NO_ATTRIBUTES, OPERANDS(x), out);                         \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x, tsr_dtensor *out)                                               \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(#name, x), NO_ATTRIBUTES, OPERANDS(x), &out);           \
    }
#define BINARY_ALONE(name)                                                                                             \
    tsr_status tsr_##name(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)                               \
    {                                                                                                                  \
        return tsr_eager_run("tsr_" #name, row_by(#name, x), NO_ATTRIBUTES, OPERANDS(x, y), out);                      \
    }                                                                                                                  \
    tsr_status tsr_##name##_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)                         \
    {                                                                                                                  \
        return tsr_eager_run_into("tsr_" #name "_into", row_by(#name, x), NO_ATTRIBUTES, OPERANDS(x, y), &out);        \
    }

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
BINARY(pow, x, y)
UNARY_WITH(clamp, "clamp", BOUNDS_SETTING, BOUNDS)
UNARY(reciprocal, "reciprocal")
UNARY(square, "square")
UNARY(expm1, "expm1")
UNARY(log1p, "log1p")
UNARY(softplus, "softplus")
UNARY(sin, "sin")
UNARY(cos, "cos")
UNARY(erf, "erf")
UNARY_WITH(leaky_relu, "leaky_relu", SLOPE_SETTING, SLOPE)
UNARY_WITH(elu, "elu", ALPHA_SETTING, ALPHA)
UNARY_ALONE(sign)
UNARY_ALONE(floor)
UNARY_ALONE(ceil)
UNARY_ALONE(round)
UNARY_ALONE(isnan)
UNARY_ALONE(isinf)
UNARY_ALONE(isfinite)
UNARY_ALONE(logical_not)
BINARY_ALONE(floor_divide)
BINARY_ALONE(remainder)
BINARY_ALONE(eq)
BINARY_ALONE(ne)
BINARY_ALONE(lt)
BINARY_ALONE(le)
BINARY_ALONE(gt)
BINARY_ALONE(ge)
BINARY_ALONE(logical_and)
BINARY_ALONE(logical_or)

tsr_status tsr_masked_fill(const tsr_dtensor *x, const tsr_dtensor *mask, double value, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_masked_fill", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), out);
}

tsr_status tsr_masked_fill_into(const tsr_dtensor *x, const tsr_dtensor *mask, double value, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_masked_fill_into", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), &out);
}

tsr_status tsr_masked_fill_backward(const tsr_dtensor *x, const tsr_dtensor *mask, double value,
                                    const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_masked_fill_backward", row_by("masked_fill", x), VALUE, OPERANDS(x, mask), dout,
                              WANTED(dx, NULL));
}

tsr_status tsr_where(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_where", row_by("where", condition), NO_ATTRIBUTES, OPERANDS(condition, x, y), out);
}

tsr_status tsr_where_into(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_where_into", row_by("where", condition), NO_ATTRIBUTES, OPERANDS(condition, x, y),
                              &out);
}

tsr_status tsr_where_backward(const tsr_dtensor *condition, const tsr_dtensor *x, const tsr_dtensor *y,
                              const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_where_backward", row_by("where", condition), NO_ATTRIBUTES,
                              OPERANDS(condition, x, y), dout, WANTED(NULL, dx, dy));
}
