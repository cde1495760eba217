/** Settings of typed functions, those on dtensors and those that record programs, and the
 * attributes that they are. X_SETTING is a list of parameters that begins with a comma; X is a
 * number of attributes and their list. */
#ifndef TSR_OPS_ROWS_SETTINGS_H
#define TSR_OPS_ROWS_SETTINGS_H

#include <tessera/attention.h>
#include <tessera/losses.h>
#include <tessera/mixture.h>
#include <tessera/ops.h>
#include <tessera/random.h>

#define ATTRIBUTES(...)                                                                                                \
    (sizeof((const tsr_attribute[]){__VA_ARGS__}) / sizeof(tsr_attribute)), ((const tsr_attribute[]){__VA_ARGS__})

#define NO_SETTING
#define NO_ATTRIBUTES 0, NULL

/* Numbers. */
#define APPROXIMATE_SETTING , int tanh
#define APPROXIMATE         ATTRIBUTES(tsr_attribute_word("approximate", tanh ? "tanh" : "none"))
#define FACTOR_SETTING      , double factor
#define FACTOR              ATTRIBUTES(tsr_attribute_float("factor", factor))
#define DTYPE_SETTING       , tsr_dtype dtype
#define DTYPE               ATTRIBUTES(tsr_attribute_dtype("dtype", dtype))
#define BOUNDS_SETTING      , double min, double max
#define BOUNDS              ATTRIBUTES(tsr_attribute_float("min", min), tsr_attribute_float("max", max))
#define SLOPE_SETTING       , double slope
#define SLOPE               ATTRIBUTES(tsr_attribute_float("slope", slope))
#define ALPHA_SETTING       , double alpha
#define ALPHA               ATTRIBUTES(tsr_attribute_float("alpha", alpha))
#define VALUE_SETTING       , double value
#define VALUE               ATTRIBUTES(tsr_attribute_float("value", value))
#define EPSILON_SETTING     , double epsilon
#define EPSILON             ATTRIBUTES(tsr_attribute_float("epsilon", epsilon))

/* Dims. */
#define DIM_SETTING       , int dim
#define DIM               ATTRIBUTES(tsr_attribute_int("dim", dim))
#define DIMS_SETTING      , int count, const int64_t *dims
#define DIMS              ATTRIBUTES(tsr_attribute_ints("dim", count, dims))
#define OF_DIMS           tsr_attribute_ints("dim", count, dims), tsr_attribute_int("keep", keep)
#define REDUCED_SETTING   , int count, const int64_t *dims, int keep
#define REDUCED           ATTRIBUTES(OF_DIMS)
#define CORRECTED_SETTING , int count, const int64_t *dims, int keep, double correction
#define CORRECTED         ATTRIBUTES(OF_DIMS, tsr_attribute_float("correction", correction))
#define P_SETTING         , double p, int count, const int64_t *dims, int keep
#define P                 ATTRIBUTES(OF_DIMS, tsr_attribute_float("p", p))
#define SORT_SETTING      , int dim, int descending
#define SORT              ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("descending", descending))
#define TOP_SETTING       , int64_t k, int dim
#define TOP               ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("k", k))

/* Views. */
#define SHAPE_SETTING    , int ndim, const int64_t *shape
#define SHAPE            ATTRIBUTES(tsr_attribute_ints("shape", ndim, shape))
#define TWO_DIMS_SETTING , int dim0, int dim1
#define TWO_DIMS         ATTRIBUTES(tsr_attribute_int("dim0", dim0), tsr_attribute_int("dim1", dim1))
#define ORDER_SETTING    , int count, const int64_t *dims
#define ORDER            ATTRIBUTES(tsr_attribute_ints("dims", count, dims))
#define RANGE_SETTING    , int dim, int64_t start, int64_t end, int64_t step
#define RANGE                                                                                                          \
    ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("start", start), tsr_attribute_int("end", end),        \
               tsr_attribute_int("step", step))
#define LENGTH_SETTING , int dim, int64_t start, int64_t length
#define LENGTH                                                                                                         \
    ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("start", start), tsr_attribute_int("length", length))
#define PADS_SETTING , int dim, int64_t before, int64_t after, double value
#define PADS                                                                                                           \
    ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("before", before), tsr_attribute_int("after", after),  \
               tsr_attribute_float("value", value))
#define SHIFT_SETTING    , int dim, int64_t shift
#define SHIFT            ATTRIBUTES(tsr_attribute_int("dim", dim), tsr_attribute_int("shift", shift))
#define DIAGONAL_SETTING , int64_t diagonal
#define DIAGONAL         ATTRIBUTES(tsr_attribute_int("diagonal", diagonal))

/* Products, ids and layouts. */
#define EQUATION         ATTRIBUTES(tsr_attribute_text("equation", equation))
#define CLASSES_SETTING  , int64_t classes
#define CLASSES          ATTRIBUTES(tsr_attribute_int("classes", classes))
#define COUNTS_SETTING   , int64_t length
#define COUNTS           ATTRIBUTES(tsr_attribute_int("length", length))
#define GRADIENT_SETTING , int partial
#define GRADIENT         ATTRIBUTES(tsr_attribute_word("gradient", partial ? "partial" : "replicate"))

/* Of options `o` that are read. */
#define ATTENTION                                                                                                      \
    ATTRIBUTES(tsr_attribute_int("causal", o.causal), tsr_attribute_float("scale", o.scale),                           \
               tsr_attribute_int("window", o.window))
#define ROPE                                                                                                           \
    ATTRIBUTES(tsr_attribute_float("base", o.base), tsr_attribute_float("factor", o.factor),                           \
               tsr_attribute_float("low_freq_factor", o.low_freq_factor),                                              \
               tsr_attribute_float("high_freq_factor", o.high_freq_factor),                                            \
               tsr_attribute_int("original_max_position", o.original_max_position))
#define LOSS                                                                                                           \
    ATTRIBUTES(tsr_attribute_word("reduction", tsr_settings_reduction(o.reduction)),                                   \
               tsr_attribute_int("ignore_index", o.ignore_index),                                                      \
               tsr_attribute_float("label_smoothing", o.label_smoothing))
#define EXPERTS                                                                                                        \
    ATTRIBUTES(tsr_attribute_word("activation", tsr_settings_activation(o.activation)),                                \
               tsr_attribute_int("capacity", o.capacity),                                                              \
               tsr_attribute_word("overflow", tsr_settings_overflow(o.overflow)),                                      \
               tsr_attribute_word("beyond", tsr_settings_beyond(o.beyond)))

/* Random numbers, by `key`, which may be NULL until it is checked. */
#define KEY                      tsr_random_key_generator(key), tsr_random_key_words(key)
#define UNIFORM_SETTING          , double low, double high
#define UNIFORM                  ATTRIBUTES(KEY, tsr_attribute_float("low", low), tsr_attribute_float("high", high))
#define NORMAL_SETTING           , double mean, double std
#define NORMAL                   ATTRIBUTES(KEY, tsr_attribute_float("mean", mean), tsr_attribute_float("std", std))
#define TRUNCATED_NORMAL_SETTING , double mean, double std, double low, double high
#define TRUNCATED_NORMAL                                                                                               \
    ATTRIBUTES(KEY, tsr_attribute_float("mean", mean), tsr_attribute_float("std", std),                                \
               tsr_attribute_float("low", low), tsr_attribute_float("high", high))
#define PROBABILITY_SETTING , double p
#define PROBABILITY         ATTRIBUTES(KEY, tsr_attribute_float("p", p))
#define INTEGERS_SETTING    , int64_t low, int64_t high
#define INTEGERS            ATTRIBUTES(KEY, tsr_attribute_int("low", low), tsr_attribute_int("high", high))

/** Options over the defaults; NULL: the defaults. */
tsr_status tsr_settings_attention(const char *caller, const tsr_attention_options *given, tsr_attention_options *out);
tsr_status tsr_settings_rope(const char *caller, const tsr_rope_options *given, tsr_rope_options *out);
tsr_status tsr_settings_loss(const char *caller, const tsr_cross_entropy_options *given,
                             tsr_cross_entropy_options *out);
tsr_status tsr_settings_experts(const char *caller, const tsr_expert_mlp_options *given, tsr_expert_mlp_options *out);

/** The word of a reduction that tsr_settings_loss() has let through. */
const char *tsr_settings_reduction(tsr_loss_reduction reduction);

/** The words of options that tsr_settings_experts() has let through. */
const char *tsr_settings_activation(tsr_expert_mlp_activation activation);
const char *tsr_settings_overflow(tsr_expert_mlp_overflow overflow);
const char *tsr_settings_beyond(tsr_expert_mlp_beyond beyond);

/** Checks that there is a key, of a generator. */
tsr_status tsr_settings_check_key(const char *caller, const tsr_random_key *key);

/** tsr_settings_check_key() of a key that may stand for one that runs give. */
tsr_status tsr_settings_check_recorded_key(const char *caller, const tsr_random_key *key);

/** Random numbers are values and not terms: refuses a layout that is Partial, called `name`. */
tsr_status tsr_settings_check_not_partial(const char *caller, const char *name, const tsr_layout *layout);

/** Checks that `count` sizes, of the parts of a split, are those of a dim of a tensor of that
 * layout; `*dim` -1 becomes the last. */
tsr_status tsr_settings_check_sizes(const char *caller, const tsr_layout *layout, int *dim, int count,
                                    const int64_t *sizes);

/** Checks the number of operands in a list of an op that takes 1 to `most`. */
tsr_status tsr_settings_check_count(const char *caller, int count, int most, const char *name, const void *list);

#endif
