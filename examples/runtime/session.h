/** A loaded file of plans that executes: on the host's threads, over the host's communicators, with
 * memory and streams that the host gives. */
#ifndef EXAMPLES_RUNTIME_SESSION_H
#define EXAMPLES_RUNTIME_SESSION_H

#include "plans.h"
#include "pool.h"

#include <tessera/sys/device.h>

#include <stdatomic.h>

typedef struct session session;

/** What the host gives; all of it outlives the session. */
typedef struct host {
    tsr_context *context;
    pool *pool;
    const tsr_device_driver *device; /**< NULL: tensors lie in the host's memory */
    int flights;                     /**< executions that may be under way at once */
    int64_t timeout_ms;              /**< how long ranks wait for each other; 0: for ever */
} host;

/** What a rank does wrong in an execution, to show what becomes of the others. */
typedef enum fault {
    FAULT_NONE,
    FAULT_TENSOR, /**< it brings a tensor of another shape */
    FAULT_ABORT   /**< it takes no part, and aborts the communicator */
} fault;

/**
 * Loads every plan for every rank, makes a communicator for each flight, prepares the plans over
 * it, and takes all memory that executions need. TSR_ERROR_ARGUMENT: the pool has fewer threads
 * than the plans have ranks.
 */
tsr_status session_open(const host *h, const plans *file, session **out);
void session_close(session *s);

/** Executes all moves of flight `flight`, which is not under way: gives the ranks to the pool, and
 * waits for nothing. `rank` has the fault. */
void session_start(session *s, int flight, fault f, int rank);

/** Waits until the flight's ranks have run, and then for what they have enqueued. Returns the
 * failure of a rank, of its own before those of its peers. */
tsr_status session_wait(session *s, int flight);

/** The status of a rank in the flight's last execution, and its sentence. */
tsr_status session_status(const session *s, int flight, int rank, const char **sentence);

/** Compares every element that the flight's ranks received with what it must be. */
tsr_status session_check(session *s, int flight);

/** How often ranks have met, in all flights. */
size_t session_meetings(const session *s);

#endif
