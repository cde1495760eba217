/** The host's threads. Ranks are tasks of theirs, and nothing else runs Tessera's calls. */
#ifndef EXAMPLES_RUNTIME_POOL_H
#define EXAMPLES_RUNTIME_POOL_H

#include <tessera/context.h>

typedef struct pool pool;

/** A task. Its memory is the caller's, who may use it again once it has run. */
typedef struct pool_task {
    struct pool_task *next;
    void (*run)(struct pool_task *task);
} pool_task;

tsr_status pool_create(tsr_context *context, int threads, pool **out);

/** Ends the threads when all tasks have run. NULL is fine. */
void pool_destroy(pool *p);

int pool_threads(const pool *p);

/**
 * Gives the pool a list of tasks that may wait for each other, such as the ranks of an execution.
 * Lists begin one after the other, whole: so a pool of as many threads as the longest list never
 * has a task that waits for one that no thread can take.
 */
void pool_begin(pool *p, pool_task *list);

#endif
