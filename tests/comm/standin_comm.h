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

/** One call of NCCL's that communicates. */
typedef struct standin_op {
    struct standin_op *next;  /**< of its kernel, or of the group that is open */
    struct standin_op *later; /**< in the queue of a pair of ranks */
    standin_kernel *kernel;
    ncclComm_t comm;
    cudaStream_t stream;
    standin_kind kind;
    const char *send;
    char *receive;
    size_t count;
    ncclDataType_t type;
    ncclRedOp_t op;
    int peer; /**< or the root */
} standin_op;

/** All ops of a group on one communicator: they progress together. */
struct standin_kernel {
    standin_work work;
    ncclComm_t comm;
    standin_op *ops;
    int left; /**< ops that are not done */
    bool begun;
    standin_kernel *later; /**< the next one of its device */
};

/** One collective of a clique: what each rank has brought. */
typedef struct standin_round {
    struct standin_round *next;
    int64_t number;
    int came;
    standin_op **ops;
} standin_round;

/** What a rank brings to a split. */
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
    standin_op **sends, **receives; /**< queues: from * ranks + to */
    int64_t *collectives;           /**< how many each rank has begun */
    standin_round *rounds;
    standin_split *splits;
    int split_came, split_taken;
} standin_clique;

typedef enum standin_pending { STANDIN_READY, STANDIN_INIT, STANDIN_LAUNCH, STANDIN_SPLIT, STANDIN_FINALIZE } standin_pending;

/** An ncclComm_t. It stays in memory until the world ends, so that its use after its end is seen. */
struct ncclComm {
    struct ncclComm *next;
    standin_clique *clique;
    int rank, device;
    bool blocking, gone, finalized;
    const void *in_group; /**< of this thread's; NULL: in none */
    standin_pending pending;
    int looks;            /**< that are asked for before what is pending is done */
    ncclResult_t broken;  /**< an asynchronous error, or ncclSuccess */
    standin_kernel *held; /**< to be enqueued */
    cudaStream_t held_stream;
    ncclComm_t *split_out;
    int running; /**< kernels that are enqueued or held and not done */
};

/** True, or false after complaining: the communicator may be given something new. Under the lock. */
bool standin_usable(ncclComm_t comm, const char *call);

/** Enqueues what is held. Under the lock. */
void standin_launch(ncclComm_t comm);

/** Drops the ops of a communicator that is aborted from all queues. Under the lock. */
void standin_drop_ops(ncclComm_t comm);

/** Waits for what is pending where the communicator is blocking; else leaves it, after some looks. Under the lock. */
ncclResult_t standin_pend(ncclComm_t comm, standin_pending pending, const char *call);

/** A kernel that is not in a stream. Under the lock. */
void standin_free_kernel(standin_kernel *kernel);

/** Copies or reduces into all receive buffers, once all ranks have come. */
void standin_compute(standin_clique *clique, standin_op *const *ops);

size_t standin_type_bytes(ncclDataType_t type);

#endif
