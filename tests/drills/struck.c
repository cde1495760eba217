/*
 * Ranks as processes that make calls until one is killed: struck DIRECTORY TIMEOUT_MS
 * memory|messages SEED. Each writes to DIRECTORY/rank-N its process id once MPI runs, then the
 * result of its calls, and "over" when it has left MPI.
 */
#include "calls.h"
#include "drill.h"

#include <tessera/mpi.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct part {
    FILE *file;
    uint64_t seed;
} part;

static tsr_status go_on(tsr_comm *comm, void *arg)
{
    part *p = arg;
    drill_draws draws = drill_draws_of(p->seed, 0);
    tsr_status status = TSR_OK;
    while (status == TSR_OK)
        status = make_call(comm, drill_below(&draws, CALLS));
    fprintf(p->file, "%s: %s\n", tsr_status_name(status), tsr_status_message());
    fflush(p->file);
    return status;
}

static FILE *open_report(const char *directory, int rank)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/rank-%d", directory, rank);
    FILE *file = fopen(path, "w");
    if (!file)
        exit(2);
    fprintf(file, "%ld\n", (long)getpid());
    fflush(file);
    return file;
}

int main(int count, char **arguments)
{
    tsr_mpi_job *job = NULL;
    tsr_mpi_options options = TSR_MPI_OPTIONS_INIT;
    if (count != 5 || tsr_mpi_job_create(&job) != TSR_OK)
        return 2;
    options.timeout_ms = atol(arguments[2]);
    options.no_sharing = strcmp(arguments[3], "messages") == 0;
    part p = {open_report(arguments[1], tsr_mpi_job_rank(job)), strtoull(arguments[4], NULL, 10)};
    const tsr_status status = tsr_mpi_job_run(job, go_on, &p, &options);
    fprintf(p.file, "%s: %s\n", tsr_status_name(status), tsr_status_message());
    fflush(p.file);
    tsr_mpi_job_destroy(job);
    fprintf(p.file, "over\n");
    fclose(p.file);
    return 0;
}
