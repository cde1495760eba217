/** The threads of replicas, which wait for jobs. */
#ifndef TSR_OPS_REPLICAS_THREADS_H
#define TSR_OPS_REPLICAS_THREADS_H

#include "ops/replicas/replicas.h"

/** Makes locks, and starts a thread for each rank. After an error the threads that run are ended by
 * tsr_replicas_leave(). */
tsr_status tsr_replicas_start(tsr_replicas *replicas);

/** Ends the threads that were started. */
void tsr_replicas_leave(tsr_replicas *replicas);

/** Takes the replicas for a call. TSR_ERROR_STATE: another thread has them. */
tsr_status tsr_replicas_enter(tsr_replicas *replicas, const char *caller);

/** Gives them back, and hands `status` on. */
tsr_status tsr_replicas_exit(tsr_replicas *replicas, tsr_status status);

/** Has all ranks do a job, and waits for them. */
void tsr_replicas_work(tsr_replicas *replicas, tsr_replica_job *job);

#endif
