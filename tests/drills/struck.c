/*
 * Ranks that are processes and call without end, until one is struck: struck DIRECTORY TIMEOUT_MS memory|messages SEED. Each writes
 * DIRECTORY/rank-N: its process, once MPI runs; then what its calls came to; and "over" when it has left MPI.
 */
#include "drill.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tessera/mpi.h>
#include <tessera/tessera.h>
#include <unistd.h>

enum { VALUES = 4096 };

typedef struct part {
    FILE *file;
    uint64_t seed;
} part;

static tsr_status split(tsr_comm *comm)
{
    tsr_comm *group = NULL;
    tsr_status status = tsr_comm_split(comm, tsr_comm_rank(comm) % 2, 0, &group);
    if (status == TSR_OK)
        status = tsr_comm_barrier(group);
    tsr_comm_destroy(group);
    return status;
}

static tsr_status exchange(tsr_comm *comm)
{
    static char out[VALUES], in[VALUES];
    const int rank = tsr_comm_rank(comm), size = tsr_comm_size(comm);
    const tsr_message send = {(rank + 1) % size, out, sizeof out}, receive = {(rank + size - 1) % size, in, sizeof in};
    return tsr_comm_exchange(comm, &send, 1, &receive, 1, tsr_device_host(), NULL);
}

static tsr_status redistribute(tsr_comm *comm)
{
    static float values[VALUES];
    const int64_t shape[] = {64, 64}, ranks = tsr_comm_size(comm);
    const tsr_tensor global = tsr_tensor_contiguous(values, TSR_F32, 2, shape);
    const tsr_placement rows = tsr_shard(0), columns = tsr_shard(1);
    tsr_mesh *mesh = NULL;
    tsr_dtensor *x = NULL, *y = NULL;
    tsr_status status = tsr_mesh_create(comm, 1, &ranks, NULL, NULL, &mesh);
    if (status == TSR_OK)
        status = tsr_distribute_tensor(&global, mesh, &rows, NULL, &x);
    if (status == TSR_OK)
        status = tsr_redistribute(x, &columns, &y);
    tsr_dtensor_destroy(x);
    tsr_dtensor_destroy(y);
    tsr_mesh_destroy(mesh);
    return status;
}

static tsr_status call(tsr_comm *comm, int64_t which)
{
    static float send[VALUES], receive[VALUES];
    switch (which) {
    case 0:
        return tsr_comm_barrier(comm);
    case 1:
        return split(comm);
    case 2:
        return exchange(comm);
    case 3:
        return redistribute(comm);
    default:
        return tsr_comm_all_reduce(comm, send, receive, VALUES, TSR_F32, TSR_SUM, tsr_device_host(), NULL);
    }
}

static tsr_status go_on(tsr_comm *comm, void *arg)
{
    part *p = arg;
    drill_draws draws = drill_draws_of(p->seed, 0);
    tsr_status status = TSR_OK;
    while (status == TSR_OK)
        status = call(comm, drill_below(&draws, 12) == 0 ? 1 : drill_below(&draws, 4) + (drill_one_in(&draws, 2) ? 1 : 0));
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
