#include "base/context.h"
#include "base/environment.h"
#include "base/memory/memory.h"
#include "base/options.h"
#include "base/processor.h"
#include "base/settings.h"
#include "comm/run/launch.h"
#include "comm/run/mpi_library.h"

#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <string.h>

struct tsr_job {
    tsr_context *context; /* one reference */
    int rank, size;
    int64_t timeout_ms; /* -1: the engine's default */
    tsr_mpi_library mpi;
    tsr_mpi_job *processes; /* NULL: ranks are threads */
};

static const char threads_engine[] = "threads", mpi_engine[] = "mpi";

static tsr_status read_options(const char *call, const tsr_run_options *given, tsr_run_options *out)
{
    *out = (tsr_run_options)TSR_RUN_OPTIONS_INIT;
    TSR_TRY(tsr_options_read(call, given, out, sizeof *out));
    if (out->engine && strcmp(out->engine, threads_engine) != 0 && strcmp(out->engine, mpi_engine) != 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.engine is \"%.64s\", not threads or mpi", call,
                              out->engine);
    if (out->mpi && !tsr_environment_mpi(out->mpi))
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: options.mpi is \"%.64s\", not " TSR_MPI_NAMES, call, out->mpi);
    if (out->ranks < 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.ranks is %d; give a number of rank threads, or 0 for one a processor", call,
                              out->ranks);
    if (out->timeout_ms < -1)
        return tsr_status_set(TSR_ERROR_ARGUMENT,
                              "%s: options.timeout_ms is %lld; give milliseconds, 0 for ever, or -1 for the default",
                              call, (long long)out->timeout_ms);
    return TSR_OK;
}

/* The environment's wish, else the option's. */
static tsr_mpi_wish wish_of(const tsr_context *context, const tsr_run_options *options)
{
    const char *const of_environment = tsr_context_settings(context)->mpi;
    if (of_environment)
        return (tsr_mpi_wish){"TSR_MPI", of_environment};
    if (options->mpi)
        return (tsr_mpi_wish){"options.mpi", tsr_environment_mpi(options->mpi)};
    return (tsr_mpi_wish){NULL, NULL};
}

static tsr_status refuse_lonely(const char *call, const tsr_launch *launch)
{
    return tsr_status_set(
        TSR_ERROR_STATE,
        "%s: srun started %d tasks, but no PMI by which they find each other, so each would be alone: "
        "start them by srun --mpi=pmix or --mpi=pmi2 (srun --mpi=list tells which there are) or by "
        "mpirun; for rank threads, srun one task",
        call, launch->ranks);
}

static tsr_status join_processes(const char *call, const tsr_run_options *options, int argc, char **argv, tsr_job *job)
{
    const tsr_mpi_wish wish = wish_of(job->context, options);
    const tsr_status status = tsr_mpi_library_open(&wish, &job->mpi);
    if (status != TSR_OK)
        return tsr_status_set(status, "%s: %s", call, tsr_status_message());
    TSR_TRY(tsr_mpi_library_create_job(&job->mpi, &wish, argc, argv, &job->processes));
    job->rank = job->mpi.job_rank(job->processes);
    job->size = job->mpi.job_size(job->processes);
    return TSR_OK;
}

static int count_threads(const tsr_context *context, const tsr_run_options *options)
{
    const int asked = options->ranks > 0 ? options->ranks : tsr_processor_count();
    return (int)tsr_setting_or(tsr_context_settings(context)->ranks, asked);
}

static tsr_status fill_in(const char *call, const tsr_run_options *options, int argc, char **argv, tsr_job *job)
{
    tsr_launch launch;
    const tsr_launcher *const launcher = tsr_launcher_find(&launch);
    const bool of_threads = options->engine ? strcmp(options->engine, threads_engine) == 0 : !launcher;
    job->timeout_ms = options->timeout_ms;
    if (of_threads) {
        job->size = count_threads(job->context, options);
        return TSR_OK;
    }
    if (launcher && launcher->lonely)
        return refuse_lonely(call, &launch);
    return join_processes(call, options, argc, argv, job);
}

static tsr_status create_job(const char *call, int argc, char **argv, const tsr_run_options *given, tsr_job **out)
{
    tsr_run_options options;
    tsr_context *context;
    tsr_job *job;
    TSR_TRY(read_options(call, given, &options));
    TSR_TRY(tsr_context_resolve(options.context, &context));
    tsr_status status = tsr_allocate_zeroed(context, sizeof *job, (void **)&job);
    if (status != TSR_OK) {
        tsr_context_destroy(context);
        return status;
    }
    job->context = context;
    status = fill_in(call, &options, argc, argv, job);
    if (status == TSR_OK)
        *out = job;
    else
        tsr_job_destroy(job);
    return status;
}

tsr_status tsr_job_create(int argc, char **argv, const tsr_run_options *options, tsr_job **out)
{
    if (!out)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_job_create: out is NULL");
    return create_job("tsr_job_create", argc, argv, options, out);
}

void tsr_job_destroy(tsr_job *job)
{
    if (!job)
        return;
    tsr_context *const context = job->context;
    if (job->processes)
        job->mpi.job_destroy(job->processes);
    tsr_release(context, job);
    tsr_context_destroy(context);
}

const char *tsr_job_engine(const tsr_job *job)
{
    return job->processes ? mpi_engine : threads_engine;
}

int tsr_job_rank(const tsr_job *job)
{
    return job->rank;
}

int tsr_job_size(const tsr_job *job)
{
    return job->size;
}

static tsr_status run_processes(const tsr_job *job, tsr_rank_main *main, void *arg)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.context = job->context;
    if (job->timeout_ms >= 0)
        options.timeout_ms = job->timeout_ms;
    return job->mpi.job_run(job->processes, main, arg, &options);
}

static tsr_status run_threads(const tsr_job *job, tsr_rank_main *main, void *arg)
{
    tsr_threads_options options = TSR_THREADS_OPTIONS_INIT;
    options.context = job->context;
    if (job->timeout_ms >= 0)
        options.timeout_ms = job->timeout_ms;
    return tsr_threads_run(job->size, main, arg, &options);
}

tsr_status tsr_job_run(tsr_job *job, tsr_rank_main *main, void *arg)
{
    if (!job || !main)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_job_run: %s is NULL", job ? "main" : "job");
    return job->processes ? run_processes(job, main, arg) : run_threads(job, main, arg);
}

tsr_status tsr_run_with(int argc, char **argv, tsr_rank_main *main, void *arg, const tsr_run_options *options)
{
    tsr_job *job;
    tsr_kept_sentence sentence;
    if (!main)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "tsr_run: main is NULL");
    TSR_TRY(create_job("tsr_run", argc, argv, options, &job));
    const tsr_status status = tsr_job_run(job, main, arg);
    tsr_status_keep(&sentence);
    tsr_job_destroy(job);
    return tsr_status_restore(&sentence, status);
}

tsr_status tsr_run(int argc, char **argv, tsr_rank_main *main, void *arg)
{
    return tsr_run_with(argc, argv, main, arg, NULL);
}

tsr_status tsr_job_mpi_version(const tsr_run_options *given, char *text, size_t capacity)
{
    static const char call[] = "tsr_job_mpi_version";
    tsr_run_options options;
    tsr_context *context;
    tsr_mpi_library library;
    if (!text && capacity > 0)
        return tsr_status_set(TSR_ERROR_ARGUMENT, "%s: text is NULL, but has %zu bytes", call, capacity);
    TSR_TRY(read_options(call, given, &options));
    TSR_TRY(tsr_context_resolve(options.context, &context));
    const tsr_mpi_wish wish = wish_of(context, &options);
    tsr_context_destroy(context);
    TSR_TRY(tsr_mpi_library_open(&wish, &library));
    library.version_print(text, capacity);
    return TSR_OK;
}
