/** Communicators of the stand-in, and the kernels that they run. */
#ifndef TESTS_STANDIN_COMM_H
#define TESTS_STANDIN_COMM_H

#include "standin_world.h"

typedef enum standin_kind {
    STANDIN_SEND,
    STANDIN_RECV,
    STANDIN_ALL_GATHER,
    STANDIN_REDUCE_SCATTER,
    STANDIN_ALL_REDUCE,
    STANDIN_BROADCAST
} standin_kind;

typedef struct standin_kernel standin_kernel;

/** One communicating call of NCCL. */
typedef struct standin_op {
    struct standin_op *next;  /**< next op of its kernel, or of the open group */
    struct standin_op *later; /**< next op in the queue of a pair of ranks */
    standin_kernel *kernel;
    ncclComm_t comm;
    cudaStream_t stream;
    standin_kind kind;
    const char *send;
    char *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /**< peer of a message, or root of a collective */
} standin_op;

/** A kernel: all ops of a group on one communicator, which progress together. */
struct standin_kernel {
    standin_work work;
    ncclComm_t comm;
    standin_op *ops;
    int left; /**< number of ops that are not done */
    bool begun;
    standin_kernel *later; /**< next kernel of its device */
};

/** One collective of a clique, with the op of each rank. */
typedef struct standin_round {
    struct standin_round *next;
    int64_t number;
    int came;
    standin_op **ops;
} standin_round;

/** A rank's arguments of a split. */
typedef struct standin_split {
    bool came, taken;
    int color, key;
    bool blocking;
} standin_split;

/** All ranks of a communicator. */
typedef struct standin_clique {
    struct standin_clique *next;
    char id[128];
    int ranks, joined, finalizing, living;
    ncclComm_t *members;
    standin_op **sends, **receives; /**< queues of messages, at index from * ranks + to */
    int64_t *collectives;           /**< number of collectives that each rank has begun */
    standin_round *rounds;
    standin_split *splits;
    int split_came, split_taken;
} standin_clique;

typedef enum standin_pending {
    STANDIN_READY,
    STANDIN_INIT,
    STANDIN_LAUNCH,
    STANDIN_SPLIT,
    STANDIN_FINALIZE
} standin_pending;

/** An ncclComm_t. It stays in memory until the world ends, so that use after destruction is
 * noticed. */
struct ncclComm {
    struct ncclComm *next;
    standin_clique *clique;
    int rank, device;
    bool blocking, gone, finalized;
    const void *in_group; /**< the thread whose open group it is in; NULL: none */
    standin_pending pending;
    int looks;            /**< queries left before the pending operation is done */
    ncclResult_t broken;  /**< an asynchronous error, or ncclSuccess */
    standin_kernel *held; /**< kernel that waits to be enqueued */
    cudaStream_t held_stream;
    ncclComm_t *split_out;
    int running; /**< number of kernels enqueued or held, and not done */
};

/** True if the communicator can take a new call; else complains. Under the lock. */
bool standin_usable(ncclComm_t comm, const char *call);

/** Enqueues the held kernel. Under the lock. */
void standin_launch(ncclComm_t comm);

/** Removes the ops of an aborted communicator from all queues. Under the lock. */
void standin_drop_ops(ncclComm_t comm);

/** Begins a pending operation. A blocking communicator waits for it; of a non-blocking one it is
 * done after some queries. Under the lock. */
ncclResult_t standin_pend(ncclComm_t comm, standin_pending pending, const char *call);

/** Frees a kernel that is not in a stream. Under the lock. */
void standin_free_kernel(standin_kernel *kernel);

/** Computes the results of a collective in all receive buffers; all ranks have come. */
void standin_compute(standin_clique *clique, standin_op *const *ops);

size_t standin_type_bytes(ncclDataType_t type);

#endif
