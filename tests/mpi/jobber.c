/*
 * A job that goes wrong: jobber WHAT. Every rank that comes so far says on standard error how its run ended, and then that its job is gone.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/mpi.h>
#include <tessera/sys/status.h>
#include <unistd.h>

enum { PATIENT_MS = 1500 };

static tsr_status meet(tsr_comm *comm, void *arg)
{
    (void)arg;
    return tsr_comm_barrier(comm);
}

static void say(const tsr_mpi_job *job, const char *what, tsr_status status)
{
    fprintf(stderr, "R%d %s: %s: %s\n", tsr_mpi_job_rank(job), what, tsr_status_name(status), status == TSR_OK ? "" : tsr_status_message());
}

/* Rank 1 never comes to the run, and stays. */
static void lack_a_rank(tsr_mpi_job *job)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = PATIENT_MS;
    if (tsr_mpi_job_rank(job) == 1)
        for (;;)
            pause();
    say(job, "run", tsr_mpi_job_run(job, meet, NULL, &options));
}

static tsr_status fail_with_a_sentence(tsr_comm *comm, void *arg)
{
    (void)arg;
    return tsr_comm_rank(comm) == 1 ? tsr_status_set(TSR_ERROR_ARGUMENT, "words of before") : TSR_OK;
}

static tsr_status fail_without_a_sentence(tsr_comm *comm, void *arg)
{
    (void)arg;
    return tsr_comm_rank(comm) == 1 ? TSR_ERROR_IO : TSR_OK;
}

/* Rank 1 fails twice, and says why the first time alone. */
static void fail_twice(tsr_mpi_job *job)
{
    say(job, "first", tsr_mpi_job_run(job, fail_with_a_sentence, NULL, NULL));
    say(job, "second", tsr_mpi_job_run(job, fail_without_a_sentence, NULL, NULL));
}

int main(int count, char **arguments)
{
    tsr_mpi_job *job = NULL;
    const char *const what = count > 1 ? arguments[1] : "";
    const tsr_status status = tsr_mpi_job_create(&job);
    if (status != TSR_OK) {
        fprintf(stderr, "create: %s: %s\n", tsr_status_name(status), tsr_status_message());
        return 3;
    }
    const int rank = tsr_mpi_job_rank(job);
    if (strcmp(what, "lack") == 0)
        lack_a_rank(job);
    else if (strcmp(what, "twice") == 0)
        fail_twice(job);
    else
        say(job, "run", tsr_mpi_job_run(job, meet, NULL, NULL));
    tsr_mpi_job_destroy(job);
    fprintf(stderr, "R%d is gone\n", rank);
    return 0;
}
