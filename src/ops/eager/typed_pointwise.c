#include "ops/eager/typed.h"

#include <tessera/pointwise.h>

/* Settings, and the attributes that they are. */
#define APPROXIMATE_SETTING int tanh,
#define APPROXIMATE         ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none"))
#define FACTOR_SETTING      double factor,
#define FACTOR              ATTRIBUTES(tsr_attribute_float("factor", factor))
#define DTYPE_SETTING       tsr_dtype dtype,
#define DTYPE               ATTRIBUTES(tsr_attribute_dtype("dtype", dtype))

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
