/**
 * @file
 * Optimizers of sharded tables whose gradients come as ids and rows: SGD, Adagrad, row-wise Adagrad
 * and Adam, with the formulas of PyTorch, DGL and torchrec. A gradient of the table's size is never
 * made.
 *
 * Each rank brings ids and the gradients of their rows, as it does for tsr_rows_update(): rows.h
 * says of tables, ids, rows, their order, ranks and errors what holds here too. Each owner adds up
 * the rows of an id, takes one step with the sum, and changes the table's row and its states.
 * Tables, ids and rows are on the host. Optimizers are not thread-safe: an optimizer belongs to its
 * communicator's handle.
 *
 * @par Formulas
 * docs/sparse.md quotes them. Of an id's rows g is the sum, or the mean; with `weight_decay`, plus
 * weight_decay times the table's row. A step is taken in f64 for tables of f64, else in f32; a
 * narrow table's row is rounded once.
 *
 * @par States
 * What an optimizer keeps of a table is in dtensors, which are cut as the table is, in f64 for f64
 * tables, else in f32; numbers of steps are i64. They have PyTorch's names:
 *
 *     SGD with momentum    momentum_buffer, shaped as the table
 *     Adagrad              sum, shaped as the table
 *     row-wise Adagrad     sum (rows), whole where the table's columns are cut
 *     Adam                 exp_avg and exp_avg_sq, shaped as the table, and step: by global steps
 *                          one number (), else (rows), whole where the table's columns are cut
 *
 * They are all that a checkpoint needs beside the table and the learning rate.
 */
#ifndef TESSERA_SPARSE_H
#define TESSERA_SPARSE_H

#include <tessera/dtensor.h>

#ifdef __cplusplus
extern "C" {
#endif

/** How a row is changed by its gradient. */
typedef enum tsr_sparse_kind {
    TSR_SPARSE_SGD = 0,         /**< torch.optim.SGD */
    TSR_SPARSE_ADAGRAD,         /**< torch.optim.Adagrad, DGL's SparseAdagrad */
    TSR_SPARSE_ROWWISE_ADAGRAD, /**< torchrec's RowWiseAdagrad: one sum a row, of the mean of its
                                     squares */
    TSR_SPARSE_ADAM,            /**< torch.optim.SparseAdam, DGL's SparseAdam */
    TSR_SPARSE_KIND_END
} tsr_sparse_kind;

/** "sgd", "adagrad", "rowwise_adagrad" or "adam"; "none" for anything else. Static. */
TSR_API const char *tsr_sparse_kind_name(tsr_sparse_kind kind);

/** What the gradient of a row is that a step names several times. */
typedef enum tsr_sparse_duplicates {
    TSR_SPARSE_DUPLICATES_SUM = 0, /**< PyTorch, torchrec */
    TSR_SPARSE_DUPLICATES_MEAN,    /**< DGL */
    TSR_SPARSE_DUPLICATES_END
} tsr_sparse_duplicates;

/** Which steps count for a row. */
typedef enum tsr_sparse_steps {
    TSR_SPARSE_STEPS_GLOBAL = 0, /**< all, as in PyTorch. Adam corrects by the number of all steps.
                                      With SGD, momentum and weight decay change every row in each
                                      step, also where no rank names it */
    TSR_SPARSE_STEPS_ROW,        /**< those that name it, as in DGL */
    TSR_SPARSE_STEPS_END
} tsr_sparse_steps;

/** Options of tsr_sparse_optimizer_create(). All ranks give the same. */
typedef struct tsr_sparse_options {
    size_t size; /**< sizeof(tsr_sparse_options) */
    tsr_sparse_kind kind;
    tsr_sparse_duplicates duplicates;
    tsr_sparse_steps steps; /**< of Adam and SGD; Adagrad has one formula */
    double learning_rate;   /**< 0 or more */
    double momentum;        /**< of SGD, 0 or more */
    double beta1, beta2;    /**< of Adam, from 0 to below 1 */
    double epsilon;         /**< of Adagrad and Adam, 0 or more; -1: 1e-8 for Adam, else 1e-10 */
    double weight_decay;    /**< 0 or more */
    double initial_accumulator; /**< of Adagrad: what sums begin with, 0 or more */
    int epsilon_in_root;        /**< 1: epsilon is added to what a root is taken of, as in the
                                     Adagrad of DGL's NodeEmbedding; 0: to the root */
} tsr_sparse_options;

/** SGD as in PyTorch, at a learning rate of 0.01. */
#define TSR_SPARSE_OPTIONS_INIT                                                                    \
    {                                                                                              \
        sizeof(tsr_sparse_options), TSR_SPARSE_SGD, TSR_SPARSE_DUPLICATES_SUM,                     \
            TSR_SPARSE_STEPS_GLOBAL, 0.01, 0, 0.9, 0.999, -1, 0, 0, 0                              \
    }

/** Tables, their states and options. */
typedef struct tsr_sparse_optimizer tsr_sparse_optimizer;

/**
 * Collective: an optimizer of `count` tables, 1 or more, on one mesh object or equal meshes over
 * one communicator. Shapes, floating dtypes and placements may differ; each table stands once. A
 * step is for at most `capacity` ids of a rank and table; capacities may differ between ranks.
 *
 * The optimizer retains the tables, and makes their states. The caller owns `*out`. NULL `options`
 * are the defaults. TSR_ERROR_ARGUMENT: an option is out of range, or differs between ranks; no
 * table, or one that is NULL, on another mesh or given twice; a negative capacity.
 * TSR_ERROR_UNSUPPORTED: a table on a device, or of a dtype that is not a float; row-wise Adagrad
 * with weight decay of a table whose columns are cut; else as tsr_rows_update(). A rank without a
 * first table returns alone.
 */
TSR_API tsr_status tsr_sparse_optimizer_create(size_t count, tsr_dtensor *const *tables,
                                               int64_t capacity, const tsr_sparse_options *options,
                                               tsr_sparse_optimizer **out);

/** Frees an optimizer and its references to tables and states; NULL is fine. Does not
 * communicate. */
TSR_API void tsr_sparse_optimizer_destroy(tsr_sparse_optimizer *optimizer);

/**
 * Collective: one step of all tables, in one exchange. ids[i] (n), i32 or i64, and their gradients
 * rows[i] (n, ..), of the table's dtype, are this rank's for tables[i]; n may be 0. Every call
 * counts as a global step. Later calls allocate nothing, as those of tsr_rows_plan_update().
 *
 * Errors as tsr_rows_plan_update(): after those of arguments, peers and memory, tables and states
 * are as they were. TSR_ERROR_ARGUMENT also if learning rates differ between ranks.
 */
TSR_API tsr_status tsr_sparse_optimizer_step(tsr_sparse_optimizer *optimizer, const tsr_tensor *ids,
                                             const tsr_tensor *rows);

/** Sets the learning rate of later steps, 0 or more; each rank sets the same. Does not
 * communicate. */
TSR_API tsr_status tsr_sparse_optimizer_set_learning_rate(tsr_sparse_optimizer *optimizer,
                                                          double learning_rate);

/** The learning rate; 0 for NULL. */
TSR_API double tsr_sparse_optimizer_learning_rate(const tsr_sparse_optimizer *optimizer);

/** The name of state `i` of each table, counted from 0; NULL: there are no more. Static. */
TSR_API const char *tsr_sparse_optimizer_state_name(const tsr_sparse_optimizer *optimizer,
                                                    size_t i);

/** The state called `name` of the table with number `table`; NULL: that table has no such state.
 * The optimizer owns it. Any call for dtensors may read it for a checkpoint, or write a
 * checkpoint's values into it. */
TSR_API tsr_dtensor *tsr_sparse_optimizer_state(const tsr_sparse_optimizer *optimizer, size_t table,
                                                const char *name);

/**
 * The gradient of an embedding as ids and rows, for tsr_sparse_optimizer_step(): views of what this
 * rank has of `ids` (..) and of `dout` (.., features), the gradient of what tsr_embedding() gave
 * for them. Does not communicate, and copies nothing: both must live until the step is done. Any
 * thread.
 *
 * Ids and dout are cut alike, so that every rank has the same ids of both, in any words ("S(0)" and
 * "S(0;balanced)" of 6 over 2 ranks are alike), and rows are whole. On mesh dims that replicate
 * both, coordinate 0 brings the rows, and other ranks none. Where dout is Partial(sum) each rank
 * brings its term: right where duplicates are summed. TSR_ERROR_ARGUMENT: a NULL; other shapes; ids
 * that are not i32 or i64. TSR_ERROR_UNSUPPORTED: features are cut, ids and dout are cut
 * differently, another Partial, or local tensors that are not contiguous.
 */
TSR_API tsr_status tsr_sparse_gradient(const tsr_dtensor *ids, const tsr_dtensor *dout,
                                       tsr_tensor *named, tsr_tensor *rows);

#ifdef __cplusplus
}
#endif

#endif
