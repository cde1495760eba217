/**
 * @file
 * Operations on dtensors: arithmetic, activations, sums and softmax, which follow the layouts of
 * their operands. PyTorch's operators on DTensor, jax.numpy under sharding.
 *
 * @par Layouts
 * Each op has a rule (docs/ops.md) that says from the operands' layouts what the results' are.
 * Nothing is redistributed: operands that do not fit are refused with a sentence that names the
 * layout that would work. A call meets no other rank.
 *
 * @par Shapes and dtypes
 * Operands are aligned at the right; dims of size 1, and missing leading dims, are repeated, as
 * NumPy does. All operands have one dtype unless the op says otherwise; f16 and bf16 are computed
 * in f32 and rounded once. Floats are f64, f32, f16 and bf16; numbers are floats, i64 and i32.
 *
 * @par Values
 * An element of a result has the same bits on every rank that holds it, with any strides and on
 * every processor, but for the bits of NaNs; those of all ops but sum and mean
 * also under any layout.
 * Tensors are on the host; others are refused with TSR_ERROR_UNSUPPORTED.
 *
 * @par Forms
 * tsr_X() makes the result, which the caller owns. tsr_X_into() writes into a dtensor that exists,
 * of the layout that the rule gives; it may be an operand of the same layout, and must not overlap
 * operands otherwise. tsr_X_backward() makes the gradients of operands from `dout`, the result's
 * gradient, in the result's gradient layout (tsr_layout_gradient()); any output may be NULL: it is
 * not made. A gradient has the layout that the rule gives: it may be Partial, and
 * tsr_redistribute() then reduces it. Rules with Partial of max or min have no gradient.
 */
#ifndef TESSERA_OPS_H
#define TESSERA_OPS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An op: a row of the library's table. Static. */
typedef struct tsr_op tsr_op;

/** What an attribute is. */
typedef enum tsr_attribute_kind {
    TSR_ATTRIBUTE_INT = 1, /**< `integer` */
    TSR_ATTRIBUTE_FLOAT,   /**< `number` */
    TSR_ATTRIBUTE_DTYPE,   /**< `integer`, a tsr_dtype */
    TSR_ATTRIBUTE_WORD,    /**< `words`: one of those that the op knows */
    TSR_ATTRIBUTE_INTS,    /**< `list` of `count` numbers: dims, or a shape */
    TSR_ATTRIBUTE_TEXT     /**< `words`: any text, such as an equation */
} tsr_attribute_kind;

/** An attribute of a call, or of an op with its default. A plain value that owns nothing. */
typedef struct tsr_attribute {
    const char *name;
    tsr_attribute_kind kind;
    int64_t integer;
    double number;
    int count;
    int64_t list[TSR_MAX_DIMS];
    const char *words; /**< the word, or the text; of an op's WORD: all its words, apart by `|`, the
                            default first */
} tsr_attribute;

/* Makers of attributes, by the attribute's name. */
TSR_API tsr_attribute tsr_attribute_int(const char *name, int64_t value);     /**< a number */
TSR_API tsr_attribute tsr_attribute_float(const char *name, double value);    /**< a factor */
TSR_API tsr_attribute tsr_attribute_dtype(const char *name, tsr_dtype value); /**< a dtype */

/** An attribute that is one of an op's words; `word` is borrowed for the call. */
TSR_API tsr_attribute tsr_attribute_word(const char *name, const char *word);

/** An attribute that is any text, which is borrowed for the call. */
TSR_API tsr_attribute tsr_attribute_text(const char *name, const char *text);

/** An attribute with a list of `count` numbers (TSR_MAX_DIMS at most; more are dropped), copied. */
TSR_API tsr_attribute tsr_attribute_ints(const char *name, int count, const int64_t *values);

#define TSR_OP_MOST_OPERANDS   8 /**< the most operands of an op */
#define TSR_OP_MOST_RESULTS    4 /**< the most results of an op */
#define TSR_OP_MOST_ATTRIBUTES 8 /**< the most attributes of an op */

/** What an op is, for programs that list ops. Names are static; arrays end in NULL, and attributes
 * in one without a name. */
typedef struct tsr_op_info {
    const char *name;
    const char *rule; /**< its factor string, where that depends on shapes or attributes the general
                           form */
    const char *operands[TSR_OP_MOST_OPERANDS + 1];
    const char *results[TSR_OP_MOST_RESULTS + 1];
    tsr_attribute attributes[TSR_OP_MOST_ATTRIBUTES + 1]; /**< with defaults; an INTS without one
                                                             has count -1 */
    int has_gradient;                                     /**< 1 if tsr_op_backward() takes it */
} tsr_op_info;

/** Finds the op called `name`. TSR_ERROR_ARGUMENT: no op has this name; the sentence lists similar
 * names. Any thread. */
TSR_API tsr_status tsr_op_find(const char *name, const tsr_op **out);

/** The op at `index`, in the order of the table; NULL past the last. Any thread. */
TSR_API const tsr_op *tsr_op_get(size_t index);

/** Tells what an op is; neither pointer is NULL. Any thread. */
TSR_API void tsr_op_describe(const tsr_op *op, tsr_op_info *out);

/**
 * The layouts of an op's results. `operands` has one layout for each of the op's operands.
 * `attributes` are `count` attributes in any order; those that are not given have their defaults.
 * `results` has room for TSR_OP_MOST_RESULTS; the caller owns each that is set, and the rest become
 * NULL. Pure; meshes may be abstract. TSR_ERROR_ARGUMENT: attributes, dtypes, meshes, shapes or
 * placements that the op does not take; the sentence says what would work.
 */
TSR_API tsr_status tsr_op_propagate(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                    const tsr_layout *const *operands, tsr_layout **results);

/** Calls an op by its row, as its own function would; arguments as for tsr_op_propagate(). The
 * caller owns the results. */
TSR_API tsr_status tsr_op_call(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                               const tsr_dtensor *const *operands, tsr_dtensor **results);

/** tsr_op_call() into dtensors that exist, which have the layouts of tsr_op_propagate(). */
TSR_API tsr_status tsr_op_call_into(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                    const tsr_dtensor *const *operands,
                                    tsr_dtensor *const *results);

/** Gradients of an op's operands. `gradient` is that of the first result. `wanted[i]` NULL: that of
 * operand i is not made; else `*wanted[i]` gets it, and the caller owns it. TSR_ERROR_UNSUPPORTED:
 * the op, or the operand, has no gradient. */
TSR_API tsr_status tsr_op_backward(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                   const tsr_dtensor *const *operands, const tsr_dtensor *gradient,
                                   tsr_dtensor **const *wanted);

/** @{ */
/** Numbers: x + y, x - y, x * y; the larger and the smaller of x and y, where NaN passes and -0 is
 * below +0. The gradient of equal elements is halved. */
TSR_API tsr_status tsr_add(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_add_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_add_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_sub(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_sub_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_sub_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_mul(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_mul_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_mul_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
TSR_API tsr_status tsr_maximum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_maximum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_maximum_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                        const tsr_dtensor *dout, tsr_dtensor **dx,
                                        tsr_dtensor **dy);
TSR_API tsr_status tsr_minimum(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_minimum_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_minimum_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                        const tsr_dtensor *dout, tsr_dtensor **dx,
                                        tsr_dtensor **dy);
/** @} */

/** @{ */
/** Floats: x / y. */
TSR_API tsr_status tsr_div(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_div_into(const tsr_dtensor *x, const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_div_backward(const tsr_dtensor *x, const tsr_dtensor *y,
                                    const tsr_dtensor *dout, tsr_dtensor **dx, tsr_dtensor **dy);
/** @} */

/** @{ */
/** Numbers: -x, and the size of x. Integers wrap. */
TSR_API tsr_status tsr_neg(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_neg_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_neg_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_abs(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_abs_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_abs_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats, by element: e^x, the natural logarithm (tsr_ln(), the op log), the square root, 1 /
 * sqrt(x), the hyperbolic tangent, 1 / (1 + e^-x), x times that (SiLU, swish), and x or 0, the
 * larger (ReLU). */
TSR_API tsr_status tsr_exp(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_exp_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_exp_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                    tsr_dtensor **dx);
TSR_API tsr_status tsr_ln(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_ln_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_ln_backward(const tsr_dtensor *x, const tsr_dtensor *dout, tsr_dtensor **dx);
TSR_API tsr_status tsr_sqrt(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sqrt_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_sqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_rsqrt(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_rsqrt_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_rsqrt_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
TSR_API tsr_status tsr_tanh(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_tanh_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_tanh_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_sigmoid(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_sigmoid_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_sigmoid_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                        tsr_dtensor **dx);
TSR_API tsr_status tsr_silu(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_silu_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_silu_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
TSR_API tsr_status tsr_relu(const tsr_dtensor *x, tsr_dtensor **out);
TSR_API tsr_status tsr_relu_into(const tsr_dtensor *x, tsr_dtensor *out);
TSR_API tsr_status tsr_relu_backward(const tsr_dtensor *x, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: the GELU of x, by the error function, or with `tanh` 1 by its usual approximation. */
TSR_API tsr_status tsr_gelu(const tsr_dtensor *x, int tanh, tsr_dtensor **out);
TSR_API tsr_status tsr_gelu_into(const tsr_dtensor *x, int tanh, tsr_dtensor *out);
TSR_API tsr_status tsr_gelu_backward(const tsr_dtensor *x, int tanh, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: silu(gate) * up, of SwiGLU. */
TSR_API tsr_status tsr_silu_mul(const tsr_dtensor *gate, const tsr_dtensor *up, tsr_dtensor **out);
TSR_API tsr_status tsr_silu_mul_into(const tsr_dtensor *gate, const tsr_dtensor *up,
                                     tsr_dtensor *out);
TSR_API tsr_status tsr_silu_mul_backward(const tsr_dtensor *gate, const tsr_dtensor *up,
                                         const tsr_dtensor *dout, tsr_dtensor **dgate,
                                         tsr_dtensor **dup);
/** @} */

/** @{ */
/** Floats: x times `factor`. */
TSR_API tsr_status tsr_scale(const tsr_dtensor *x, double factor, tsr_dtensor **out);
TSR_API tsr_status tsr_scale_into(const tsr_dtensor *x, double factor, tsr_dtensor *out);
TSR_API tsr_status tsr_scale_backward(const tsr_dtensor *x, double factor, const tsr_dtensor *dout,
                                      tsr_dtensor **dx);
/** @} */

/** @{ */
/** x where `condition` (bool) is 1, y elsewhere; x and y have one dtype: a number or bool. */
TSR_API tsr_status tsr_where(const tsr_dtensor *condition, const tsr_dtensor *x,
                             const tsr_dtensor *y, tsr_dtensor **out);
TSR_API tsr_status tsr_where_into(const tsr_dtensor *condition, const tsr_dtensor *x,
                                  const tsr_dtensor *y, tsr_dtensor *out);
TSR_API tsr_status tsr_where_backward(const tsr_dtensor *condition, const tsr_dtensor *x,
                                      const tsr_dtensor *y, const tsr_dtensor *dout,
                                      tsr_dtensor **dx, tsr_dtensor **dy);
/** @} */

/** @{ */
/** x in another dtype: a number, f16, bf16 or bool, rounded once. Floats lose their fraction as
 * integers, and become the nearest integer that there is; NaN becomes 0. Only a cast that loses
 * nothing takes a Partial sum. */
TSR_API tsr_status tsr_cast(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor **out);
TSR_API tsr_status tsr_cast_into(const tsr_dtensor *x, tsr_dtype dtype, tsr_dtensor *out);
TSR_API tsr_status tsr_cast_backward(const tsr_dtensor *x, tsr_dtype dtype, const tsr_dtensor *dout,
                                     tsr_dtensor **dx);
/** @} */

/** @{ */
/** Numbers: sums over the `count` dims in `dims` (all if count is 0), which stay as dims of size 1
 * if `keep` is 1. Along a mesh dim that cuts one of them the result is Partial. Each rank adds its
 * terms in f64, in an order that its shard's shape alone decides, and rounds once; integers wrap.
 */
TSR_API tsr_status tsr_sum(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                           tsr_dtensor **out);
TSR_API tsr_status tsr_sum_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                tsr_dtensor *out);
TSR_API tsr_status tsr_sum_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                    const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: sum over the same dims divided by the number of elements in the whole tensor. */
TSR_API tsr_status tsr_mean(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                            tsr_dtensor **out);
TSR_API tsr_status tsr_mean_into(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                 tsr_dtensor *out);
TSR_API tsr_status tsr_mean_backward(const tsr_dtensor *x, int count, const int64_t *dims, int keep,
                                     const tsr_dtensor *dout, tsr_dtensor **dx);
/** @} */

/** @{ */
/** Floats: e^x divided by its sum along `dim` (-1: the last), and the logarithm of that. The dim
 * must be whole on each rank. Computed in f64, and rounded once. */
TSR_API tsr_status tsr_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                        tsr_dtensor **dx);
TSR_API tsr_status tsr_log_softmax(const tsr_dtensor *x, int dim, tsr_dtensor **out);
TSR_API tsr_status tsr_log_softmax_into(const tsr_dtensor *x, int dim, tsr_dtensor *out);
TSR_API tsr_status tsr_log_softmax_backward(const tsr_dtensor *x, int dim, const tsr_dtensor *dout,
                                            tsr_dtensor **dx);
/** @} */

#ifdef __cplusplus
}
#endif

#endif
