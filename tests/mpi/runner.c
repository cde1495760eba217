/*
 * A program of tsr_run(), linked with libtessera-core alone: runner sum | fail | twice. Each rank
 * that has failed writes to standard error its number, the status and the sentence; rank 0 writes
 * to standard output what it found.
 */
#include <tessera/run.h>
#include <tessera/sys/status.h>

#include <stdio.h>
#include <string.h>

/* Adds up the numbers of the ranks. */
static tsr_status sum(tsr_comm *comm, void *arg)
{
    int64_t number = tsr_comm_rank(comm);
    (void)arg;
    TSR_TRY(tsr_comm_all_reduce(comm, &number, &number, 1, TSR_I64, TSR_SUM, tsr_device_host(), NULL));
    if (tsr_comm_rank(comm) == 0)
        printf("%d ranks of %s, whose numbers add up to %d\n", tsr_comm_size(comm), tsr_comm_engine(comm), (int)number);
    fflush(stdout);
    return TSR_OK;
}

static tsr_status fail(tsr_comm *comm, void *arg)
{
    (void)arg;
    if (tsr_comm_rank(comm) == 1)
        return tsr_status_set(TSR_ERROR_IO, "the file is gone");
    return tsr_comm_barrier(comm);
}

static tsr_status run_twice(int argc, char **argv)
{
    tsr_job *job;
    tsr_kept_sentence sentence;
    TSR_TRY(tsr_job_create(argc, argv, NULL, &job));
    if (tsr_job_rank(job) != tsr_launch_get().rank)
        return tsr_status_set(TSR_ERROR_INTERNAL, "MPI and the launcher number ranks differently");
    tsr_status status = tsr_job_run(job, sum, NULL);
    if (status == TSR_OK && tsr_job_run(job, fail, NULL) != TSR_ERROR_IO)
        status = tsr_status_set(TSR_ERROR_INTERNAL, "the run between did not fail");
    if (status == TSR_OK)
        status = tsr_job_run(job, sum, NULL);
    tsr_status_keep(&sentence);
    tsr_job_destroy(job);
    return tsr_status_restore(&sentence, status);
}

static tsr_status run(int argc, char **argv)
{
    const char *const what = argc > 1 ? argv[1] : "";
    if (strcmp(what, "twice") == 0)
        return run_twice(argc, argv);
    return tsr_run(argc, argv, strcmp(what, "fail") == 0 ? fail : sum, NULL);
}

int main(int argc, char **argv)
{
    const tsr_status status = run(argc, argv);
    if (status != TSR_OK)
        fprintf(stderr, "R%d %s: %s\n", tsr_launch_get().rank, tsr_status_name(status), tsr_status_message());
    return status != TSR_OK;
}
