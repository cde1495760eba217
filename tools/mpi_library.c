#include "mpi_library.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/** An implementation of MPI, and what its launcher leaves in the environment of the processes that it starts: how
 * many they are, and which one this is. */
typedef struct implementation {
    const char *name, *file, *trace, *rank;
} implementation;

static const implementation implementations[] = {
    {"Open MPI", TESSERA_TOOL_MPI_OMPI, "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
    {"MPICH", TESSERA_TOOL_MPI_MPICH, "PMI_SIZE", "PMI_RANK"},
};

#define LENGTH(list) (sizeof(list) / sizeof *(list))

static bool find(void *library, const char *name, void *function)
{
    void *const found = dlsym(library, name);
    memcpy(function, &found, sizeof found);
    return found != NULL;
}

static bool find_all(void *library, mpi_library *out)
{
    return find(library, "tsr_mpi_job_create", &out->job_create) && find(library, "tsr_mpi_job_destroy", &out->job_destroy) &&
           find(library, "tsr_mpi_job_rank", &out->job_rank) && find(library, "tsr_mpi_job_size", &out->job_size) &&
           find(library, "tsr_mpi_job_run", &out->job_run) && find(library, "tsr_mpi_version_print", &out->version_print);
}

/* MPI's own plug-ins look for its symbols among those that all see. */
static bool open_one(const implementation *it, mpi_library *out, char *reason)
{
    if (it->file[0] == '\0') {
        snprintf(reason, MPI_REASON_BYTES, "built without %s: there is no libtessera-mpi for it", it->name);
        return false;
    }
    void *const library = dlopen(it->file, RTLD_LAZY | RTLD_GLOBAL);
    if (library == NULL) {
        snprintf(reason, MPI_REASON_BYTES, "libtessera-mpi for %s cannot be opened: %s", it->name, dlerror());
        return false;
    }
    if (find_all(library, out))
        return true;
    snprintf(reason, MPI_REASON_BYTES, "%s is of another version: %s", it->file, dlerror());
    return false;
}

bool mpi_launched_first(void)
{
    for (size_t i = 0; i < LENGTH(implementations); i++) {
        const char *const rank = getenv(implementations[i].rank);
        if (getenv(implementations[i].trace) != NULL && rank != NULL)
            return strtol(rank, NULL, 10) == 0;
    }
    return true;
}

bool mpi_library_open(mpi_library *out, char reason[MPI_REASON_BYTES])
{
    for (size_t i = 0; i < LENGTH(implementations); i++)
        if (getenv(implementations[i].trace) != NULL)
            return open_one(&implementations[i], out, reason);
    for (size_t i = 0; i < LENGTH(implementations); i++)
        if (open_one(&implementations[i], out, reason))
            return true;
    return false;
}
