#include "run.h"

#include "place/held_log.h"
#include "sampler.h"
#include "saving.h"

#include <tessera/sys/status.h>

#include <time.h>

static double seconds_now(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

/* Whole batches of windows of the validation's tokens, one behind the other; at least one. */
static tsr_status validate(train_trainer *trainer, const train_job *job, double *loss)
{
    train_batches batches = job->batches;
    batches.data = job->validation;
    batches.random = false;
    const int64_t windows = (job->validation->count - 1) / batches.length, count = windows / batches.batch;
    return train_trainer_validate(trainer, &batches, count > 0 ? count : 1, loss);
}

/* True behind the last step, and each step after which the job saves and validates. */
static bool is_due(const train_job *job, int64_t step)
{
    return step + 1 == job->steps || (job->every > 0 && (step + 1) % job->every == 0);
}

static tsr_status train_step_of(train_trainer *trainer, const train_job *job, int64_t step, train_step *out)
{
    train_told told;
    const double start = seconds_now();
    *out = (train_step){.step = step, .bytes_received = trainer->bytes_received};
    TSR_TRY(tsr_schedule_at(&job->schedule, step + 1, &out->rate));
    TSR_TRY(train_trainer_step(trainer, &job->batches, step, out->rate, &told));
    out->seconds = seconds_now() - start;
    out->loss = told.loss;
    out->norm = told.norm;
    out->router = told.router;
    out->scale = told.scale;
    out->is_skipped = told.is_skipped;
    out->tokens_per_second = (double)(job->plan.batch * job->plan.length) / out->seconds;
    out->rate_of_products = (double)trainer->flops / out->seconds;
    out->of_peak = trainer->peak > 0 ? out->rate_of_products / trainer->peak : 0;
    out->has_validation = job->validation && is_due(job, step);
    return out->has_validation ? validate(trainer, job, &out->validation) : TSR_OK;
}

/* Tells a step on rank 0, with a text where one is due. Where telling fails, the others hear of it
 * as they meet this rank. */
static tsr_status tell(train_trainer *trainer, train_sampler *sampler, const train_job *job, train_step *done)
{
    llama_generation text = {0};
    if (sampler && (done->step + 1) % job->sample_every == 0) {
        TSR_TRY(train_sampler_generate(sampler, done->step, &text));
        done->sample = &text;
    }
    const tsr_status status = tsr_comm_rank(trainer->comm) == 0 ? job->on_step(job->user, done) : TSR_OK;
    llama_generation_finish(&text);
    return status;
}

static tsr_status take_steps(train_trainer *trainer, train_sampler *sampler, const train_job *job, int64_t first,
                             train_saver *saver)
{
    for (int64_t step = first; step < job->steps; step++) {
        train_step done;
        TSR_TRY(train_step_of(trainer, job, step, &done));
        TSR_TRY(train_saver_poll(saver));
        if (job->save && is_due(job, step))
            TSR_TRY(train_saver_save(saver, step + 1));
        TSR_TRY(tell(trainer, sampler, job, &done));
    }
    /* A state that has all steps is saved as it is: other ranks write the same bytes. */
    if (job->save && first >= job->steps)
        TSR_TRY(train_saver_save(saver, first));
    return train_saver_finish(saver);
}

static tsr_status train_all(train_trainer *trainer, const train_job *job)
{
    int64_t first = 0;
    train_saver saver = {.trainer = trainer,
                         .settings = &job->settings,
                         .folder = job->save,
                         .config = job->config,
                         .in_background = job->saves_in_background};
    train_sampler *sampler = NULL;
    if (job->resume)
        TSR_TRY(train_resume(trainer, job->resume, &first));
    if (tsr_comm_rank(trainer->comm) == 0)
        TSR_TRY(job->on_begin(job->user, trainer));
    if (job->sample_every > 0)
        TSR_TRY(train_sampler_create(trainer, &job->sample, &sampler));
    const tsr_status status = take_steps(trainer, sampler, job, first, &saver);
    train_sampler_destroy(sampler);
    return status == TSR_OK ? TSR_OK : train_saver_give_up(&saver, status);
}

/* The program of every rank. */
static tsr_status rank_main(tsr_comm *comm, void *arg)
{
    const train_job *const job = arg;
    train_trainer *trainer;
    TSR_TRY(train_trainer_create(comm, &job->plan, job->validation != NULL, &trainer));
    const tsr_status status = train_all(trainer, job);
    train_trainer_destroy(trainer);
    return status;
}

static tsr_status run_threads(const train_job *job)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    TSR_TRY(held_log_context(&options.context));
    const tsr_status status = tsr_threads_run(job->ranks, rank_main, (void *)job, &options);
    tsr_context_destroy(options.context);
    return status;
}

tsr_status train_run(const train_job *job)
{
    return job->processes ? llama_processes_run(job->processes, rank_main, (void *)job) : run_threads(job);
}
