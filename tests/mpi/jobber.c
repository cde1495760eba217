/*
 * A job that goes wrong: jobber WHAT [HOW_MANY | FOLDER [FIRST_ELSEWHERE]]. Every rank that gets
 * that far writes to standard error the status of its run, and then that its job is destroyed.
 */
#include <mpi.h>

#include <tessera/mpi.h>
#include <tessera/sys/status.h>

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PATIENT_MS = 1000 };

/* Exports MPI functions for the library to find; the headers of some MPI implementations do not. */
#define SEEN __attribute__((visibility("default")))

/* How many more calls of the MPI functions below this rank makes before it stops for ever;
 * negative: no limit. */
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

SEEN int MPI_Iallreduce(const void *in, void *out, int count, MPI_Datatype type, MPI_Op op, MPI_Comm comm,
                        MPI_Request *request)
{
    count_call();
    return PMPI_Iallreduce(in, out, count, type, op, comm, request);
}

SEEN int MPI_Isend(const void *data, int count, MPI_Datatype type, int peer, int tag, MPI_Comm comm,
                   MPI_Request *request)
{
    count_call();
    return PMPI_Isend(data, count, type, peer, tag, comm, request);
}

/* The first rank that is on another node; 0: all are on this one. */
static int first_elsewhere;

SEEN int MPI_Get_processor_name(char *name, int *length)
{
    const int result = PMPI_Get_processor_name(name, length);
    int rank;
    PMPI_Comm_rank(MPI_COMM_WORLD, &rank);
    if (first_elsewhere > 0)
        *length = snprintf(name, MPI_MAX_PROCESSOR_NAME, "node %d", rank >= first_elsewhere);
    return result;
}

/* Reports calls of MPI_Comm_split_type(), which blocks without a timeout when a rank stops, so the
 * library must not call it. */
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
    fprintf(stderr, "R%d %s: %s: %s\n", tsr_mpi_job_rank(job), what, tsr_status_name(status),
            status == TSR_OK ? "" : tsr_status_message());
}

/* Rank 1 does not join the run, and does not end either. */
static void lack_a_rank(tsr_mpi_job *job)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = PATIENT_MS;
    if (tsr_mpi_job_rank(job) == 1)
        for (;;)
            pause();
    say(job, "run", tsr_mpi_job_run(job, meet, NULL, &options));
}

/* Rank 1 stops after `calls` MPI calls, while the communicator is created. */
static void stop_a_rank(tsr_mpi_job *job, int calls)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = PATIENT_MS + 100;
    calls_left = tsr_mpi_job_rank(job) == 1 ? calls : -1;
    say(job, "run", tsr_mpi_job_run(job, meet, NULL, &options));
}

/* What rank 1 does once the communicator is created, and what the others do then. */
typedef struct fate {
    int dies;           /* rank 1 dies; else it is absent */
    int copes;          /* rank 0 ignores the loss, and rank 2 ends only once rank 0's run has returned */
    const char *folder; /* where the other ranks write their status, while the launcher is stopped */
} fate;

static void write_down(const fate *f, int rank, tsr_status status)
{
    char path[500];
    snprintf(path, sizeof path, "%s/%d", f->folder, rank);
    FILE *const file = fopen(path, "w");
    if (!file)
        return;
    fprintf(file, "%s: %s\n", tsr_status_name(status), tsr_status_message());
    fclose(file);
}

/* Waits for at most half a minute until `rank` has written its file. */
static void await_word(const fate *f, int rank)
{
    char path[500], end = 0;
    snprintf(path, sizeof path, "%s/%d", f->folder, rank);
    for (int look = 0; look < 300 && end != '\n'; look++) {
        usleep(100000);
        FILE *const file = fopen(path, "r");
        for (int c = file ? fgetc(file) : EOF; c != EOF; c = fgetc(file))
            end = (char)c;
        if (file)
            fclose(file);
    }
}

/* Stops the launcher first, which would otherwise end all ranks when one dies. */
static tsr_status lose_a_rank(tsr_comm *comm, void *arg)
{
    const fate *f = arg;
    TSR_TRY(tsr_comm_barrier(comm));
    if (tsr_comm_rank(comm) == 1 && f->dies) {
        kill(getppid(), SIGSTOP);
        raise(SIGKILL);
    }
    if (tsr_comm_rank(comm) == 1)
        for (;;)
            pause();
    if (f->copes && tsr_comm_rank(comm) == 2) {
        await_word(f, 0);
        return TSR_OK;
    }
    const tsr_status status = tsr_comm_barrier(comm);
    return f->copes ? TSR_OK : status;
}

/* Runs lose_a_rank(), with an alarm that ends each process after a minute. */
static void lose_in_run(tsr_mpi_job *job, const fate *f, int64_t timeout_ms)
{
    fate of_rank_1 = *f;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.timeout_ms = timeout_ms;
    alarm(60);
    const tsr_status status = tsr_mpi_job_run(job, lose_a_rank, &of_rank_1, &options);
    write_down(f, tsr_mpi_job_rank(job), status);
    /* Wait for the other rank, because a launcher may end the job when its first rank ends. */
    await_word(f, tsr_mpi_job_rank(job) > 0 ? 0 : 2);
    if (tsr_mpi_job_rank(job) == 0)
        kill(getppid(), SIGCONT);
}

/* Rank 0 sends a message that no rank receives, and leaves before the others. */
static tsr_status send_in_vain(tsr_comm *comm, void *arg)
{
    char word[] = "left";
    const tsr_message message = {1, word, sizeof word};
    (void)arg;
    if (tsr_comm_rank(comm) == 0)
        return tsr_comm_exchange(comm, &message, 1, NULL, 0, tsr_device_host(), NULL);
    usleep(400000);
    return TSR_OK;
}

static void leave_one_by_one(tsr_mpi_job *job)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.no_sharing = 1;
    say(job, "run", tsr_mpi_job_run(job, send_in_vain, NULL, &options));
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

/* Rank 1 fails twice, the first time with a message and the second time without. */
static void fail_twice(tsr_mpi_job *job)
{
    say(job, "first", tsr_mpi_job_run(job, fail_with_a_sentence, NULL, NULL));
    say(job, "second", tsr_mpi_job_run(job, fail_without_a_sentence, NULL, NULL));
}

int main(int count, char **arguments)
{
    tsr_mpi_job *job = NULL;
    const char *const what = count > 1 ? arguments[1] : "";
    const tsr_status status = tsr_mpi_job_create_with(count, arguments, &job);
    if (status != TSR_OK) {
        fprintf(stderr, "create: %s: %s\n", tsr_status_name(status), tsr_status_message());
        return 3;
    }
    const int rank = tsr_mpi_job_rank(job);
    first_elsewhere = count > 3 ? atoi(arguments[3]) : 0;
    if (strcmp(what, "lack") == 0)
        lack_a_rank(job);
    else if (strcmp(what, "stop") == 0 && count > 2)
        stop_a_rank(job, atoi(arguments[2]));
    else if (strcmp(what, "die") == 0 && count > 2)
        lose_in_run(job, &(fate){.dies = 1, .folder = arguments[2]}, 0);
    else if (strcmp(what, "stay-away") == 0 && count > 2)
        lose_in_run(job, &(fate){.folder = arguments[2]}, PATIENT_MS);
    else if (strcmp(what, "cope") == 0 && count > 2)
        lose_in_run(job, &(fate){.copes = 1, .folder = arguments[2]}, PATIENT_MS + 100);
    else if (strcmp(what, "leave") == 0)
        leave_one_by_one(job);
    else if (strcmp(what, "twice") == 0)
        fail_twice(job);
    else
        say(job, "run", tsr_mpi_job_run(job, meet, NULL, NULL));
    tsr_mpi_job_destroy(job);
    fprintf(stderr, "R%d is gone\n", rank);
    return 0;
}
