/* NCCL itself, with at most as many ranks as this machine has GPUs. */
#include "graph_calls.h"

#include <tessera/cuda.h>
#include <tessera/nccl.h>
#include <tessera/sys/device.h>

#include <cuda_runtime_api.h>
#include <stdio.h>

/* the driver that the running ranks share */
static tsr_device_driver *driver;

typedef struct program {
    tsr_rank_main *body;
    void *arg;
    tsr_nccl_id id;
} program;

int graph_nccl_ranks(int wanted, const char **reason)
{
    static char words[512];
    tsr_device_driver *asked;
    void *self;
    int count = 0;
    if (tsr_cuda_driver_create(NULL, NULL, &asked) != TSR_OK)
        return 0;
    if (tsr_device_driver_table(asked, &self)->count(self, &count, reason) == TSR_OK && count == 0) {
        snprintf(words, sizeof words, "%s", *reason);
        *reason = words;
    }
    tsr_device_driver_destroy(asked);
    return count < wanted ? count : wanted;
}

static tsr_status run_rank(tsr_comm *seat, void *arg)
{
    const program *run = arg;
    tsr_nccl_options options = TSR_NCCL_OPTIONS_INIT;
    tsr_comm *comm;
    options.driver = driver;
    options.timeout_ms = 60000;
    if (cudaSetDevice(tsr_comm_rank(seat)) != cudaSuccess)
        return tsr_status_set(TSR_ERROR_UNAVAILABLE, "there is no device %d", tsr_comm_rank(seat));
    TSR_TRY(tsr_comm_create_nccl(tsr_comm_size(seat), tsr_comm_rank(seat), &run->id, &options, &comm));
    const tsr_status status = run->body(comm, run->arg);
    tsr_comm_destroy(comm);
    return status;
}

tsr_status graph_nccl_run(int nranks, tsr_rank_main *body, void *arg)
{
    program run = {.body = body, .arg = arg};
    TSR_TRY(tsr_nccl_id_create(&run.id));
    TSR_TRY(tsr_cuda_driver_create(NULL, NULL, &driver));
    const tsr_status status = tsr_threads_run(nranks, run_rank, &run, NULL);
    tsr_device_driver_destroy(driver);
    driver = NULL;
    return status;
}

tsr_device graph_nccl_device(void)
{
    int index = 0;
    (void)cudaGetDevice(&index);
    return (tsr_device){driver, index};
}
