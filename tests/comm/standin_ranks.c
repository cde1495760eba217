#include "standin_ranks.h"

#include "body.h"
#include "comm/engines/nccl/engine.h"
#include "standin.h"

#include <tessera/sys/device.h>

#include <stdint.h>
#include <string.h>

enum { DEFAULT_TIMEOUT_MS = 60000 };

/* The driver of the current world. */
static tsr_device_driver *driver;

tsr_device standin_ranks_device(void)
{
    int device = 0;
    standin_api.cuda_get_device(&device);
    return (tsr_device){driver, device};
}

typedef struct program {
    tsr_rank_main *body;
    void *arg;
    tsr_nccl_id id;
    tsr_nccl_options options;
} program;

static tsr_status run_made(tsr_comm *seat, void *arg)
{
    const program *run = arg;
    tsr_comm *comm;
    standin_api.cuda_set_device(tsr_comm_rank(seat));
    TSR_TRY(tsr_nccl_create(&standin_api, tsr_comm_size(seat), tsr_comm_rank(seat), &run->id, &run->options, &comm));
    return run_body(run->body, comm, run->arg);
}

/* Runs over a lent communicator; after an error its owner aborts it. */
static tsr_status run_borrowed(ncclComm_t lent, tsr_comm *seat, const program *run)
{
    tsr_comm *comm = NULL;
    tsr_status status = tsr_nccl_borrow(&standin_api, lent, &run->options, &comm);
    tsr_comm_retain(comm);
    if (status == TSR_OK)
        status = run->body(comm, run->arg);
    if (status != TSR_OK)
        standin_api.comm_abort(lent);
    tsr_comm_destroy(comm);
    tsr_comm_release(comm);
    if (status == TSR_OK)
        tsr_comm_barrier(seat) == TSR_OK ? standin_api.comm_destroy(lent) : standin_api.comm_abort(lent);
    return status;
}

static tsr_status run_lent(tsr_comm *seat, void *arg)
{
    const program *run = arg;
    ncclUniqueId id;
    ncclComm_t lent = NULL;
    memcpy(&id, &run->id, sizeof id);
    standin_api.cuda_set_device(tsr_comm_rank(seat));
    if (standin_api.comm_init_rank_config(&lent, tsr_comm_size(seat), id, tsr_comm_rank(seat), NULL) != ncclSuccess)
        return tsr_status_set(TSR_ERROR_INTERNAL, "the stand-in has no communicator to lend");
    return run_borrowed(lent, seat, run);
}

static tsr_status run_world(int nranks, tsr_rank_main *rank_main, tsr_rank_main *body, void *arg,
                            const tsr_threads_options *given)
{
    const tsr_threads_options defaults = TSR_THREADS_OPTIONS_INIT, *options = given ? given : &defaults;
    tsr_threads_options seats = *options;
    program run = {.body = body, .arg = arg, .options = TSR_NCCL_OPTIONS_INIT};
    run.options.context = options->context;
    run.options.timeout_ms = options->timeout_ms > 0 ? options->timeout_ms : DEFAULT_TIMEOUT_MS;
    seats.timeout_ms = 0;
    standin_begin(nranks, (uint64_t)nranks * 1000003 + (uint64_t)DEFAULT_TIMEOUT_MS);
    tsr_status status = tsr_nccl_make_id(&standin_api, &run.id);
    if (status == TSR_OK)
        status = standin_driver_create(&driver);
    run.options.driver = driver;
    if (status == TSR_OK)
        status = tsr_threads_run(nranks, rank_main, &run, &seats);
    const char *misuse = standin_end();
    tsr_device_driver_destroy(driver);
    driver = NULL;
    if (status == TSR_OK && misuse)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "misuse of NCCL: %s", misuse);
    return status;
}

tsr_status standin_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    return run_world(nranks, run_made, body, arg, options);
}

tsr_status standin_run_lent(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    return run_world(nranks, run_lent, body, arg, options);
}
