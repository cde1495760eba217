/** What replicas of a program hold (tessera/replicas.h). */
#ifndef TSR_OPS_REPLICAS_REPLICAS_H
#define TSR_OPS_REPLICAS_REPLICAS_H

#include "ops/programs/program.h"

#include <tessera/replicas.h>

#include <pthread.h>
#include <stdbool.h>

/** An input or output of the program. */
typedef struct tsr_replica_port {
    const char *name; /**< borrowed from the first rank's executable */
    tsr_tensor own;   /**< dtype and shape, with the most rows, and no data */
    int64_t multiple; /**< rows of it for a row of the batch; 0: it has none, and is whole */
    int parameter;    /**< the parameter whose gradient it is; -1: it is an output of runs */
    size_t offset;    /**< of its first byte in `made` of a rank, if it has no rows */
    size_t first;     /**< of its first element in `sums` of a rank, if it is a gradient */
    int64_t count;    /**< elements, if it has no rows */
} tsr_replica_port;

/** A parameter. */
typedef struct tsr_replica_parameter {
    const char *name;         /**< borrowed from the first rank's executable */
    const tsr_layout *layout; /**< likewise */
    int output;               /**< the output that is its gradient; -1: none */
    tsr_tensor gradient;      /**< the caller's; without data: not wanted */
} tsr_replica_parameter;

/** One rank. */
typedef struct tsr_replica {
    tsr_replicas *all;
    int rank;
    pthread_t thread;
    tsr_comm *comm; /**< of this rank alone */
    tsr_executable *executable;
    tsr_tensor *inputs, *outputs; /**< of a run */
    void *workspace;
    size_t workspace_bytes;
    char *made;   /**< outputs without rows, of a run */
    double *sums; /**< gradients of several batches; NULL: there were none yet */
    int64_t rows; /**< of all batches that it has run in this call */
    tsr_status status;
    size_t failed; /**< the batch that failed */
    tsr_kept_sentence sentence;
} tsr_replica;

/** What ranks do, each for itself, with what the call has. */
typedef void tsr_replica_job(tsr_replica *replica);

struct tsr_replicas {
    tsr_context *context;
    tsr_replicas_reduce reduce;
    int ranks;
    tsr_replica *replicas;
    tsr_replica_port *inputs, *outputs;
    size_t input_count, output_count;
    size_t told_count; /**< outputs that are no gradients */
    tsr_replica_parameter *parameters;
    size_t parameter_count;
    char *rows;        /**< the name of the length that counts them */
    bool has_rows;     /**< the program has it */
    int64_t most_rows; /**< its maximum */
    size_t made_bytes; /**< of a rank's `made` */
    size_t sum_count;  /**< elements of a rank's `sums` */
    tsr_random_key keys[TSR_RUN_KEYS];
    const char *key_names[TSR_RUN_KEYS]; /**< borrowed from the first rank's executable */
    bool has_key[TSR_RUN_KEYS];
    size_t key_count;
    /* Of the call in flight: */
    const char *caller;
    bool scatters;
    size_t batch_count;
    const tsr_tensor *given, *wanted;
    int64_t batch_rows; /**< of the one that is scattered */
    /* Threads: */
    pthread_mutex_t mutex;
    pthread_cond_t begins, ended;
    bool has_locks;
    int started; /**< threads */
    /* Under the mutex: */
    bool in_call, leaves;
    uint64_t turn; /**< jobs so far */
    tsr_replica_job *job;
    int working; /**< ranks that are at it */
};

#endif
