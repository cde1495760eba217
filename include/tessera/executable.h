/**
 * @file
 * Executables: a program compiled for one rank. Every layout is fixed, redistributions are planned
 * and memory is assigned, so that a run decides nothing. XLA's executables, CUDA graphs.
 *
 * @par Devices
 * An executable is compiled for one device: the host, or that of tsr_compile_options. On a device
 * inputs, outputs, parameters, states and workspace lie in its memory, and a run only enqueues, on
 * the caller's stream. Inputs that give the positions of tsr_op_store() lie on the host
 * (tsr_executable_input_device()): a run reads them before it returns. The positions of all other
 * stores must be constants. Ops run by the kernels of the device's table, or by its gemm; views and
 * copies by copies of boxes.
 */
#ifndef TESSERA_EXECUTABLE_H
#define TESSERA_EXECUTABLE_H

#include <tessera/plan.h>
#include <tessera/program.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One rank's part of a program. One run at a time; else immutable. */
typedef struct tsr_executable tsr_executable;

/** Options of tsr_compile(). */
typedef struct tsr_compile_options {
    size_t size;  /**< sizeof(tsr_compile_options) */
    int64_t rank; /**< the rank whose part is made; TSR_RANK_DEFAULT: this process's rank in the
                       communicator of the program's meshes */
    tsr_device device; /**< on which the rank's tensors lie; its driver must outlive the executable.
                            All zero: the host */
} tsr_compile_options;

/** This process's own part, on the host. */
#define TSR_COMPILE_OPTIONS_INIT                                                                   \
    {                                                                                              \
        sizeof(tsr_compile_options), TSR_RANK_DEFAULT,                                             \
        {                                                                                          \
            TSR_NULL, 0                                                                            \
        }                                                                                          \
    }

/**
 * Compiles what the program's outputs need, for one rank. `options` may be NULL. The program may
 * change, or go, afterwards. The caller owns `*out`. Pure: it neither communicates nor computes on
 * a device, which is only asked how much workspace its kernels want, and every rank derives the
 * same sequence of meetings by itself. What the device cannot do, tsr_executable_prepare() tells.
 *
 * TSR_ERROR_ARGUMENT: the program's first error, or it has no output, or its meshes are abstract
 * and no rank is given, or the device's index is not one.
 */
TSR_API tsr_status tsr_compile(const tsr_program *program, const tsr_compile_options *options,
                               tsr_executable **out);

/** Frees an executable; NULL is fine. Does not communicate. */
TSR_API void tsr_executable_destroy(tsr_executable *executable);

/** The number of inputs, which tsr_executable_run() takes in the order of their recording, those
 * that no output needs too. */
TSR_API size_t tsr_executable_input_count(const tsr_executable *executable);

/** The number of outputs. */
TSR_API size_t tsr_executable_output_count(const tsr_executable *executable);

/** The layout of an input, borrowed; NULL: there is none. */
TSR_API const tsr_layout *tsr_executable_input_layout(const tsr_executable *executable,
                                                      size_t index);

/** The device on which a run takes an input: that of the executable, or the host for an input that
 * gives stores their positions. The host where there is no such input. */
TSR_API tsr_device tsr_executable_input_device(const tsr_executable *executable, size_t index);

/** The layout of an output, borrowed; NULL: no output has this index. Its mesh is the program's. A
 * loaded executable has an abstract mesh, on which no dtensor can be made. */
TSR_API const tsr_layout *tsr_executable_output_layout(const tsr_executable *executable,
                                                       size_t index);

/** @{ */
/** The name of an input, or of an output; borrowed; NULL: there is none. */
TSR_API const char *tsr_executable_input_name(const tsr_executable *executable, size_t index);
TSR_API const char *tsr_executable_output_name(const tsr_executable *executable, size_t index);
/** @} */

/** The program's value of an output; TSR_NONE: there is none. */
TSR_API tsr_value tsr_executable_output_value(const tsr_executable *executable, size_t index);

/** Bytes of workspace that a run needs on this rank, in the memory of its device. They may change
 * when an executable over abstract meshes is prepared, and grow when a length is set, and when a
 * run is given tensors with strides, for which some kernels want memory: then tsr_executable_run()
 * refuses less and says how many. */
TSR_API size_t tsr_executable_workspace_bytes(const tsr_executable *executable);

/** A parameter or state of an executable. Pointers are borrowed. */
typedef struct tsr_executable_binding {
    const char *name;
    const tsr_layout *layout; /**< on the program's mesh */
    int is_state;             /**< 1: stores may change it */
    int is_needed;            /**< 0: no output or store depends on it, so it need not be bound */
} tsr_executable_binding;

/** The number of parameters and states, in the order of recording. */
TSR_API size_t tsr_executable_binding_count(const tsr_executable *executable);

/** Tells of a parameter or state what tsr_executable_bind() wants, so that weights can be loaded as
 * the program asks for them. TSR_ERROR_ARGUMENT: there is none at `index`. */
TSR_API tsr_status tsr_executable_binding_at(const tsr_executable *executable, size_t index,
                                             tsr_executable_binding *out);

/**
 * Gives a parameter or state its tensor, in place of one that was given before. The dtensor is
 * retained; executables may share it. A state's must have no other name in this executable, because
 * what is stored would change both; this is not checked. Does not communicate. TSR_ERROR_ARGUMENT:
 * the program has no such name, or the dtensor's layout is not the one that the program gives, or
 * it lies on another device than the executable's; the sentence tells both.
 */
TSR_API tsr_status tsr_executable_bind(tsr_executable *executable, const char *name,
                                       tsr_dtensor *tensor);

/**
 * Collective over `comm`: compares the programs of all ranks, and makes the groups in which ranks
 * meet. Once for each communicator. After an error, which all ranks get, it may be called again; a
 * rank without an executable passes NULL, of which its peers hear. On a device it fills constants
 * there and waits for it. TSR_ERROR_PEER, on every rank: another rank has another program, or
 * another kind of device, or failed. TSR_ERROR_UNSUPPORTED: the device has no kernel for an op, or
 * ranks meet inside an op, or the position of a store lies on the device; the sentence names op and
 * device. TSR_ERROR_UNAVAILABLE: there is no device of this index.
 */
TSR_API tsr_status tsr_executable_prepare(tsr_executable *executable, tsr_comm *comm);

/**
 * Gives a length (tsr_length()) for the runs that follow; before, it is its maximum. Collective
 * over the communicator of tsr_executable_prepare(), where a redistribution depends on the length
 * and has not had it lately; every rank gives the same. After an error the lengths are as they
 * were. TSR_ERROR_ARGUMENT: there is no such length, or it is not from 1 to the maximum.
 * TSR_ERROR_STATE: not prepared. TSR_ERROR_PEER: another rank failed.
 */
TSR_API tsr_status tsr_executable_set_length(tsr_executable *executable, const char *name,
                                             int64_t length);

/**
 * Gives a key (tsr_run_key()) for the runs that follow, until it is given another one. Every rank
 * gives the same, for example one of the number of the run. This is compared where ranks meet
 * inside an op, and such a run fails with TSR_ERROR_PEER; elsewhere replicas would differ. Neither
 * communicates nor allocates; steps that do not use the key stay as they are. TSR_ERROR_ARGUMENT:
 * the program has no such key, or it is of another generator; the key is NULL, has no generator, or
 * is one of tsr_run_key() itself.
 */
TSR_API tsr_status tsr_executable_set_key(tsr_executable *executable, const char *name,
                                          const tsr_random_key *key);

/**
 * Collective over the ranks of `comm`: runs the program. `inputs` and `outputs` have a local tensor
 * for each, of the local shape of its layout on this rank, with any strides; a rank outside a
 * value's mesh gives any. Outputs overlap nothing, and inputs no state. `workspace` has `bytes` >=
 * tsr_executable_workspace_bytes(), aligned to 64. Allocates and plans nothing. On the host
 * `stream` is NULL.
 *
 * On a device all of this is in its memory, but for inputs whose tsr_executable_input_device() is
 * the host, and the run enqueues on `stream`, of which NULL is the default one; it waits for no
 * stream. What it reads and writes, workspace included, stays until the stream is done; another run
 * on the same stream may follow at once. What only the device finds, such as ids out of range, is
 * TSR_ERROR_STATE of the next run on the stream, or of a later op of this one (docs/ops.md). After
 * TSR_ERROR_DEVICE on some rank, every rank waits for its stream, and for its peers, before it runs
 * again: what was not enqueued may be what ordered the ranks' streams.
 *
 * TSR_ERROR_STATE: not prepared on `comm`, a parameter is not bound, or a key is not set.
 * TSR_ERROR_ARGUMENT: a tensor does not fit. TSR_ERROR_PEER: another rank failed, which the
 * sentence names. A rank that fails goes on meeting the others, so that nobody hangs; `outputs` are
 * then undefined, and the sentence names the first state that the run may have written, and how
 * many more. A rank that fails after the last meeting of the run does so alone. The next run works.
 */
TSR_API tsr_status tsr_executable_run(tsr_executable *executable, tsr_comm *comm,
                                      const tsr_tensor *inputs, const tsr_tensor *outputs,
                                      void *workspace, size_t bytes, tsr_stream stream);

/** What a step of a run does on this rank. Pointers are borrowed from the executable. */
typedef struct tsr_executable_step {
    const char
        *op; /**< the op's name; "move": a redistribution; "copy": of a value into an output */
    const char *cause; /**< of a move that the policy put in, the op or output that needs it; NULL:
                            the program says this step */
    int operand_count, result_count;
    tsr_value operands[TSR_OP_MOST_OPERANDS]; /**< the program's values; TSR_NONE: left out */
    tsr_value results[TSR_OP_MOST_RESULTS];   /**< of a copy none */
    const tsr_layout *operand_layouts[TSR_OP_MOST_OPERANDS];
    const tsr_layout *result_layouts[TSR_OP_MOST_RESULTS];
    int is_view;            /**< 1: it costs nothing, because its result lies over the operand's
                                 memory */
    int shares;             /**< 1: a move that shares the exchange of the step before it, whose
                                 seconds are those of both */
    int group;              /**< pointwise steps, and stores, with one number pass the caches
                                 together: what they make and read again is in caches then; -1: the
                                 step runs by itself */
    size_t first, last;     /**< it is at work from before step `first` to before step `last`: in
                                 its own place alone, or, of a move that travels while other steps
                                 run, for longer */
    int64_t bytes_received; /**< from other ranks */
    int64_t bytes_touched;  /**< of operands read and results written; in a group of each tensor
                                 once, and not of those that are never whole in memory */
    int64_t flops;          /**< multiplications and additions of products; 0: of other ops */
    double seconds;         /**< by the cost model */
} tsr_executable_step;

/** What a run costs this rank. */
typedef struct tsr_executable_figures {
    int64_t bytes_received; /**< from other ranks */
    int64_t flops;          /**< of products */
    size_t workspace_bytes; /**< tsr_executable_workspace_bytes() */
    size_t parameter_bytes; /**< of this rank's shards of parameters and constants that are used */
    size_t input_bytes, output_bytes; /**< of its shards of inputs and outputs */
    size_t peak_bytes;                /**< of all of these together */
    double seconds;                   /**< by the cost model: of all steps, one after the other */
} tsr_executable_figures;

/** What the memory of a run is for, in bytes of this rank. That of the workspace is told at the
 * step at which most of it is in use. */
typedef struct tsr_executable_memory {
    size_t parameters;       /**< and other states, and constants */
    size_t optimizer_states; /**< of a program with tsr_gradients(): states on which no loss
                                  depends */
    size_t inputs, outputs;
    size_t gathered;    /**< workspace: made of parameters alone, such as weights that are gathered,
                             or cast */
    size_t activations; /**< workspace: made of inputs, too */
    size_t gradients;   /**< workspace: of a loss, and what an update makes of them */
    size_t scratch;     /**< workspace: of kernels and moves, while they run */
    size_t gaps;        /**< workspace: not in use at that step */
    size_t peak;        /**< of all of these together: tsr_executable_figures.peak_bytes */
    size_t kept;        /**< beside: of the executable itself, on the host, but for its plans */
} tsr_executable_memory;

/** Tells what the memory of a run is for. Does not communicate. Any thread. TSR_ERROR_MEMORY: no
 * memory can be had for a list of the steps. */
TSR_API tsr_status tsr_executable_memory_of(const tsr_executable *executable,
                                            tsr_executable_memory *out);

/** The number of steps. Ranks have the same, but for copies into outputs. */
TSR_API size_t tsr_executable_step_count(const tsr_executable *executable);

/** Describes a step. TSR_ERROR_ARGUMENT: there is none. */
TSR_API tsr_status tsr_executable_step_at(const tsr_executable *executable, size_t index,
                                          tsr_executable_step *out);

/** Adds up what all steps cost. */
TSR_API tsr_status tsr_executable_figures_of(const tsr_executable *executable,
                                             tsr_executable_figures *out);

#ifdef __cplusplus
}
#endif

#endif
