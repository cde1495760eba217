/* The communicator as an object for tessera-conformance, whose ranks are threads that know a
 * directory. */
#include "ranks.h"

#include <tessera/sys/comm.h>
#include <tessera/sys/status.h>

#include <pthread.h>
#include <string.h>

/* Handles of the run at hand that no rank has taken yet. */
static struct {
    pthread_mutex_t lock;
    char directory[256];
    tsr_comm *handles[64];
} run = {.lock = PTHREAD_MUTEX_INITIALIZER};

static tsr_status begin_run(const char *directory, int ranks, int64_t timeout_ms)
{
    tsr_context *context;
    strncpy(run.directory, directory, sizeof run.directory - 1);
    TSR_TRY(tsr_context_create(NULL, &context));
    const tsr_status status = ranks_create(context, ranks, timeout_ms, NULL, run.handles);
    tsr_context_destroy(context);
    return status;
}

TSR_API tsr_comm_conformance tessera_conformance;

tsr_status tessera_conformance(const char *directory, int rank, int ranks, int64_t timeout_ms, tsr_comm **out)
{
    tsr_status status = TSR_OK;
    pthread_mutex_lock(&run.lock);
    if (strcmp(run.directory, directory) != 0)
        status = begin_run(directory, ranks, timeout_ms);
    *out = run.handles[rank];
    pthread_mutex_unlock(&run.lock);
    return status;
}
