#include "run.h"

#include "place/held_log.h"

#include <tessera/sys/status.h>

#include <math.h>
#include <stdlib.h>

/* Shared by ranks that are threads; only rank 0 writes the outcome. */
typedef struct shared {
    const llama_job *job;
    llama_outcome *outcome;
} shared;

/* Collects the counts of all ranks on rank 0. */
static tsr_status collect(const llama_model *model, llama_outcome *outcome)
{
    const int64_t total = llama_model_bytes_received(model);
    TSR_TRY(tsr_comm_gather(model->comm, &model->loaded.bytes_read, outcome->bytes_read, 1, NULL, TSR_I64, 0,
                            tsr_device_host(), NULL));
    const llama_error error = model->loaded.error;
    double sums[] = {(double)total, error.lost, error.whole};
    TSR_TRY(tsr_comm_all_reduce(model->comm, sums, sums, 3, TSR_F64, TSR_SUM, tsr_device_host(), NULL));
    if (tsr_comm_rank(model->comm) == 0) {
        outcome->bytes_received_per_token = (int64_t)sums[0];
        outcome->weight_error = sums[2] > 0 ? sqrt(sums[1] / sums[2]) : 0;
    }
    return TSR_OK;
}

/* The program of every rank. */
static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    const shared *const all = arg;
    const llama_job *const job = all->job;
    const double start = llama_seconds();
    llama_model *model;
    llama_generation generation = {0};
    TSR_TRY(
        llama_model_create(comm, job->config, &job->source, job->plan, llama_request_positions(&job->request), &model));
    const llama_speaker speaker = {comm, job->config, llama_model_run, model};
    tsr_status status = tsr_comm_barrier(comm);
    const double loaded = llama_seconds();
    if (status == TSR_OK)
        status = llama_generate(&speaker, &job->request, &generation);
    if (status == TSR_OK)
        status = collect(model, all->outcome);
    if (status == TSR_OK && tsr_comm_rank(comm) == 0) {
        all->outcome->load_seconds = loaded - start;
        all->outcome->generation = generation;
    } else {
        llama_generation_finish(&generation);
    }
    llama_model_destroy(model);
    return status;
}

static tsr_status run_threads(int ranks, shared *all)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    TSR_TRY(held_log_context(&options.context));
    const tsr_status status = tsr_threads_run(ranks, rank_main, all, &options);
    tsr_context_destroy(options.context);
    return status;
}

tsr_status llama_run(const llama_job *job, llama_outcome *out)
{
    llama_outcome outcome = {.bytes_read = calloc((size_t)job->ranks, sizeof(int64_t))};
    if (!outcome.bytes_read)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory for %d ranks", job->ranks);
    shared all = {job, &outcome};
    const tsr_status status =
        job->processes ? llama_processes_run(job->processes, rank_main, &all) : run_threads(job->ranks, &all);
    if (status == TSR_OK)
        *out = outcome;
    else
        llama_outcome_finish(&outcome);
    return status;
}

void llama_outcome_finish(llama_outcome *outcome)
{
    llama_generation_finish(&outcome->generation);
    free(outcome->bytes_read);
    *outcome = (llama_outcome){0};
}
