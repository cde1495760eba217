#include "launched.h"

#include "body.h"
#include "comm_suite.h"

#include <tessera/sys/status.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { WAKE = 77, AWAIT_MS = 30000 };

static int rank, ranks;

/* Finalizes MPI at exit, unless a test already has. */
static void finalize(void)
{
    int finalized = 0;
    MPI_Finalized(&finalized);
    if (!finalized)
        MPI_Finalize();
}

/* Initializes MPI, and silences all processes but the first, because their output would be the
 * same. */
static void initialize(void)
{
    int level;
    if (ranks > 0)
        return;
    MPI_Init_thread(NULL, NULL, MPI_THREAD_FUNNELED, &level);
    MPI_Comm_rank(MPI_COMM_WORLD, &rank);
    MPI_Comm_size(MPI_COMM_WORLD, &ranks);
    atexit(finalize);
    if (rank == 0)
        return;
    /* The file descriptors stay open for messages of sanitizers. */
    FILE *const nowhere = fopen("/dev/null", "w");
    stdout = nowhere ? nowhere : stdout;
    stderr = nowhere ? nowhere : stderr;
}

int launched_ranks(void)
{
    initialize();
    return ranks;
}

int launched_rank(void)
{
    initialize();
    return rank;
}

/* Waits with sleeps: MPI's own waits spin, and there may be more ranks than cores. */
static void wait_for(MPI_Request *request)
{
    const struct timespec time = {0, 200000};
    for (int done = 0; !done; MPI_Test(request, &done, MPI_STATUS_IGNORE))
        nanosleep(&time, NULL);
}

static tsr_status run_inside(MPI_Comm inside, tsr_rank_main *body, void *arg, const tsr_mpi_options *options)
{
    tsr_comm *comm;
    TSR_TRY(tsr_comm_from_mpi(inside, options, &comm));
    return run_body(body, comm, arg);
}

tsr_status launched_run_with(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options)
{
    initialize();
    if (nranks > ranks)
        return TSR_OK;
    MPI_Comm inside;
    MPI_Request request;
    /* Processes that are not in the run bring TSR_OK. */
    suite_ending mine = {0}, *const endings = calloc((size_t)ranks, sizeof *endings);
    if (!endings)
        return tsr_status_set(TSR_ERROR_MEMORY, "no memory");
    MPI_Ibarrier(MPI_COMM_WORLD, &request);
    wait_for(&request);
    MPI_Comm_split(MPI_COMM_WORLD, rank < nranks ? 0 : MPI_UNDEFINED, rank, &inside);
    if (inside != MPI_COMM_NULL) {
        suite_end(&mine, run_inside(inside, body, arg, options));
        MPI_Comm_free(&inside);
    }
    MPI_Iallgather(&mine, (int)sizeof mine, MPI_BYTE, endings, (int)sizeof mine, MPI_BYTE, MPI_COMM_WORLD, &request);
    wait_for(&request);
    const tsr_status status = suite_conclude(endings, nranks);
    free(endings);
    return status;
}

static tsr_status run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *given, int no_sharing)
{
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    options.no_sharing = no_sharing;
    if (given)
        options.timeout_ms = given->timeout_ms;
    return launched_run_with(nranks, body, arg, &options);
}

tsr_status launched_run(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    return run(nranks, body, arg, options, 0);
}

tsr_status launched_run_by_messages(int nranks, tsr_rank_main *body, void *arg, const tsr_threads_options *options)
{
    return run(nranks, body, arg, options, 1);
}

void launched_await(int from)
{
    int come = 0;
    for (int look = 0; look < AWAIT_MS && !come; look++) {
        suite_sleep(1);
        MPI_Iprobe(from, WAKE, MPI_COMM_WORLD, &come, MPI_STATUS_IGNORE);
    }
    if (come)
        MPI_Recv(NULL, 0, MPI_BYTE, from, WAKE, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
}

void launched_wake(int to)
{
    MPI_Send(NULL, 0, MPI_BYTE, to, WAKE, MPI_COMM_WORLD);
}

void launched_run_all(int nranks, tsr_rank_main *body, void *arg, const tsr_mpi_options *options)
{
    const tsr_status status = launched_run_with(nranks, body, arg, options);
    if (status != TSR_OK)
        fail_msg("%s: %s", tsr_status_name(status), tsr_status_message());
}

void launched_assert_refused(tsr_status status, tsr_status wanted, const char *part)
{
    if (status != wanted || !strstr(tsr_status_message(), part))
        fail_msg("gave %s (%s), not %s naming \"%s\"", tsr_status_name(status), tsr_status_message(),
                 tsr_status_name(wanted), part);
}
