/**
 * @file
 * Operations on dtensors, which follow the layouts of their operands: what they have in common, the
 * table of all, and calls by row. PyTorch's operators on DTensor, jax.numpy under sharding. Their
 * functions are in pointwise.h, reductions.h, norms.h, products.h, attention.h, losses.h,
 * mixture.h, indexing.h, views.h, order.h, random.h and varying.h.
 *
 * @par Layouts
 * Each op has a rule (docs/rules.md) that says from the operands' layouts what the results' are.
 * Operands that do not fit are refused with a sentence that names the layout that would work; a
 * context whose policy allows it (tsr_context_options.policy) redistributes them instead, in the
 * cheapest way, collectively. Else a call meets no other rank, but where its function says so.
 *
 * @par Shapes and dtypes
 * Operands are aligned at the right; dims of size 1, and missing leading dims, are repeated, as
 * NumPy does. All operands have one dtype unless the op says otherwise; f16 and bf16 are computed
 * in f32 and rounded once. Floats are f64, f32, f16 and bf16; numbers are floats, i64 and i32.
 *
 * @par Values
 * An element of a result has the same bits on every rank that holds it, with any strides and on
 * every processor, but for the bits of NaNs; those of all ops but sum, mean,
 * prod, var, std, cumsum, products, attention, losses and those of norms.h also under any layout.
 *
 * @par Devices
 * All tensors of a call are on the host, or all on one device that has a kernel for the op
 * (docs/ops.md lists those of CUDA); others are refused with TSR_ERROR_UNSUPPORTED by op and
 * device. On a device with streams a call works on the default one.
 *
 * @par Forms
 * tsr_X() makes the result, which the caller owns. tsr_X_into() writes into a dtensor that exists,
 * of the layout that the rule gives; it may be an operand of the same layout, and must not overlap
 * operands otherwise. tsr_X_backward() makes the gradients of operands from `dout`, the result's
 * gradient, in the result's gradient layout (tsr_op_gradient_layout()); any output may be NULL: it
 * is not made. A gradient has the layout that the rule gives: it may be Partial, and
 * tsr_redistribute() then reduces it. Where the op itself makes a Partial, of whatever kind, dout
 * is Replicate; where an operand is Partial of max, min or prod, and the result too, there is
 * none.
 */
#ifndef TESSERA_OPS_H
#define TESSERA_OPS_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** An op: a row of the library's table, or of a program's (sys/ops.h). */
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

/** An attribute with a list of `count` numbers, copied. A call that is given it refuses a count
 * that is not 0 to TSR_MAX_DIMS, or a list that is NULL. */
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
    int moves; /**< 1 if it redistributes its first operand, and does nothing else */
} tsr_op_info;

/** Finds the op called `name`, among the library's and those of the context's options. `context`
 * NULL: among the library's. The op lives as long as the context. TSR_ERROR_ARGUMENT: no op has
 * this name, and the sentence tells similar ones, or what to use for a name of PyTorch or NumPy; or
 * a row of the options is not one. Any thread. */
TSR_API tsr_status tsr_op_find(tsr_context *context, const char *name, const tsr_op **out);

/** The op at `index`, in the order of the table, the library's first; NULL past the last, or if the
 * rows of the options have an error that tsr_op_find() tells. `context` may be NULL. Any thread. */
TSR_API const tsr_op *tsr_op_get(tsr_context *context, size_t index);

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

/** The layout in which tsr_op_backward() takes the gradient of the first result: Replicate where
 * the op makes the result Partial, of max, min and prod too. Arguments as for tsr_op_propagate();
 * the caller owns `*out`. Pure; meshes may be abstract. TSR_ERROR_UNSUPPORTED: an operand is
 * Partial of max, min or prod, and so is the result. */
TSR_API tsr_status tsr_op_gradient_layout(const tsr_op *op, size_t count,
                                          const tsr_attribute *attributes,
                                          const tsr_layout *const *operands, tsr_layout **out);

/**
 * The layouts of the gradients of an op's operands, as tsr_op_backward() makes them from one of
 * layout `gradient`; NULL: that of tsr_op_gradient_layout(). `wanted` and `gradients` have
 * an entry for each operand; those that are not wanted become NULL, and the caller owns the others.
 * Pure; meshes may be abstract. TSR_ERROR_UNSUPPORTED: an operand that is wanted has no gradient.
 * TSR_ERROR_ARGUMENT: as tsr_op_propagate().
 */
TSR_API tsr_status tsr_op_propagate_gradients(const tsr_op *op, size_t count,
                                              const tsr_attribute *attributes,
                                              const tsr_layout *const *operands,
                                              const tsr_layout *gradient, const bool *wanted,
                                              tsr_layout **gradients);

/**
 * The cheapest layouts of an op's operands that fit its rule: those to which redistributing takes
 * the fewest bytes over all ranks, then the least time by the context's cost profile (cost.h), then
 * the fewest operands. Each mesh dim cuts one factor of the rule, leaves operands as they are or
 * whole, or passes terms on where an operand has them. `results` is NULL, or has for each result
 * NULL or the placements that are wanted of it, one a mesh dim; bringing it to them counts, too.
 * Where mesh dims have many ways of being used, they are changed one after the other while that
 * helps, so that the answer may not be the best; on large meshes some ranks stand for all. Every
 * rank gets the same answer, and it always fits. `out` has room for TSR_OP_MOST_OPERANDS; the
 * caller owns each that is set, also those that stay as they are. Pure; meshes may be abstract.
 * TSR_ERROR_ARGUMENT: as tsr_op_propagate(), but for placements.
 */
TSR_API tsr_status tsr_op_cheapest(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                   const tsr_layout *const *operands,
                                   const tsr_placement *const *results, tsr_layout **out);

/** Room for a text: at most `capacity` bytes with the NUL. `text` may be NULL where that is 0. */
typedef struct tsr_text_room {
    char *text;
    size_t capacity;
} tsr_text_room;

/**
 * An op's rule for compilers: Shardy's `#sdy.op_sharding_rule<([i, j], [k, j])->([i, k]) {i=8,
 * j=16, k=4} reduction={j}, custom>`. Operands that are left out are not in it. `lost` gets
 * sentences apart by "; " on what Shardy cannot say: reductions other than sum and exchanges inside
 * the op, whose factors it must replicate; cuts other than chunks; Partial. The lengths, where not
 * NULL, get those of the whole texts, as from snprintf(). Pure. TSR_ERROR_UNSUPPORTED: an op that
 * redistributes has no rule. TSR_ERROR_ARGUMENT: as tsr_op_propagate(), but for placements, which
 * may be any.
 */
TSR_API tsr_status tsr_op_sharding_rule(const tsr_op *op, size_t count,
                                        const tsr_attribute *attributes,
                                        const tsr_layout *const *operands, tsr_text_room rule,
                                        tsr_text_room lost, size_t *rule_length,
                                        size_t *lost_length);

/**
 * Reads Shardy's text, and writes the rule that a row would have: "i j, k j -> i k | j sum". Sizes
 * are checked, and dropped; blocked_propagation, too. At most `capacity` bytes are written, the
 * last NUL, and `*length`, where not NULL, gets the length of the whole rule. Pure.
 * TSR_ERROR_ARGUMENT: the sentence points at the character that is wrong; or it says what no rule
 * says.
 */
TSR_API tsr_status tsr_op_read_sharding_rule(const char *text, char *rule, size_t capacity,
                                             size_t *length);

/**
 * The layouts in which an op takes its operands under a policy: those given if they fit the rule,
 * else the cheapest that do, if the policy allows the redistributions. `bytes`: the most that a
 * rank may then receive; 0: no limit. `out` has room for TSR_OP_MOST_OPERANDS; the caller owns each
 * that is set, also those that stay; an operand that is left out, and the rest, become NULL. Pure;
 * meshes may be abstract. TSR_ERROR_ARGUMENT: as tsr_op_propagate(), or the policy forbids what
 * would be needed, which the sentence says.
 */
TSR_API tsr_status tsr_op_settle(const tsr_op *op, size_t count, const tsr_attribute *attributes,
                                 const tsr_layout *const *operands, tsr_policy policy,
                                 int64_t bytes, tsr_layout **out);

/**
 * The bytes that the rank at `coordinate` (NULL: this rank; an abstract mesh needs one) receives
 * while ranks meet inside the op, because a mesh dim cuts a factor of its rule that it exchanges; 0
 * where nobody meets. Moves of operands do not count: tsr_plan_survey_of() tells those. Pure.
 * Errors as tsr_op_propagate().
 */
TSR_API tsr_status tsr_op_exchange_bytes(const tsr_op *op, size_t count,
                                         const tsr_attribute *attributes,
                                         const tsr_layout *const *operands,
                                         const int64_t *coordinate, int64_t *bytes);

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

#ifdef __cplusplus
}
#endif

#endif
