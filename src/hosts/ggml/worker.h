/* A thread that stays on a device's processors, and runs jobs in the order of their arrival. */
#ifndef TSR_HOSTS_GGML_WORKER_H
#define TSR_HOSTS_GGML_WORKER_H

#include <sched.h>

typedef struct tsr_ggml_worker tsr_ggml_worker;

/* The head of a job's struct, which its maker allocates. */
typedef struct tsr_ggml_job {
    struct tsr_ggml_job *next;             /* the worker's */
    void (*run)(struct tsr_ggml_job *job); /* frees the job, or leaves that to its maker */
} tsr_ggml_job;

/* Starts a thread on `processors`, which threads that it makes inherit. NULL: the system gives no
 * thread or memory. */
tsr_ggml_worker *tsr_ggml_worker_create(const cpu_set_t *processors);

/* Gives a job to the worker and returns. One thread at a time calls for a worker. */
void tsr_ggml_worker_give(tsr_ggml_worker *worker, tsr_ggml_job *job);

/* Returns when the worker has run all jobs that it was given. */
void tsr_ggml_worker_wait(tsr_ggml_worker *worker);

/* Ends the thread when it has run its jobs. NULL is fine. */
void tsr_ggml_worker_destroy(tsr_ggml_worker *worker);

#endif
