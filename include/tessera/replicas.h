/**
 * @file
 * Data parallelism inside one process: a program is replicated on ranks that are threads, a batch
 * is scattered over them along dim 0, outputs are gathered, and gradients are added into the
 * caller's. PyTorch's torch.nn.DataParallel, with its scatter, parallel_apply and gather.
 *
 * @par The program
 * It is that of one replica, recorded on a mesh of one rank without a communicator
 * (tsr_mesh_parse(NULL, context, "1", ..)). The rows of a replica's part are a length of the
 * program (tsr_length()), of the name options.rows. Its maximum, 2 or more, is the most rows of a
 * part, and memory is that of this maximum.
 * - Inputs whose dim 0 is this length, or a multiple of it, have rows, and are scattered. Every
 *   replica is given the others whole.
 * - Outputs whose dim 0 is this length, or a multiple, have rows, and are gathered.
 * - The output `d.NAME` of a parameter NAME, of its shape, is its gradient. It is added into the
 *   memory that tsr_replicas_bind() names; the `outputs` of a run leave it out.
 * - Other outputs, such as a loss, are reduced as gradients are.
 *
 * @par Reductions
 * TSR_REPLICAS_SUM adds what replicas make, as fits a loss that is a sum over rows. With
 * TSR_REPLICAS_MEAN each counts by its rows' share of all rows: where the loss is a mean over rows,
 * loss and gradients are those of the whole batch, with parts of different sizes too. Terms are
 * added in f64, in the order of ranks, and rounded once, when the sum is added to the caller's
 * gradient. So bits depend on the batches and the number of ranks, never on time.
 *
 * @par Memory
 * All tensors lie on the host. Replicas read parameters, whole inputs and rows in the caller's
 * memory, and write rows there. Each replica has a workspace, and memory for its gradients. A call
 * with as many rows for each rank as the one before plans and allocates nothing. A rank with
 * another number makes layouts for it. Memory is also allocated by the first call with more batches
 * than ranks, and by one with strides for which a kernel wants more workspace; then it is kept.
 *
 * @par Errors
 * The lowest rank that failed is told, with its number, rows or batch, and sentence, in which rows
 * count from 0 in the rank's own. Gradients then are as they were, and other outputs undefined. The
 * next call works.
 */
#ifndef TESSERA_REPLICAS_H
#define TESSERA_REPLICAS_H

#include <tessera/executable.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A program on several ranks, with their threads. One call at a time, by any thread; another call
 * meanwhile is TSR_ERROR_STATE. */
typedef struct tsr_replicas tsr_replicas;

/** How gradients of replicas, and outputs without rows, become one. */
typedef enum tsr_replicas_reduce {
    TSR_REPLICAS_SUM = 0, /**< their sum */
    TSR_REPLICAS_MEAN     /**< their mean, where each counts by its rows */
} tsr_replicas_reduce;

/** Options of replicas. */
typedef struct tsr_replicas_options {
    size_t size; /**< sizeof(tsr_replicas_options) */
    tsr_replicas_reduce reduce;
    const char *rows; /**< the name of the program's length that counts the rows of a part */
} tsr_replicas_options;

/** Sums, of a program whose length is "rows". */
#define TSR_REPLICAS_OPTIONS_INIT                                                                  \
    {                                                                                              \
        sizeof(tsr_replicas_options), TSR_REPLICAS_SUM, "rows"                                     \
    }

/**
 * Compiles a program for `ranks` ranks, from 1 on, and starts a thread for each, which waits for
 * calls. `options` may be NULL. The program may change, or go, afterwards. The caller owns `*out`.
 * A program without a length options.rows is fine for tsr_replicas_apply(), where each batch then
 * counts as one row.
 *
 * TSR_ERROR_ARGUMENT: the program's first error, or a mesh has more ranks than one or a
 * communicator, or an option is out of range; the rows are in another dim than 0, their number
 * there is no multiple of the length, no input has them, or the length's maximum is 1; a gradient
 * has another shape than its parameter. TSR_ERROR_UNSUPPORTED: the program has a state, which
 * replicas would write at once, or an output of integers without rows, of which there is no mean.
 * TSR_ERROR_MEMORY: there are too few threads or too little memory.
 */
TSR_API tsr_status tsr_replicas_create(const tsr_program *program, int ranks,
                                       const tsr_replicas_options *options, tsr_replicas **out);

/** Ends the threads, and frees all; NULL is fine. No call is in flight. */
TSR_API void tsr_replicas_destroy(tsr_replicas *replicas);

/**
 * Gives a parameter its value, on the host, with any strides, and the memory into which its
 * gradient is added, in place of those that were given before. Both are borrowed, and stay as long
 * as the replicas, or until they are given anew; between calls the caller may change what they
 * hold. `gradient` is of any floating dtype, contiguous, and of the parameter's shape; NULL: it is
 * not wanted. Does not communicate.
 *
 * TSR_ERROR_ARGUMENT: there is no such parameter, a tensor does not fit it, or the program has no
 * output `d.NAME` although `gradient` is given.
 */
TSR_API tsr_status tsr_replicas_bind(tsr_replicas *replicas, const char *name,
                                     const tsr_tensor *value, const tsr_tensor *gradient);

/** Gives another length than that of the rows for the calls that follow, as
 * tsr_executable_set_length() does; after an error lengths are as they were. */
TSR_API tsr_status tsr_replicas_set_length(tsr_replicas *replicas, const char *name,
                                           int64_t length);

/** Gives a key (tsr_run_key()) for the calls that follow, as tsr_executable_set_key() does. Part i
 * of a batch, or batch i of several, draws by tsr_random_key_fold_in(key, i), so that parts do not
 * drop the same elements. */
TSR_API tsr_status tsr_replicas_set_key(tsr_replicas *replicas, const char *name,
                                        const tsr_random_key *key);

/**
 * Runs one batch, scattered as the layout S(0) cuts it: parts of ceil(rows / ranks) rows as long as
 * rows last, so that ranks may get fewer, or none, and then run nothing. `inputs` has a tensor for
 * each input of the program in the order of recording, and `outputs` one for each output that is no
 * gradient of a parameter. Both have the whole batch's rows, and any strides; outputs without rows
 * are contiguous. Outputs overlap nothing.
 *
 * A batch without rows changes no gradient, and sums and means of its outputs are 0.
 *
 * TSR_ERROR_ARGUMENT: a tensor does not fit, inputs differ in rows, the program has no length of
 * rows, or a part would have more rows than its maximum; the sentence says how many fit.
 * TSR_ERROR_STATE: a parameter is not bound, a key is not set, or another call is in flight. Other
 * errors are those of a rank's run.
 */
TSR_API tsr_status tsr_replicas_run(tsr_replicas *replicas, const tsr_tensor *inputs,
                                    const tsr_tensor *outputs);

/**
 * Runs `count` batches, 0 or more, each whole on one rank: batch i on rank i mod ranks, and those
 * of one rank one after the other. Their rows may differ, each up to the maximum. `inputs` has the
 * inputs of the first batch, then those of the second, and so on; `outputs` has the same order.
 * Each batch has outputs of its own, without rows too. Gradients of all batches are added at the
 * end: first those of each rank in order, then the ranks'. A batch without rows is not run; its
 * outputs without rows are 0. Otherwise as tsr_replicas_run(); the sentence of an error names the
 * batch, too.
 */
TSR_API tsr_status tsr_replicas_apply(tsr_replicas *replicas, size_t count,
                                      const tsr_tensor *inputs, const tsr_tensor *outputs);

/** A parameter for tsr_data_parallel(), as tsr_replicas_bind() takes it. */
typedef struct tsr_replicas_binding {
    const char *name;
    const tsr_tensor *value;
    const tsr_tensor *gradient; /**< NULL: it is not wanted */
} tsr_replicas_binding;

/**
 * All in one call, for one batch: makes the replicas, binds `count` parameters, runs as
 * tsr_replicas_run() does, and destroys the replicas. PyTorch's data_parallel(). It compiles and
 * starts threads each time; loops keep tsr_replicas. Errors are those of the calls that it makes.
 */
TSR_API tsr_status tsr_data_parallel(const tsr_program *program, int ranks,
                                     const tsr_replicas_options *options, size_t count,
                                     const tsr_replicas_binding *bindings, const tsr_tensor *inputs,
                                     const tsr_tensor *outputs);

#ifdef __cplusplus
}
#endif

#endif
