/*
 * A job that goes wrong: jobber WHAT [HOW_MANY]. Every rank that comes so far says on standard error how its run ended, and then that its
 * job is gone.
 */
#include <mpi.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/mpi.h>
#include <tessera/sys/status.h>
#include <unistd.h>

enum { PATIENT_MS = 1500 };

/* For the library to find them here: not every implementation's header says so. */
#define SEEN __attribute__((visibility("default")))

/* Of this rank's calls of MPI's below, so many are left until it stops for ever; below 0: it does not. */
static int calls_left = -1;

static void count_call(void)
{
    if (calls_left >= 0 && calls_left-- == 0)
        for (;;)
            pause();
}

SEEN int MPI_Comm_idup(MPI_Comm comm, MPI_Comm *out, MPI_Request *request)
{
    count_call();
    return PMPI_Comm_idup(comm, out, request);
}

SEEN int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm, MPI_Request *request)
{
    count_call();
    return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

SEEN int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm, MPI_Request *request)
{
    count_call();
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

/* This one and its kind would wait for a rank that stops, and no clock ends them. */
SEEN int MPI_Comm_split_type(MPI_Comm comm, int type, int key, MPI_Info info, MPI_Comm *out)
{
    fprintf(stderr, "a call that blocks\n");
    return PMPI_Comm_split_type(comm, type, key, info, out);
}

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

/* Rank 1 stops while the communicator is made. */
static void stop_a_rank(tsr_mpi_job *job, int calls)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = PATIENT_MS;
    calls_left = tsr_mpi_job_rank(job) == 1 ? calls : -1;
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
    else if (strcmp(what, "stop") == 0 && count > 2)
        stop_a_rank(job, atoi(arguments[2]));
    else if (strcmp(what, "twice") == 0)
        fail_twice(job);
    else
        say(job, "run", tsr_mpi_job_run(job, meet, NULL, NULL));
    tsr_mpi_job_destroy(job);
    fprintf(stderr, "R%d is gone\n", rank);
    return 0;
}
