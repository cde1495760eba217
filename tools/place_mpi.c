/* Ranks that are processes, which a launcher started. */
#include "engines.h"

#include <stddef.h>
#include <tessera/sys/status.h>

static const char *missing(const cuda_facts *cuda)
{
    (void)cuda;
    return "this build has no libtessera-mpi, the library that brings it";
}

static const char *version(const cuda_facts *cuda)
{
    (void)cuda;
    return NULL;
}

static tsr_status join(int *rank, int *ranks)
{
    (void)rank;
    (void)ranks;
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "--engine mpi: %s", missing(NULL));
}

static tsr_status run_process(int ranks, tsr_rank_main *main, void *arg, const cuda_facts *cuda)
{
    (void)ranks;
    (void)main;
    (void)arg;
    return tsr_status_set(TSR_ERROR_UNAVAILABLE, "--engine mpi: %s", missing(cuda));
}

const engine mpi_engine = {.name = "mpi",
                           .ranks = "ranks are processes, started by mpirun",
                           .missing = missing,
                           .version = version,
                           .join = join,
                           .run = run_process};
