/** The arguments of kernels of ops: plain values that C fills in and CUDA C++ reads, copied at
 * launch. */
#ifndef TSR_DEVICE_CUDA_OPS_WORK_H
#define TSR_DEVICE_CUDA_OPS_WORK_H

#include "device/cuda/work.h"

/** The most dims of a tensor. */
#define TSR_CUDA_OP_DIMS 8

/** How elements are stored. */
typedef enum tsr_cuda_storage {
    TSR_CUDA_AS_F64,
    TSR_CUDA_AS_F32,
    TSR_CUDA_AS_F16,
    TSR_CUDA_AS_BF16,
    TSR_CUDA_AS_I64,
    TSR_CUDA_AS_I32,
    TSR_CUDA_AS_BOOL,
    TSR_CUDA_STORAGE_END
} tsr_cuda_storage;

/** X(name, row) for each pointwise op. Integers are divided rounding down; a condition is a byte, 0
 * or 1. */
#define TSR_CUDA_POINTWISE(X)                                                                                          \
    X(ADD, "add")                                                                                                      \
    X(SUB, "sub")                                                                                                      \
    X(MUL, "mul")                                                                                                      \
    X(DIV, "div")                                                                                                      \
    X(MAXIMUM, "maximum")                                                                                              \
    X(MINIMUM, "minimum")                                                                                              \
    X(SHARE_MAX, "share_max")                                                                                          \
    X(SHARE_MIN, "share_min")                                                                                          \
    X(NEG, "neg")                                                                                                      \
    X(ABS, "abs")                                                                                                      \
    X(SIGN, "sign")                                                                                                    \
    X(EXP, "exp")                                                                                                      \
    X(LOG, "log")                                                                                                      \
    X(SQRT, "sqrt")                                                                                                    \
    X(RSQRT, "rsqrt")                                                                                                  \
    X(TANH, "tanh")                                                                                                    \
    X(TANH_BACKWARD, "tanh_gradient")                                                                                  \
    X(SIGMOID, "sigmoid")                                                                                              \
    X(SIGMOID_BACKWARD, "sigmoid_gradient")                                                                            \
    X(SILU, "silu")                                                                                                    \
    X(SILU_BACKWARD, "silu_gradient")                                                                                  \
    X(SILU_MUL, "silu_mul")                                                                                            \
    X(RELU, "relu")                                                                                                    \
    X(RELU_BACKWARD, "relu_gradient")                                                                                  \
    X(GELU, "gelu")                                                                                                    \
    X(GELU_BACKWARD, "gelu_gradient")                                                                                  \
    X(SCALE, "scale")                                                                                                  \
    X(WHERE, "where")                                                                                                  \
    X(KEEP, "keep")                                                                                                    \
    X(DROP, "drop")                                                                                                    \
    X(COPY, "cast")                                                                                                    \
    X(VARY, "vary")                                                                                                    \
    X(POW, "pow")                                                                                                      \
    X(POW_BACKWARD, "pow_gradient")                                                                                    \
    X(EXPONENT_BACKWARD, "pow_exponent_gradient")                                                                      \
    X(CLAMP, "clamp")                                                                                                  \
    X(CLAMP_BACKWARD, "clamp_gradient")                                                                                \
    X(FILL, "masked_fill")                                                                                             \
    X(RECIPROCAL, "reciprocal")                                                                                        \
    X(SQUARE, "square")                                                                                                \
    X(FLOOR, "floor")                                                                                                  \
    X(CEIL, "ceil")                                                                                                    \
    X(ROUND, "round")                                                                                                  \
    X(EXPM1, "expm1")                                                                                                  \
    X(LOG1P, "log1p")                                                                                                  \
    X(LOG1P_BACKWARD, "log1p_gradient")                                                                                \
    X(SOFTPLUS, "softplus")                                                                                            \
    X(LEAKY_RELU, "leaky_relu")                                                                                        \
    X(LEAKY_RELU_BACKWARD, "leaky_relu_gradient")                                                                      \
    X(ELU, "elu")                                                                                                      \
    X(ELU_BACKWARD, "elu_gradient")                                                                                    \
    X(CORRECTION, "bias_correction")                                                                                   \
    X(FLOOR_DIVIDE, "floor_divide")                                                                                    \
    X(REMAINDER, "remainder")                                                                                          \
    X(EQ, "eq")                                                                                                        \
    X(NE, "ne")                                                                                                        \
    X(LT, "lt")                                                                                                        \
    X(LE, "le")                                                                                                        \
    X(GT, "gt")                                                                                                        \
    X(GE, "ge")                                                                                                        \
    X(ISNAN, "isnan")                                                                                                  \
    X(ISINF, "isinf")                                                                                                  \
    X(ISFINITE, "isfinite")                                                                                            \
    X(AND, "logical_and")                                                                                              \
    X(OR, "logical_or")                                                                                                \
    X(NOT, "logical_not")

typedef enum tsr_cuda_pointwise_code {
#define CODE(name, row) TSR_CUDA_##name,
    TSR_CUDA_POINTWISE(CODE)
#undef CODE
        TSR_CUDA_POINTWISE_END
} tsr_cuda_pointwise_code;

/** One tensor of a walk: a stride in bytes for each dim of the walk, 0 where it is repeated. */
typedef struct tsr_cuda_view {
    unsigned char *data;
    int64_t strides[TSR_CUDA_OP_DIMS];
    int32_t storage;
} tsr_cuda_view;

/** A pointwise op; the output is the last tensor. At most TSR_CUDA_UNITS elements. */
typedef struct tsr_cuda_elements {
    tsr_cuda_view tensors[4];
    double parameters[2];
    uint32_t units;
    int32_t code, inputs, ndim;
    tsr_cuda_divisor by[TSR_CUDA_OP_DIMS]; /**< by the sizes, innermost dim first, as strides are */
} tsr_cuda_elements;

/** The updates of optimizers. */
typedef enum tsr_cuda_update_code {
    TSR_CUDA_UPDATE_SGD,
    TSR_CUDA_UPDATE_MOMENTUM,
    TSR_CUDA_UPDATE_ADAMW,
    TSR_CUDA_UPDATE_LION
} tsr_cuda_update_code;

/** The most tensors of an update. */
#define TSR_CUDA_UPDATE_TENSORS 7

/** An update: the weight, its gradient and the states, then what the weight and the states become.
 * At most TSR_CUDA_UNITS elements. */
typedef struct tsr_cuda_update {
    tsr_cuda_view tensors[TSR_CUDA_UPDATE_TENSORS];
    const unsigned char *kept, *rate, *root; /**< of the type of the computation; NULL: there is none */
    const unsigned char *first, *finite;     /**< bools; NULL: left out */
    double beta1, beta2, epsilon, weight_decay, momentum, dampening;
    uint32_t units;
    int32_t code, states, ndim, nesterov, maximizes;
    int32_t is_wide; /**< computed in f64 */
    tsr_cuda_divisor by[TSR_CUDA_OP_DIMS];
} tsr_cuda_update;

/** X(name, type) for each type in which updates compute. */
#define TSR_CUDA_UPDATE_TYPES(X) X(f64, double) X(f32, float)

/** X(name, row, number of statistics) for each op over rows. */
#define TSR_CUDA_NORMS(X)                                                                                              \
    X(SOFTMAX, "softmax", 2)                                                                                           \
    X(LOG_SOFTMAX, "log_softmax", 2)                                                                                   \
    X(SOFTMAX_GRADIENT, "softmax_gradient", 1)                                                                         \
    X(LOG_SOFTMAX_GRADIENT, "log_softmax_gradient", 1)                                                                 \
    X(RMS, "rms_norm", 1)                                                                                              \
    X(RMS_GRADIENT, "rms_norm_gradient", 2)                                                                            \
    X(LAYER, "layer_norm", 3)                                                                                          \
    X(LAYER_GRADIENT, "layer_norm_gradient", 5)

typedef enum tsr_cuda_norm_code {
#define CODE(name, row, statistics) TSR_CUDA_NORM_##name,
    TSR_CUDA_NORMS(CODE)
#undef CODE
        TSR_CUDA_NORM_END
} tsr_cuda_norm_code;

/** The most statistics of a row. */
#define TSR_CUDA_STATISTICS 5

/** Dims of the walk, innermost first; its strides are those of views. */
typedef struct tsr_cuda_walk {
    int32_t ndim;
    uint32_t count; /**< product of the sizes */
    tsr_cuda_divisor by[TSR_CUDA_OP_DIMS];
} tsr_cuda_walk;

/** A tensor of an op over rows: strides in bytes from row to row, and within one. NULL: it is left
 * out. */
typedef struct tsr_cuda_row_view {
    unsigned char *data;
    int64_t across[TSR_CUDA_OP_DIMS], along[TSR_CUDA_OP_DIMS];
} tsr_cuda_row_view;

/** An op over rows, whose tensors are all stored alike: a block for each row. */
typedef struct tsr_cuda_norm {
    tsr_cuda_row_view in[2], out, weight, bias; /**< out may be left out, too */
    tsr_cuda_row_view sums[2];                  /**< gradients of weight and bias */
    tsr_cuda_walk across, along;
    double epsilon;
    double *kept; /**< TSR_CUDA_STATISTICS of each row, for that kernel; or NULL */
    int32_t code, storage, statistics;
    int32_t counted; /**< 0: the sums over rows are another rank's, and -0 here */
} tsr_cuda_norm;

/** Elements that a block of the kernel of sums takes side by side, and threads for each. */
#define TSR_CUDA_SUM_COLUMNS 32
#define TSR_CUDA_SUM_LANES   (TSR_CUDA_THREADS / TSR_CUDA_SUM_COLUMNS)

/** X(name, row, operand with ids) for each op that reads or adds where ids say. */
#define TSR_CUDA_INDEXING(X)                                                                                           \
    X(EMBEDDING, "embedding", "ids")                                                                                   \
    X(EMBEDDING_GRADIENT, "embedding_gradient", "ids")                                                                 \
    X(INDEX_SELECT, "index_select", "index")                                                                           \
    X(INDEX_SELECT_GRADIENT, "index_select_gradient", "index")                                                         \
    X(GATHER, "gather", "index")                                                                                       \
    X(GATHER_GRADIENT, "gather_gradient", "index")                                                                     \
    X(SCATTER_ADD, "scatter_add", "index")

typedef enum tsr_cuda_indexing_code {
#define CODE(name, row, ids) TSR_CUDA_INDEX_##name,
    TSR_CUDA_INDEXING(CODE)
#undef CODE
        TSR_CUDA_INDEX_END
} tsr_cuda_indexing_code;

/** Positions of a dim that this rank has: `count` times `length` of them, from `begin` on and every
 * `period`. They follow one another in its memory, from `local` on. */
typedef struct tsr_cuda_run {
    int64_t begin, length, period, count, local;
} tsr_cuda_run;

/** Runs that one launch takes, and those that tell where an id is in its whole tensor. */
#define TSR_CUDA_RUNS       32
#define TSR_CUDA_INDEX_RUNS 2

/** What is known of an id: its place in this rank's part of the table, or -1; the next id of the
 * same place, or -1; and whether one of the same place comes before it. */
typedef struct tsr_cuda_entry {
    int64_t place;
    int32_t next, is_later;
} tsr_cuda_entry;

/** The first position of a block of which the ids are all in range. */
#define TSR_CUDA_NO_POSITION UINT32_MAX

/** Ids whose entries are made. The first launch of several makes them all, later ones complete
 * those whose places are in runs of their own. */
typedef struct tsr_cuda_ids {
    tsr_cuda_view view;
    tsr_cuda_walk walk;
    tsr_cuda_entry *entries;
    uint32_t *firsts; /**< of each block, the first position of an id that is out of range */
    int64_t size;     /**< ids are below it */
    int32_t run_count, is_later;
    tsr_cuda_run runs[TSR_CUDA_RUNS];
} tsr_cuda_ids;

/** An id that is out of range, in memory that the host reads. */
typedef struct tsr_cuda_fault {
    int32_t is_set; /**< written last by the device, and cleared by the host */
    int32_t code, rank, ndim;
    int32_t is_whole; /**< 0: the index is that in the rank's shard */
    int64_t id, size, index[TSR_CUDA_OP_DIMS];
} tsr_cuda_fault;

/** What is told of the first id that is out of range. */
typedef struct tsr_cuda_report {
    tsr_cuda_view view;
    tsr_cuda_walk walk;
    const uint32_t *firsts;
    uint32_t blocks;
    int32_t code, rank, is_whole;
    int64_t size;
    tsr_cuda_fault *fault;
    tsr_cuda_run runs[TSR_CUDA_OP_DIMS][TSR_CUDA_INDEX_RUNS]; /**< of dims as the walk has them */
} tsr_cuda_report;

/** Entries in lines, a block for each: `length` entries, `inner` apart. `last` has, for each line
 * and place, the first entry of those that were linked; NULL where a line has no more entries than
 * a block has threads. */
typedef struct tsr_cuda_links {
    tsr_cuda_entry *entries;
    int32_t *last;
    int64_t places;
    uint32_t length, inner;
} tsr_cuda_links;

/** Elements of a table and those of another tensor, which are read from it or added to it. The walk
 * is over the other tensor; an element's place in the dim that is indexed is that of its entry. */
typedef struct tsr_cuda_slices {
    unsigned char *table, *other;
    const tsr_cuda_entry *entries;
    int64_t first;                                                            /**< entry of the first element */
    int64_t step;                                                             /**< bytes from one place to the next */
    int64_t table_strides[TSR_CUDA_OP_DIMS], other_strides[TSR_CUDA_OP_DIMS]; /**< in bytes */
    int64_t entry_strides[TSR_CUDA_OP_DIMS];
    tsr_cuda_walk walk;
    tsr_cuda_pattern nothing; /**< read where an id is another rank's */
    int32_t log_width;        /**< of units that are read */
    int32_t storage;          /**< of elements that are added */
    tsr_cuda_walk chain;      /**< over entries: where in the other tensor the elements lie */
    int64_t chain_strides[TSR_CUDA_OP_DIMS];
} tsr_cuda_slices;

/** Lists of rows, in memory of the device; addresses are numbers. The sources of row r are those
 * from starts[r] to below starts[r + 1]. */
typedef struct tsr_cuda_rows {
    const int64_t *targets, *starts, *sources;
    tsr_cuda_divisor by; /**< by the elements, or units, of a row */
    uint32_t units;      /**< of all rows */
    int32_t log_width;   /**< of units that are copied */
    int32_t op;          /**< a tsr_cuda_op */
    int32_t keeps, divides;
} tsr_cuda_rows;

#endif
