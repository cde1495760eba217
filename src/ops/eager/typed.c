#include "ops/eager/gradient.h"
#include "ops/eager/run.h"
#include "ops/table/table.h"

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

tsr_status tsr_add(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_add", row("add"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_add_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_add_into", row("add"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_add_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                            tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_add_backward", row("add"), NO_ATTRIBUTES, OPERANDS(x, y), dout, WANTED(dx, dy));
}

tsr_status tsr_sub(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_sub", row("sub"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_sub_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_sub_into", row("sub"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_sub_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                            tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_sub_backward", row("sub"), NO_ATTRIBUTES, OPERANDS(x, y), dout, WANTED(dx, dy));
}

tsr_status tsr_mul(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_mul", row("mul"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_mul_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_mul_into", row("mul"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_mul_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                            tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_mul_backward", row("mul"), NO_ATTRIBUTES, OPERANDS(x, y), dout, WANTED(dx, dy));
}

tsr_status tsr_maximum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_maximum", row("maximum"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_maximum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_maximum_into", row("maximum"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_maximum_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                                tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_maximum_backward", row("maximum"), NO_ATTRIBUTES, OPERANDS(x, y), dout,
                              WANTED(dx, dy));
}

tsr_status tsr_minimum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_minimum", row("minimum"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_minimum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_minimum_into", row("minimum"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_minimum_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                                tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_minimum_backward", row("minimum"), NO_ATTRIBUTES, OPERANDS(x, y), dout,
                              WANTED(dx, dy));
}

tsr_status tsr_div(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_div", row("div"), NO_ATTRIBUTES, OPERANDS(x, y), out);
}

tsr_status tsr_div_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_div_into", row("div"), NO_ATTRIBUTES, OPERANDS(x, y), &out);
}

tsr_status tsr_div_backward(const tsr_dtensor *x, const tsr_dtensor *y, const tsr_dtensor *dout, tsr_dtensor **dx,
                            tsr_dtensor **dy)
{
    return tsr_eager_backward("tsr_div_backward", row("div"), NO_ATTRIBUTES, OPERANDS(x, y), dout, WANTED(dx, dy));
}

tsr_status tsr_neg(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_neg", row("neg"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_neg_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_neg_into", row("neg"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_neg_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_neg_backward", row("neg"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_abs(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_abs", row("abs"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_abs_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_abs_into", row("abs"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_abs_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_abs_backward", row("abs"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_exp(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_exp", row("exp"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_exp_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_exp_into", row("exp"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_exp_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_exp_backward", row("exp"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_ln(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_ln", row("log"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_ln_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_ln_into", row("log"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_ln_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_ln_backward", row("log"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_sqrt(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_sqrt", row("sqrt"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_sqrt_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_sqrt_into", row("sqrt"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_sqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_sqrt_backward", row("sqrt"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_rsqrt(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_rsqrt", row("rsqrt"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_rsqrt_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_rsqrt_into", row("rsqrt"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_rsqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_rsqrt_backward", row("rsqrt"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_tanh(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_tanh", row("tanh"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_tanh_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_tanh_into", row("tanh"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_tanh_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_tanh_backward", row("tanh"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_sigmoid(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_sigmoid", row("sigmoid"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_sigmoid_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_sigmoid_into", row("sigmoid"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_sigmoid_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_sigmoid_backward", row("sigmoid"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_silu(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_silu", row("silu"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_silu_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_silu_into", row("silu"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_silu_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_silu_backward", row("silu"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_relu(const tsr_dtensor *x, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_relu", row("relu"), NO_ATTRIBUTES, OPERANDS(x), out);
}

tsr_status tsr_relu_into(const tsr_dtensor *x, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_relu_into", row("relu"), NO_ATTRIBUTES, OPERANDS(x), &out);
}

tsr_status tsr_relu_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_relu_backward", row("relu"), NO_ATTRIBUTES, OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_gelu(const tsr_dtensor *x, int tanh, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_gelu", row("gelu"), ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none")),
                         OPERANDS(x), out);
}

tsr_status tsr_gelu_into(const tsr_dtensor *x, int tanh, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_gelu_into", row("gelu"),
                              ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none")), OPERANDS(x), &out);
}

tsr_status tsr_gelu_backward(const tsr_dtensor *x, int tanh, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_gelu_backward", row("gelu"),
                              ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none")), OPERANDS(x), dout,
                              WANTED(dx));
}

tsr_status tsr_silu_mul(const tsr_dtensor *gate, const tsr_dtensor *up, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_silu_mul", row("silu_mul"), NO_ATTRIBUTES, OPERANDS(gate, up), out);
}

tsr_status tsr_silu_mul_into(const tsr_dtensor *gate, const tsr_dtensor *up, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_silu_mul_into", row("silu_mul"), NO_ATTRIBUTES, OPERANDS(gate, up), &out);
}

tsr_status tsr_silu_mul_backward(const tsr_dtensor *gate, const tsr_dtensor *up, const tsr_dtensor *dout,
                                 tsr_dtensor **dgate, tsr_dtensor **dup)
{
    return tsr_eager_backward("tsr_silu_mul_backward", row("silu_mul"), NO_ATTRIBUTES, OPERANDS(gate, up), dout,
                              WANTED(dgate, dup));
}

tsr_status tsr_scale(const tsr_dtensor *x, double factor, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_scale", row("scale"), ATTRIBUTES(tsr_attribute_float("factor", factor)), OPERANDS(x),
                         out);
}

tsr_status tsr_scale_into(const tsr_dtensor *x, double factor, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_scale_into", row("scale"), ATTRIBUTES(tsr_attribute_float("factor", factor)),
                              OPERANDS(x), &out);
}

tsr_status tsr_scale_backward(const tsr_dtensor *x, double factor, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_scale_backward", row("scale"), ATTRIBUTES(tsr_attribute_float("factor", factor)),
                              OPERANDS(x), dout, WANTED(dx));
}

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

tsr_status tsr_cast(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_cast", row("cast"), ATTRIBUTES(tsr_attribute_dtype("dtype", dtype)), OPERANDS(x), out);
}

tsr_status tsr_cast_into(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_cast_into", row("cast"), ATTRIBUTES(tsr_attribute_dtype("dtype", dtype)),
                              OPERANDS(x), &out);
}

tsr_status tsr_cast_backward(const tsr_dtensor *x, tsr_dtype dtype, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_cast_backward", row("cast"), ATTRIBUTES(tsr_attribute_dtype("dtype", dtype)),
                              OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_sum(const tsr_dtensor *x, int count, const int64_t *dims, int keep, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_sum", row("sum"),
                         ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                         OPERANDS(x), out);
}

tsr_status tsr_sum_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_sum_into", row("sum"),
                              ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                              OPERANDS(x), &out);
}

tsr_status tsr_sum_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep, const tsr_dtensor *dout,
                            tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_sum_backward", row("sum"),
                              ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                              OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_mean(const tsr_dtensor *x, int count, const int64_t *dims, int keep, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_mean", row("mean"),
                         ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                         OPERANDS(x), out);
}

tsr_status tsr_mean_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_mean_into", row("mean"),
                              ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                              OPERANDS(x), &out);
}

tsr_status tsr_mean_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep, const tsr_dtensor *dout,
                             tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_mean_backward", row("mean"),
                              ATTRIBUTES(tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)),
                              OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_softmax", row("softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)), OPERANDS(x), out);
}

tsr_status tsr_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_softmax_into", row("softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)),
                              OPERANDS(x), &out);
}

tsr_status tsr_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_softmax_backward", row("softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)),
                              OPERANDS(x), dout, WANTED(dx));
}

tsr_status tsr_log_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out)
{
    return tsr_eager_run("tsr_log_softmax", row("log_softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)), OPERANDS(x),
                         out);
}

tsr_status tsr_log_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out)
{
    return tsr_eager_run_into("tsr_log_softmax_into", row("log_softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)),
                              OPERANDS(x), &out);
}

tsr_status tsr_log_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout, tsr_dtensor **dx)
{
    return tsr_eager_backward("tsr_log_softmax_backward", row("log_softmax"), ATTRIBUTES(tsr_attribute_int("dim", dim)),
                              OPERANDS(x), dout, WANTED(dx));
}
